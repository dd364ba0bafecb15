"""Distils a text-to-image U-Net with adapters: the base model stays as it is, the student is a small LoRA file.

    python distill_lora.py --output OUT

By default it makes a tiny U-Net of random weights and random text embeddings, to show the parts; `--model` takes the folder of a
pipeline (unet/, scheduler/), `--data` an .npz with `latents` [N, C, H, W] and `embeddings` [N, tokens, width].
"""

import argparse
import os

import numpy as np
import torch
from diffusers import DDIMScheduler, UNet2DConditionModel
from peft import LoraConfig

from mergeplan import Schedule, strategy
from mergeplan.diffusers import MergeScheduler
from mergeplan.torch import MergeDistiller


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="folder of a pipeline; left out: tiny and random")
    parser.add_argument("--data", help=".npz; left out: random")
    parser.add_argument("--output", required=True)
    parser.add_argument("--strategy", default="boot")
    parser.add_argument("--steps", type=int, default=4, help="steps of the teacher")
    parser.add_argument("--updates", type=int, default=50, help="for every merge")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--guidance", type=float, default=1.0, help="of the teacher; the student learns it")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load(args):
    if args.model:
        unet = UNet2DConditionModel.from_pretrained(args.model, subfolder="unet")
        scheduler = DDIMScheduler.from_pretrained(args.model, subfolder="scheduler", timestep_spacing="trailing")
        return unet, scheduler
    unet = UNet2DConditionModel(
        sample_size=8,
        block_out_channels=(16, 16),
        layers_per_block=1,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        cross_attention_dim=16,
        attention_head_dim=2,
        norm_num_groups=4,
    )
    scheduler = DDIMScheduler(
        beta_schedule="scaled_linear", beta_start=0.00085, beta_end=0.012, clip_sample=False, set_alpha_to_one=False,
        prediction_type="v_prediction", timestep_spacing="trailing",
    )
    return unet, scheduler


def load_data(args, unet):
    if args.data:
        arrays = np.load(args.data)
        return torch.from_numpy(arrays["latents"]).float(), torch.from_numpy(arrays["embeddings"]).float()
    size, width = unet.config.sample_size, unet.config.cross_attention_dim
    return torch.randn(64, unet.config.in_channels, size, size), torch.randn(64, 5, width)


def main():
    args = parse()
    torch.manual_seed(args.seed)
    unet, scheduler = load(args)
    latents, embeddings = load_data(args, unet)
    unet.requires_grad_(False)
    unet.add_adapter(LoraConfig(r=args.rank, lora_alpha=args.rank, target_modules=["to_q", "to_k", "to_v", "to_out.0"]))

    def guided(network, z, t, condition):
        """The teacher with classifier-free guidance; an embedding of zeros stands for the empty prompt."""
        text = condition["encoder_hidden_states"]
        with_text = network(z, t, text).sample
        if args.guidance == 1:
            return with_text
        without = network(z, t, torch.zeros_like(text)).sample
        return without + args.guidance * (with_text - without)

    plan = strategy(args.strategy, Schedule.from_diffusers(scheduler, args.steps))
    # No teacher: the base model is one, and adapters begin as nothing.
    distiller = MergeDistiller(
        plan, student=unet, updates=args.updates, teacher_forward=guided, held_out=latents[:16],
        held_out_condition={"encoder_hidden_states": embeddings[:16]},
    )
    optimizer = torch.optim.AdamW([p for p in unet.parameters() if p.requires_grad], lr=args.lr)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(latents, embeddings), batch_size=args.batch, shuffle=True, drop_last=True
    )
    for round in distiller.rounds(optimizer):
        for clean, text in round.over(loader):
            batch = distiller.batch(clean, encoder_hidden_states=text)
            loss = distiller.loss(unet(batch.z, batch.t, text).sample, batch)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    for record in distiller.records:
        print(f"steps {record.first}..{record.last}: held-out error {record.initial_loss:.4g} -> {record.final_loss:.4g}")

    unet.save_lora_adapter(args.output)
    MergeScheduler.from_config(scheduler.config, plan=plan).save_pretrained(os.path.join(args.output, "scheduler"))
    size = sum(os.path.getsize(os.path.join(args.output, f)) for f in os.listdir(args.output) if f.endswith(".safetensors"))
    whole = sum(p.nbytes for p in unet.parameters())
    print(f"wrote {size / 1e3:.0f} kB of adapters to {args.output}; the model has {whole / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
