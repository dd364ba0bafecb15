"""What one process of test_torch_moments.py does: `python moments_ranks.py RANK WORLD FOLDER`."""

import os
import sys

import torch
import torch.distributed as dist
from mergeplan.torch import LatentMoments
from test_torch_moments import latents
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANK, WORLD, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def main():
    store = dist.FileStore(os.path.join(FOLDER, "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=WORLD)
    data = TensorDataset(latents())  # 600 samples, 200 for each
    moments = LatentMoments()
    for (x,) in DataLoader(data, batch_size=64, sampler=DistributedSampler(data, shuffle=True)):
        moments.update(x)
    moments.all_reduce()
    few = LatentMoments(covariance=False)  # one process has nothing
    if RANK != 1:
        few.update(latents()[RANK * 300 // 2 : (RANK + 2) * 300 // 2])
    few.all_reduce()
    torch.save([moments.state_dict(), few.state_dict()], os.path.join(FOLDER, f"{RANK}.pt"))
    dist.destroy_process_group()


main()
