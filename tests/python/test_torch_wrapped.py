"""mergeplan.torch under DistributedDataParallel, FSDP2, torch.compile and accelerate."""

import copy

import pytest
import torch

import torch_cases as cases
from mergeplan.torch import MergeDistiller
from processes import run_ranks


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What two processes end with, by kind of wrapper."""
    folder = tmp_path_factory.mktemp("ranks")
    run_ranks("torch_ranks.py", 2, folder)
    return {
        (kind, rank): torch.load(folder / f"result-{kind}-{rank}.pt") for kind in ("ddp", "fsdp2", "compiled") for rank in range(2)
    }


@pytest.mark.parametrize("kind", ["ddp", "fsdp2", "compiled"])
def test_two_processes_hold_one_student(results, kind):
    for a, b in zip(results[kind, 0]["parameters"], results[kind, 1]["parameters"]):
        assert torch.equal(a, b)
    assert torch.equal(results[kind, 0]["samples"], results[kind, 1]["samples"])


@pytest.mark.parametrize("kind", ["fsdp2", "compiled"])
def test_wrapped_in_another_way_students_learn_the_same(results, kind):
    for a, b in zip(results["ddp", 0]["parameters"], results[kind, 0]["parameters"]):
        assert torch.allclose(a, b, atol=2e-5)
    assert torch.allclose(results["ddp", 0]["samples"], results[kind, 0]["samples"], atol=1e-3)


def test_two_processes_do_what_one_does_with_both_batches(results):
    """Gradients averaged over processes are those of all rows."""
    torch.manual_seed(0)
    plan = cases.make_plan(6, [[[1, 2], [3, [4, [5, 6]]]]], cases.schedule(6))
    teacher = cases.Small(dtype=torch.float32)
    student = cases.Small(dtype=torch.float32)
    student.load_state_dict(teacher.state_dict())
    distiller = MergeDistiller(plan, teacher, student, prediction_type="v_prediction", updates=3)
    optimizer = torch.optim.Adam(student.parameters(), 1e-2)
    torch.manual_seed(1)
    data = torch.randn(96, 5)
    import mergeplan.torch.distiller as module

    held = module.rank_and_world
    try:
        for stage in distiller.rounds(optimizer):
            for _ in stage:
                batches, rows = distiller.batches, distiller._rows
                for rank in range(2):
                    module.rank_and_world = lambda rank=rank: (rank, 2)
                    begin = (7 * batches + 11 * distiller.stage_index) % 40 + rank * 48
                    distiller.batches, distiller._rows = batches, rows
                    batch = distiller.batch(data[begin : begin + 8])
                    (distiller.loss(student(batch.z, batch.t), batch) / 2).backward()
                optimizer.step()
                optimizer.zero_grad()
    finally:
        module.rank_and_world = held
    for a, b in zip(results["ddp", 0]["parameters"], student.parameters()):
        assert torch.allclose(a, b.detach(), atol=2e-5)


def test_compiled_networks_give_the_same_numbers():
    torch.manual_seed(0)
    schedule = cases.schedule(4)
    plan = cases.make_plan(4, [cases.boot(4)], schedule)
    teacher = cases.Small(dropout=0.0)
    data = torch.randn(64, 5, dtype=torch.float64)
    ends = []
    for compiled in (False, True):
        mine, own = copy.deepcopy(teacher), copy.deepcopy(teacher)
        if compiled:
            torch._dynamo.reset()
            mine, own = (torch.compile(net, backend="aot_eager") for net in (mine, own))
        distiller = MergeDistiller(plan, mine, own, prediction_type="sample", updates=4)
        own.train()
        cases.train(distiller, own, data, sgd=True)
        ends.append([p.detach().clone() for p in own.parameters()])
    for a, b in zip(*ends):
        assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)


def test_accelerate_saves_and_takes_up(tmp_path):
    accelerate = pytest.importorskip("accelerate")
    schedule = cases.schedule(5)
    plan = cases.make_plan(5, [[1, [2, [3, 4, 5]]]], schedule)
    torch.manual_seed(0)
    teacher = cases.Small(dtype=torch.float32)
    data = torch.randn(60, 5)

    def run(stop=None, resume=None):
        torch.manual_seed(3)
        accelerator = accelerate.Accelerator(cpu=True, gradient_accumulation_steps=2)
        distiller = MergeDistiller(plan, teacher, prediction_type="v_prediction", updates=3, accumulate=2)
        student = distiller.student
        optimizer = torch.optim.AdamW(student.parameters(), 1e-2)
        student, optimizer = accelerator.prepare(student, optimizer)
        accelerator.register_for_checkpointing(distiller)
        if resume:
            accelerator.load_state(resume)
        drawn = 0
        for stage in distiller.rounds(optimizer):
            for _ in stage:
                if stop is not None and drawn == stop:
                    accelerator.save_state(str(tmp_path / "saved"))
                    return None
                drawn += 1
                begin = 6 * ((distiller.batches + 3 * distiller.stage_index) % 9)
                with accelerator.accumulate(student):
                    batch = distiller.batch(data[begin : begin + 6])
                    accelerator.backward(distiller.loss(student(batch.z, batch.t), batch))
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(student.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
        return [p.detach().clone() for p in student.parameters()]

    whole = run()
    run(stop=8)
    for a, b in zip(whole, run(resume=str(tmp_path / "saved"))):
        assert torch.equal(a, b)
