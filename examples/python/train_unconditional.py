"""Trains an unconditional diffusion model on images, in the way that training scripts for diffusers do.

    python train_unconditional.py --model MODEL_FOLDER --data images.npy --output OUT

train_unconditional_distill.py beside this file is the same script with a merge plan in it.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F
from accelerate import Accelerator
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from diffusers.optimization import get_scheduler


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of a pipeline: unet/ and scheduler/")
    parser.add_argument("--data", required=True, help=".npy with images [N, C, H, W], in [-1, 1] or as bytes")
    parser.add_argument("--output", required=True, help="folder for the pipeline")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--steps", type=int, default=8, help="steps of the sampler")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--precision", default="no", choices=["no", "fp16", "bf16"])
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load_images(path):
    images = torch.from_numpy(np.load(path))
    return images / 127.5 - 1 if images.dtype == torch.uint8 else images.float()


def main():
    args = parse()
    torch.manual_seed(args.seed)
    accelerator = Accelerator(mixed_precision=args.precision)
    noise_scheduler = DDPMScheduler.from_pretrained(args.model, subfolder="scheduler")
    model = UNet2DModel.from_pretrained(args.model, subfolder="unet")
    images = load_images(args.data)
    loader = torch.utils.data.DataLoader(images, batch_size=args.batch, shuffle=True, drop_last=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    lr_scheduler = get_scheduler("constant_with_warmup", optimizer, num_warmup_steps=10)
    model, optimizer, loader, lr_scheduler = accelerator.prepare(model, optimizer, loader, lr_scheduler)

    for epoch in range(args.epochs):
        for clean in loader:
            noise = torch.randn_like(clean)
            steps = torch.randint(0, noise_scheduler.config.num_train_timesteps, (len(clean),), device=clean.device)
            noisy = noise_scheduler.add_noise(clean, noise, steps)
            loss = F.mse_loss(model(noisy, steps).sample, noise)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            lr_scheduler.step()
            optimizer.zero_grad()
        accelerator.print(f"loss {loss.item():.4g}")

    if accelerator.is_main_process:
        scheduler = noise_scheduler
        DDPMPipeline(unet=accelerator.unwrap_model(model), scheduler=scheduler).save_pretrained(args.output)
    accelerator.end_training()


if __name__ == "__main__":
    main()
