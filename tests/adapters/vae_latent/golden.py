#!/usr/bin/env python3
"""What diffusers computes for small autoencoders with every option: writes golden.json beside this file.

    python golden.py          # diffusers 0.42.1, torch 2.11.0

Weights and inputs follow formulas that autoencoder_test.cc repeats (those of tests/adapters/unet/golden.py).
"""
import json
import sys
import warnings
from pathlib import Path

import diffusers
import torch
from diffusers import AutoencoderKL, AutoencoderTiny

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "unet"))
sys.dont_write_bytecode = True
from golden import fill, rounded  # noqa: E402

diffusers.logging.set_verbosity_error()
warnings.filterwarnings("ignore")
KL = dict(in_channels=2, out_channels=3, block_out_channels=[4, 8], norm_num_groups=2, latent_channels=3, layers_per_block=1,
          down_block_types=["DownEncoderBlock2D"] * 2, up_block_types=["UpDecoderBlock2D"] * 2)
TINY = dict(in_channels=2, out_channels=3, encoder_block_out_channels=[5, 5], decoder_block_out_channels=[6, 6], latent_channels=3,
            num_encoder_blocks=[1, 2], num_decoder_blocks=[2, 1])
CASES = {
    "kl": KL,
    "attention in blocks": dict(KL, down_block_types=["DownEncoderBlock2D", "AttnDownEncoderBlock2D"],
                                up_block_types=["AttnUpDecoderBlock2D", "UpDecoderBlock2D"], layers_per_block=2),
    "nothing around": dict(KL, use_quant_conv=False, use_post_quant_conv=False, mid_block_add_attention=False, act_fn="mish"),
    "one level": dict(KL, block_out_channels=[4], down_block_types=["DownEncoderBlock2D"], up_block_types=["UpDecoderBlock2D"], act_fn="gelu"),
    "three levels": dict(KL, block_out_channels=[4, 6, 8], down_block_types=["DownEncoderBlock2D"] * 3, up_block_types=["UpDecoderBlock2D"] * 3),
    "tiny": TINY,
    "tiny with another activation": dict(TINY, act_fn="gelu", upsampling_scaling_factor=3),
    "tiny with stages without blocks": dict(TINY, num_encoder_blocks=[0, 1], num_decoder_blocks=[0, 0]),
}


def run(name, config):
    tiny = name.startswith("tiny")
    model = (AutoencoderTiny if tiny else AutoencoderKL)(**config).double().eval()
    with torch.no_grad():
        for key, p in model.state_dict().items():
            p.copy_(fill(key, list(p.shape)))
    # 9 x 8: the encoder pads what its stride does not divide.
    image = torch.sin(0.7 * torch.arange(2 * 2 * 9 * 8, dtype=torch.float64) + 0.3).reshape(2, 2, 9, 8).requires_grad_()
    if tiny:
        mean = model.encode(image).latents
        variance = []
    else:
        dist = model.encode(image).latent_dist
        mean, variance = dist.mean, dist.logvar.flatten().tolist()
    decoded = model.decode(mean).sample
    (decoded**2).sum().backward()
    return {"name": name, "config": {"_class_name": type(model).__name__} | config, "mean": mean.flatten().tolist(), "log_variance": variance,
            "decoded": decoded.flatten().tolist()[::4], "input_gradient": image.grad.flatten().tolist()[::4],
            "last_parameter": list(model.named_parameters())[-1][0],
            "gradient_norms": [float(p.grad.norm()) for p in model.parameters()]}


if __name__ == "__main__":
    torch.set_num_threads(1)
    lines = []
    for name, config in CASES.items():
        case = {k: rounded(v) if k != "config" else v for k, v in run(name, config).items()}
        lines.append(json.dumps(case))
        print(name, max(map(abs, case["mean"])), max(map(abs, case["decoded"])), len(case["gradient_norms"]))
    (HERE / "golden.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")
