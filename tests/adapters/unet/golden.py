#!/usr/bin/env python3
"""What diffusers computes for small UNet2DModels that use every option: writes golden.json beside this file.

    python golden.py          # diffusers 0.42.1, torch 2.11.0

Weights and inputs follow formulas that golden_test.cc repeats, so that only results are stored: outputs, the
gradient of sum(output^2) in the input (every 4th and 16th number), and its norm in every parameter in order,
all in float64.
"""
import json
import math
import warnings
from pathlib import Path

import diffusers
import torch
from diffusers import UNet2DModel

diffusers.logging.set_verbosity_error()
warnings.filterwarnings("ignore")
SMALL = dict(sample_size=8, in_channels=2, out_channels=2, layers_per_block=1, block_out_channels=[8, 12],
             down_block_types=["DownBlock2D", "AttnDownBlock2D"], up_block_types=["AttnUpBlock2D", "UpBlock2D"],
             attention_head_dim=4, norm_num_groups=4)
SKIP = dict(sample_size=8, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=[8, 16],
            down_block_types=["SkipDownBlock2D", "SkipDownBlock2D"], up_block_types=["SkipUpBlock2D", "SkipUpBlock2D"],
            attention_head_dim=8, norm_num_groups=None, time_embedding_type="fourier", norm_eps=1e-6,
            mid_block_scale_factor=math.sqrt(2))
CASES = {
    "plain": SMALL,
    "shift": dict(SMALL, resnet_time_scale_shift="scale_shift", act_fn="gelu"),
    "shift with a norm": dict(SMALL, resnet_time_scale_shift="scale_shift", attn_norm_num_groups=3, act_fn="Mish"),
    "resnets resample": dict(SMALL, down_block_types=["ResnetDownsampleBlock2D", "DownBlock2D"],
                             up_block_types=["UpBlock2D", "ResnetUpsampleBlock2D"], act_fn="relu"),
    "resnets resample upwards": dict(SMALL, block_out_channels=[8, 8, 12], up_block_types=["ResnetUpsampleBlock2D", "UpBlock2D", "UpBlock2D"],
                                     down_block_types=["DownBlock2D", "ResnetDownsampleBlock2D", "DownBlock2D"]),
    "attention resamples by resnets": dict(
        SMALL, down_block_types=["AttnDownBlock2D", "AttnDownBlock2D"], up_block_types=["AttnUpBlock2D", "AttnUpBlock2D"],
        downsample_type="resnet", upsample_type="resnet", attention_head_dim=5),
    "padding": dict(SMALL, downsample_padding=0, flip_sin_to_cos=False, freq_shift=1, attention_head_dim=None),
    "no middle": dict(SMALL, mid_block_type=None, center_input_sample=True, time_embedding_dim=20),
    "no attention in the middle": dict(SMALL, add_attention=False, layers_per_block=2, freq_shift=0.5),
    "odd width": dict(SMALL, block_out_channels=[9, 12], norm_num_groups=3, attention_head_dim=3),
    "one level": dict(SMALL, block_out_channels=[8], down_block_types=["AttnDownBlock2D"], up_block_types=["AttnUpBlock2D"]),
    "learned time": dict(SMALL, time_embedding_type="learned", num_train_timesteps=30),
    "classes": dict(SMALL, num_class_embeds=5),
    "classes as times": dict(SMALL, class_embed_type="timestep", num_class_embeds=5),
    "classes as vectors": dict(SMALL, class_embed_type="identity"),
    "skips": SKIP,
    "skips with attention": dict(
        SKIP, block_out_channels=[32, 32], down_block_types=["AttnSkipDownBlock2D", "AttnSkipDownBlock2D"],
        up_block_types=["AttnSkipUpBlock2D", "AttnSkipUpBlock2D"]),
    "skips and others": dict(
        SKIP, norm_num_groups=4, down_block_types=["SkipDownBlock2D", "AttnDownBlock2D"],
        up_block_types=["UpBlock2D", "SkipUpBlock2D"], resnet_time_scale_shift="scale_shift"),
    "three skips": dict(SKIP, block_out_channels=[8, 16, 24], down_block_types=["SkipDownBlock2D"] * 3,
                        up_block_types=["SkipUpBlock2D"] * 3, time_embedding_type="positional"),
    "old names": dict(SMALL, down_block_types=["UNetResDownBlock2D", "UNetResAttnDownBlock2D"]),
}


def fill(name, shape):
    n = math.prod(shape)
    phase = sum((k + 1) * ord(c) for k, c in enumerate(name)) % 997
    wave = torch.sin(12.9898 * torch.arange(n, dtype=torch.float64) + phase)
    if len(shape) == 1:
        values = (1 if name.endswith(".weight") else 0) + 0.3 * wave
    else:
        values = wave / math.sqrt(math.prod(shape[1:]))
    return values.reshape(shape)


def run(config):
    model = UNet2DModel(**config).double().eval()
    with torch.no_grad():
        for name, p in model.state_dict().items():
            p.copy_(fill(name, list(p.shape)))
    size, batch = config["sample_size"], 2
    z = torch.sin(0.7 * torch.arange(batch * config["in_channels"] * size * size, dtype=torch.float64) + 0.3)
    z = z.reshape(batch, config["in_channels"], size, size).requires_grad_()
    time = torch.tensor([3, 20])
    label = None
    if config.get("class_embed_type") == "identity":
        width = model.time_embedding.linear_2.out_features
        label = torch.cos(0.4 * torch.arange(batch * width, dtype=torch.float64)).reshape(batch, width)
    elif config.get("class_embed_type") == "timestep":
        label = torch.tensor([4, 1])
        # The class gives its linear layer float32 sinusoids in every precision, which it refuses in float64.
        project = model.time_proj.forward
        model.time_proj.forward = lambda t: project(t).double()
    elif config.get("num_class_embeds"):
        label = torch.tensor([4, 1])
    out = model(z, time, class_labels=label).sample
    (out**2).sum().backward()
    params = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return {"config": config, "output": out.flatten().tolist()[::4], "input_gradient": z.grad.flatten().tolist()[::16],
            "last_parameter": params[-1][0], "gradient_norms": [float(p.grad.norm()) for _, p in params]}


def rounded(value):
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return value


if __name__ == "__main__":
    torch.set_num_threads(1)
    lines = []
    for name, config in CASES.items():
        case = {k: rounded(v) if k != "config" else v for k, v in run(config).items()}
        lines.append(json.dumps({"name": name} | case))
        print(name, max(map(abs, case["output"])), len(case["gradient_norms"]))
    Path(__file__).with_name("golden.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
