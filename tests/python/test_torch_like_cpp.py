"""A UNet2DModel distilled here and by `mergeplan distill`: the same losses within noise."""

import csv
import os
import subprocess

import numpy as np
import pytest
import torch

import diffusers_cases as cases
import torch_cases
from diffusers import DDIMScheduler, UNet2DModel
from mergeplan.torch import MergeDistiller

BINARY = os.environ.get("MERGEPLAN_BIN", "")
STEPS, UPDATES, BATCH, RATE, ROWS = 4, 40, 16, 1e-3, 256


@pytest.mark.parametrize("prediction,init,stored", [("v_prediction", "child-jump", "bytes"), ("sample", "jump", "floats")])
def test_the_same_question_has_the_same_losses(tmp_path, prediction, init, stored):
    if not BINARY or not os.path.exists(BINARY):
        pytest.skip("set MERGEPLAN_BIN to a mergeplan with LibTorch")
    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4,
        down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
    )
    unet.save_pretrained(tmp_path / "teacher")
    old = DDIMScheduler(prediction_type=prediction, timestep_spacing="trailing", clip_sample=False)
    old.save_config(tmp_path / "scheduler")
    images = torch.nn.functional.avg_pool2d(torch.randn(512, 1, 10, 10), 3, 1) * 2
    if stored == "bytes":  # pixels, which become -1..1; floats are taken as they are
        pixels = ((images + 1) * 127.5).round().clamp(0, 255).to(torch.uint8)
        np.save(tmp_path / "images.npy", pixels.numpy())
        images = pixels / 127.5 - 1
    else:
        np.save(tmp_path / "images.npy", images.numpy())
    done = subprocess.run(
        [
            BINARY, "distill", "--strategy", "progressive", "--teacher", f"unet:{tmp_path / 'teacher'}",
            "--schedule", str(tmp_path / "scheduler/scheduler_config.json"), "--teacher-steps", str(STEPS),
            "--iterations", str(UPDATES), "--batch", str(BATCH), "--lr", str(RATE), "--optimizer", "adam", "--init", init,
            "--data", str(tmp_path / "images.npy"), "--held-out-rows", str(ROWS), "--threads", "1", "--quiet",
            "-o", str(tmp_path / "run"),
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    if "LibTorch" in done.stderr or "mergeplan-torch" in done.stderr:
        pytest.skip(f"this mergeplan has no LibTorch: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "run/merges.csv", newline="") as file:
        theirs = {
            (int(row["first"]), int(row["last"])): (float(row["initial_loss"]), float(row["final_loss"]))
            for row in csv.DictReader(file)
        }

    schedule = cases.schedule_of(old, STEPS)
    plan = torch_cases.make_plan(STEPS, [torch_cases.progressive(STEPS)], schedule, init)
    distiller = MergeDistiller(plan, unet, updates=UPDATES, held_out=images[:ROWS], seed=1)
    optimizer = torch.optim.Adam(distiller.student.parameters(), RATE)
    generator = torch.Generator().manual_seed(2)
    for stage in distiller.rounds(optimizer):
        for _ in stage:
            # The C++ runtime draws as many rows for each merge of a round.
            rows = torch.randint(len(images), (BATCH * len(stage.merges),), generator=generator)
            batch = distiller.batch(images[rows])
            distiller.loss(distiller.student(batch.z, batch.t).sample, batch, "sum").backward()
            optimizer.step()
            optimizer.zero_grad()
    lines = []
    for record in distiller.records:
        start, end = theirs[record.first, record.last]
        lines.append(
            f"[{record.first}, {record.last}] start {record.initial_loss:.5g} here, {start:.5g} there; "
            f"end {record.final_loss:.5g} here, {end:.5g} there"
        )
        assert record.landing == (record.first - 1)
        # Held-out rows are others, and so is the noise of the training.
        if record.round == 1:  # later targets are children that were trained on other noise
            assert record.initial_loss == pytest.approx(start, rel=0.05), "\n".join(lines)
        assert record.final_loss == pytest.approx(end, rel=0.3), "\n".join(lines)
    print("\n".join(lines))
    assert len(distiller.records) == len(theirs) == 3
