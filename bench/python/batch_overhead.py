"""What MergeDistiller.batch costs beside the forward passes inside it, as a share of a training step.

    python batch_overhead.py [--device cuda] [--channels 64] [--size 32] [--batch 16]

Prints the median over steps of: the whole step (batch, forward, backward, optimizer), the forward passes of teacher and frozen
jumps inside batch(), and the rest of batch(). Exits with 1 where the rest is 3 % of a step or more.
"""

import argparse
import statistics
import sys
import time

import torch
from diffusers import DDIMScheduler, UNet2DModel

from mergeplan import Schedule, strategy
from mergeplan.torch import MergeDistiller, call_network


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--channels", type=int, default=32)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8, help="of the teacher")
    parser.add_argument("--updates", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    width = args.channels
    student = UNet2DModel(
        sample_size=args.size, in_channels=3, out_channels=3, block_out_channels=(width, 2 * width), layers_per_block=1,
        norm_num_groups=8, down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
    ).to(args.device)
    schedule = Schedule.from_diffusers(
        DDIMScheduler(prediction_type="v_prediction", timestep_spacing="trailing", clip_sample=False), args.steps
    )
    data = torch.randn(args.batch, 3, args.size, args.size, device=args.device)
    inside = [0.0]

    def wait():
        if args.device.startswith("cuda"):
            torch.cuda.synchronize()
        return time.perf_counter()

    def timed(network, z, t, condition):
        begin = wait()
        out = call_network(network, z, t, condition)
        inside[0] += wait() - begin
        return out

    worst = 0.0
    for name in ("vanilla", "progressive", "boot"):
        distiller = MergeDistiller(
            strategy(name, schedule), teacher=None, student=student, updates=args.updates, forward=timed
        )
        optimizer = torch.optim.AdamW(student.parameters(), 1e-5)
        rows = []
        for stage in distiller.rounds(optimizer):
            for _ in stage:
                inside[0] = 0.0
                begin = wait()
                batch = distiller.batch(data)
                drawn = wait()
                networks = inside[0]
                loss = distiller.loss(student(batch.z, batch.t).sample, batch)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                rows.append((wait() - begin, networks, drawn - begin - networks))
                if distiller.batches == 1:
                    rows.pop()  # tables of the stage are made once
        step, networks, rest = (statistics.median(column) for column in zip(*rows))
        share = statistics.median(row[2] / row[0] for row in rows)
        worst = max(worst, share)
        print(
            f"{name:12} step {step * 1e3:8.2f} ms, networks in batch() {networks * 1e3:8.2f} ms, rest of batch() "
            f"{rest * 1e3:6.3f} ms = {share:.2%} of a step"
        )
    print(f"largest share {worst:.2%}, expected less than 3 %")
    return 0 if worst < 0.03 else 1


if __name__ == "__main__":
    sys.exit(main())
