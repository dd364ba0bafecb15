"""One distillation update of a network in eager PyTorch: two teacher calls, forward, backward, fused AdamW, EMA.

    network_eager.py FOLDER NAME [UPDATES [BATCH]]

FOLDER holds net.py whose load(NAME) gives (network, anything); the network takes z [B, 1, 28, 28] and t [B].
"""
import copy
import sys
import time

import torch


def main(folder, name, updates=20, batch=32):
    sys.path.insert(0, folder)
    sys.dont_write_bytecode = True
    import net

    student, _ = net.load(name)
    teacher = copy.deepcopy(student)
    parameters = list(student.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-5, fused=True)
    average = [p.detach().clone() for p in parameters]
    times = [torch.full((batch,), t) for t in (1.0, 0.875)]

    def step():
        z = torch.randn(batch, 1, 28, 28)
        with torch.no_grad():
            target = z
            for t in times:
                target = 0.9 * target + 0.1 * teacher(target, t)
        out = 0.8 * z + 0.2 * student(z, times[0])
        loss = (out - target).flatten(1).square().sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(average, parameters, 0.01)
        return loss.item()

    for _ in range(3):
        step()
    begin = time.perf_counter()
    for _ in range(updates):
        step()
    passed = time.perf_counter() - begin
    print(f"{passed / updates:.6f} seconds per update, batch {batch}, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
