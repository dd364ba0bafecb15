"""A UNet2DModel folder in eager PyTorch with diffusers: seconds of the processor for a forward pass and of a training step (no optimizer).

    python unet_eager.py FOLDER [--batch 32] [--runs 5] [--threads 1]
"""
import argparse
import json
import time

import diffusers
import torch

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--threads", type=int, default=1)
args = parser.parse_args()
torch.set_num_threads(args.threads)
diffusers.logging.set_verbosity_error()
net = diffusers.UNet2DModel.from_pretrained(args.folder, low_cpu_mem_usage=False).eval()
for p in net.parameters():
    p.data = p.data.clone()
z = torch.randn(args.batch, net.config.in_channels, net.config.sample_size, net.config.sample_size)
t = torch.full((args.batch,), 500)


def forward():
    with torch.no_grad():
        net(z, t).sample


def step():
    net.zero_grad(set_to_none=True)
    net(z, t).sample.square().mean().backward()


def fastest(body):
    body()
    best = float("inf")
    for _ in range(args.runs):
        begin = time.process_time()
        body()
        best = min(best, time.process_time() - begin)
    return best


print(json.dumps({"forward": fastest(forward), "step": fastest(step)}))
