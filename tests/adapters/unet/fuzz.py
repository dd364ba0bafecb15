#!/usr/bin/env python3
"""Random UNet2DModels of diffusers against `mergeplan model --compare`, and what it writes against diffusers.

    python fuzz.py BUILD_DIR [--count 200] [--seed 0]

Needs a Python with diffusers. Not one of the tests, which have golden.json instead. Models that diffusers itself cannot
make or run must be refused here too, and the others accepted.
"""
import argparse
import json
import random
import subprocess
import tempfile
import warnings
from pathlib import Path

import diffusers
import numpy as np
import torch
from diffusers import UNet2DModel

diffusers.logging.set_verbosity_error()
warnings.filterwarnings("ignore")
torch.set_num_threads(1)


def draw(rng):
    levels = rng.randint(1, 3)
    skips = rng.random() < 0.25
    width = rng.choice([4, 8, 12]) if not skips else rng.choice([8, 16, 32])
    channels = [width * rng.randint(1, 3) for _ in range(levels)]
    down = ["DownBlock2D", "AttnDownBlock2D", "ResnetDownsampleBlock2D"]
    up = ["UpBlock2D", "AttnUpBlock2D", "ResnetUpsampleBlock2D"]
    if skips:
        down, up = down + ["SkipDownBlock2D"] * 6 + ["AttnSkipDownBlock2D"] * 2, up + ["SkipUpBlock2D"] * 6 + ["AttnSkipUpBlock2D"] * 2
    few = 3 if skips else rng.randint(1, 3)
    config = dict(
        sample_size=2 ** (levels - 1) * rng.randint(2, 4), in_channels=few, out_channels=few if rng.random() < 0.8 else rng.randint(1, 4),
        center_input_sample=rng.random() < 0.2, time_embedding_type=rng.choice(["positional", "positional", "fourier", "learned"]),
        time_embedding_dim=rng.choice([None, None, 12]), freq_shift=rng.choice([0, 1, 0, 0.5]), flip_sin_to_cos=rng.random() < 0.5,
        block_out_channels=channels, layers_per_block=rng.randint(1, 2), down_block_types=[rng.choice(down) for _ in range(levels)],
        up_block_types=[rng.choice(up) for _ in range(levels)], mid_block_type=rng.choice(["UNetMidBlock2D"] * 4 + [None]),
        mid_block_scale_factor=rng.choice([1, 1.41421356]), downsample_padding=rng.choice([0, 1, 1]),
        downsample_type=rng.choice(["conv", "resnet"]), upsample_type=rng.choice(["conv", "resnet"]), dropout=rng.choice([0.0, 0.1]),
        act_fn=rng.choice(["silu", "swish", "mish", "gelu", "relu"]), attention_head_dim=rng.choice([None, 1, 3, 4, 8]),
        norm_num_groups=rng.choice([None] + [1, 2, 4] * 3) if skips else rng.choice([1, 2, 4, 4]),
        attn_norm_num_groups=rng.choice([None, None, 2, 4]), norm_eps=rng.choice([1e-5, 1e-6]),
        resnet_time_scale_shift=rng.choice(["default", "default", "scale_shift"]), add_attention=rng.random() < 0.8,
        class_embed_type=rng.choice([None] * 4 + ["timestep", "identity"]), num_class_embeds=rng.choice([None, None, 5]),
        num_train_timesteps=rng.choice([None, 1000]))
    return {k: v for k, v in config.items() if rng.random() < 0.93 or k in ("block_out_channels", "down_block_types", "up_block_types", "norm_num_groups", "sample_size", "in_channels", "out_channels")}


def evaluate(model, sample, time, label, names):
    kwargs = {} if label is None else {"class_labels": label}
    out = model(sample, time, **kwargs).sample
    model.zero_grad()
    (out**2).sum().backward()  # of all: torch 2.11 crashes on a group norm's bias without its weight
    params = dict(model.named_parameters())
    return out.detach().numpy(), [np.zeros(params[n].shape) if params[n].grad is None else params[n].grad.numpy().copy() for n in names]


def reference(config, rng, folder):
    """Writes a model and io.npz; False where diffusers cannot."""
    torch.manual_seed(rng.randint(0, 1 << 30))
    try:
        model = UNet2DModel(**config).eval()
        with torch.no_grad():
            for p in model.parameters():
                if p.ndim == 1:
                    p.add_(0.2 * torch.randn_like(p))
        size, batch = config["sample_size"], rng.randint(1, 3)
        sample = torch.randn(batch, config["in_channels"], size, size)
        time, label = torch.randint(1, 999, (batch,)), None
        if config.get("class_embed_type") == "identity":
            label = torch.randn(batch, model.time_embedding.linear_2.out_features)
        elif config.get("class_embed_type") == "timestep" or config.get("num_class_embeds"):
            label = torch.randint(1, 5, (batch,))
        names = [n for n, p in model.named_parameters() if p.requires_grad]
        names = rng.sample(names, 3)
        io = {"sample": sample.numpy(), "timesteps": time.numpy(), "grad_names": np.array([n.encode() for n in names])}
        if label is not None:
            io["class_labels"] = label.numpy()
        model.save_pretrained(folder)
        io["output"], g32 = evaluate(model, sample, time, label, names)
        if config.get("class_embed_type") == "timestep":  # float32 sinusoids meet float64 weights
            project = model.time_proj.forward
            model.time_proj.forward = lambda t: project(t).double()
        io["output_f64"], g64 = evaluate(model.double(), sample.double(), time, label if label is None or label.ndim == 1 else label.double(), names)
        for i in range(3):
            io[f"grad_{i}"], io[f"grad_{i}_f64"] = g32[i], g64[i]
        if not np.isfinite(io["output"]).all():
            return "not finite"
    except Exception as e:  # noqa: BLE001: whatever diffusers says
        return f"{type(e).__name__}: {e}"
    np.savez(folder / "io.npz", **io)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, bad, compared, refused, worst = random.Random(args.seed), 0, 0, 0, {}
    for k in range(args.count):
        config = draw(rng)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fault = reference(config, rng, folder)
            if fault:
                (folder / "config.json").write_text(json.dumps({"_class_name": "UNet2DModel", **config}))
            run = subprocess.run([args.build / "bin/mergeplan", "model", folder, "--json", *(["--compare", folder / "io.npz"] if not fault else [])],
                                 capture_output=True, text=True)
            if fault:
                refused += 1
                said = run.stderr.strip()
                # Where diffusers made it and failed to run it, weights are there and must not load.
                if run.returncode != 1 or ("has no weights" in said):
                    bad += 1
                    print(f"{k}: diffusers: {fault[:200]}\n   here: {said or 'fine'}\n   {json.dumps(config)}")
                continue
            if run.returncode != 0:
                bad += 1
                print(f"{k}: {run.stderr or json.dumps(json.loads(run.stdout)['compare']['differences'])}\n   {json.dumps(config)}")
            if run.stdout:
                compared += 1
                for d in json.loads(run.stdout)["compare"]["differences"]:
                    key = d["dtype"] + " " + d["what"].split()[0]
                    worst[key] = max(worst.get(key, 0), d["relative"] or 0)
    print(f"{args.count} models: {compared} compared, {refused} that diffusers cannot do, {bad} disagreements; worst {worst}")
    return bad != 0


if __name__ == "__main__":
    raise SystemExit(main())
