"""What one process of test_torch_wrapped.py does: `python torch_ranks.py RANK WORLD FOLDER`."""

import os
import sys

import torch
import torch.distributed as dist
from torch import nn

import torch_cases as cases
from mergeplan.torch import MergeDistiller

RANK, WORLD, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def make(kind):
    torch.manual_seed(0)
    schedule = cases.schedule(6)
    plan = cases.make_plan(6, [[[1, 2], [3, [4, [5, 6]]]]], schedule)
    teacher = cases.Small(dtype=torch.float32)
    student = cases.Small(dtype=torch.float32)
    student.load_state_dict(teacher.state_dict())
    if kind == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        mesh = init_device_mesh("cpu", (WORLD,))
        for part in (student.a, student.b):
            fully_shard(part, mesh=mesh)
        fully_shard(student, mesh=mesh)
        wrapped = student
    else:
        wrapped = nn.parallel.DistributedDataParallel(student)
    if kind == "compiled":
        torch._dynamo.reset()
        wrapped = torch.compile(wrapped, backend="aot_eager")
    distiller = MergeDistiller(plan, teacher, wrapped, prediction_type="v_prediction", updates=3)
    return distiller, wrapped, torch.optim.Adam(wrapped.parameters(), 1e-2)


def whole(parameter):
    return parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter


def train(distiller, wrapped, optimizer, stop=None):
    torch.manual_seed(1)
    data = torch.randn(96, 5)
    drawn = 0
    for stage in distiller.rounds(optimizer):
        for _ in stage:
            if stop is not None and drawn >= stop:
                return
            drawn += 1
            # Every process has rows of its own, and draws noise of its own.
            begin = (7 * distiller.batches + 11 * distiller.stage_index) % 40 + RANK * 48
            batch = distiller.batch(data[begin : begin + 8])
            distiller.loss(wrapped(batch.z, batch.t), batch).backward()
            optimizer.step()
            optimizer.zero_grad()


def run(kind):
    distiller, wrapped, optimizer = make(kind)
    train(distiller, wrapped, optimizer)
    assert distiller.finished
    result = [whole(p).detach().clone() for p in wrapped.parameters()]

    # Stopped in the middle and taken up by another set of objects.
    first = make(kind)
    train(*first, stop=5)
    path = os.path.join(FOLDER, f"state-{kind}-{RANK}.pt")
    torch.save([one.state_dict() for one in first], path)
    saved = torch.load(path, weights_only=False)
    second = make(kind)
    for one, state in zip(second, saved):
        one.load_state_dict(state)
    train(*second)
    for a, b in zip(result, second[1].parameters()):
        assert torch.equal(a, whole(b).detach()), "taken up, the training ends elsewhere"

    noise = torch.linspace(-1, 1, 15).view(3, 5)
    found = {"parameters": result, "samples": distiller.sample(noise)}
    torch.save(found, os.path.join(FOLDER, f"result-{kind}-{RANK}.pt"))


def main():
    store = dist.FileStore(os.path.join(FOLDER, "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=WORLD)
    for kind in ("ddp", "fsdp2", "compiled"):
        run(kind)
    # Not a barrier: the process that leaves it first closes connections that the other may still read from.
    store.set(f"end-{RANK}", "1")
    store.wait([f"end-{rank}" for rank in range(WORLD)])
    dist.destroy_process_group()


main()
