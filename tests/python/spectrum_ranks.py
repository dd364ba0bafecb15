"""What one process of test_torch_spectrum.py does: `python spectrum_ranks.py RANK WORLD FOLDER`."""

import os
import sys

import mergeplan
import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

RANK, WORLD, FOLDER = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def main():
    store = dist.FileStore(os.path.join(FOLDER, "store"), WORLD)
    dist.init_process_group("gloo", store=store, rank=RANK, world_size=WORLD)
    data = TensorDataset(torch.load(os.path.join(FOLDER, "latents.pt")))
    # As in README.md: a tail that does not go round is left out, or samples would count twice.
    sampler = DistributedSampler(data, shuffle=True, drop_last=True)
    mine = mergeplan.Spectrum.from_latents(DataLoader(data, batch_size=32, sampler=sampler))
    parts = [None] * WORLD
    dist.all_gather_object(parts, mine)
    whole = parts[0].merge(*parts[1:])
    whole.to_file(os.path.join(FOLDER, f"whole-{RANK}.toml"))
    dist.barrier()
    dist.destroy_process_group()


main()
