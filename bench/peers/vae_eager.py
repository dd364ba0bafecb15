"""Pictures a second of an encoder in eager PyTorch: the network alone, its input made beforehand.

    python vae_eager.py NETWORK --size 64 [--channels 3] [--samples 256] [--batch 16] [--threads 1] [--turns 3]

NETWORK is a folder of diffusers' AutoencoderKL or AutoencoderTiny, a TorchScript encoder (a file), or FOLDER/net.py:NAME, whose load(NAME)
gives the network. Prints JSON: the fastest turn after one to warm up.
"""
import argparse
import importlib.util
import json
import sys
import time

import torch


def load(path):
    """The network as a function of pictures, and how many parameters its encoder has."""
    if ".py:" in path:
        file, name = path.rsplit(":", 1)
        sys.dont_write_bytecode = True
        spec = importlib.util.spec_from_file_location("net", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        network = module.load(name)
        return network, sum(p.numel() for p in network.parameters())
    if path.endswith(".ts"):
        network = torch.jit.load(path).eval()
        return network, sum(p.numel() for p in network.parameters())
    import diffusers

    diffusers.logging.set_verbosity_error()
    with open(path + "/config.json", encoding="utf-8") as file:
        kind = json.load(file)["_class_name"]
    network = getattr(diffusers, kind).from_pretrained(path, low_cpu_mem_usage=False).eval()
    for p in network.parameters():
        p.data = p.data.clone()
    parameters = sum(p.numel() for p in network.encoder.parameters())
    if kind == "AutoencoderTiny":
        return lambda x: network.encode(x).latents, parameters
    return lambda x: network.encode(x).latent_dist.mean, parameters


parser = argparse.ArgumentParser()
parser.add_argument("network")
parser.add_argument("--size", type=int, required=True)
parser.add_argument("--channels", type=int, default=3)
parser.add_argument("--samples", type=int, default=256)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--threads", type=int, default=1)
parser.add_argument("--turns", type=int, default=2)
args = parser.parse_args()
torch.set_num_threads(args.threads)
encode, parameters = load(args.network)
x = torch.rand(args.samples, args.channels, args.size, args.size)
fastest = float("inf")
with torch.inference_mode():
    for turn in range(args.turns + 1):
        begin = time.perf_counter()
        for first in range(0, args.samples, args.batch):
            encode(x[first : first + args.batch])
        if turn > 0:
            fastest = min(fastest, time.perf_counter() - begin)
print(json.dumps({"network": args.samples / fastest, "threads": torch.get_num_threads(), "parameters": parameters}))
