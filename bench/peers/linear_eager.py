"""Updates per second of a linear student trained by PyTorch as its users write it: eager, one thread.

    python linear_eager.py [SECONDS]      prints one JSON object, seconds per setting (default 2)

One merge, batch 2,560, SGD, loss summed over the dimensions and averaged over the batch; `fixed` trains on one batch again
and again, `samples` draws z afresh for every update.
"""

import json
import sys
import time

import torch

BATCH = 2560


def updates_per_second(d, fresh, seconds):
    torch.manual_seed(0)
    scale = torch.linspace(0.5, 1.5, d)
    target = torch.full((d,), 0.5)
    a = torch.ones(d, requires_grad=True)
    optimizer = torch.optim.SGD([a], lr=1e-6)
    z = scale * torch.randn(BATCH, d)
    y = target * z

    def update():
        nonlocal z, y
        if fresh:
            z = scale * torch.randn(BATCH, d)
            y = target * z
        loss = ((a * z - y) ** 2).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(50):
        update()
    count, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        for _ in range(20):
            update()
        count += 20
    return count / (time.process_time() - start)


def main():
    torch.set_num_threads(1)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    out = {"torch": torch.__version__}
    for d in (2, 128):
        for draws in ("fixed", "samples"):
            out[f"{draws}/{d}"] = updates_per_second(d, draws == "samples", seconds)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
