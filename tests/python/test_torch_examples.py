"""examples/python run, and say of themselves what is true."""

import difflib
import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples/python"


@pytest.fixture
def run(monkeypatch, capsys):
    """Runs an example as a program, in this process: torch and diffusers take seconds to import."""

    def one(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / script), run_name="__main__")
        return capsys.readouterr().out

    yield one
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)


def changed_lines():
    """(lines that go, lines that come) between the two scripts, without their docstrings."""
    def body(name):
        text = (EXAMPLES / name).read_text()
        return text[text.index("import argparse") :].splitlines()

    lines = list(difflib.unified_diff(body("train_unconditional.py"), body("train_unconditional_distill.py"), n=0))[2:]
    return [x[1:] for x in lines if x.startswith("-")], [x[1:] for x in lines if x.startswith("+")]


def test_a_plan_costs_ten_lines():
    gone, come = changed_lines()
    assert len(gone) <= 10 and len(come) <= 10
    readme = (EXAMPLES / "README.md").read_text()
    shown = [line[4:] for line in readme.splitlines() if line.startswith(("    -", "    +"))]
    assert [x[1:] for x in shown if x[0] == "-"] == gone and [x[1:] for x in shown if x[0] == "+"] == come


def test_the_training_script_distils(tmp_path, run):
    from diffusers import DDPMPipeline, DDPMScheduler, DiffusionPipeline, UNet2DModel

    torch.manual_seed(0)
    unet = UNet2DModel(
        sample_size=8, in_channels=1, out_channels=1, block_out_channels=(8, 8), layers_per_block=1, norm_num_groups=4,
        down_block_types=("DownBlock2D",) * 2, up_block_types=("UpBlock2D",) * 2,
    )
    DDPMPipeline(unet, DDPMScheduler(prediction_type="epsilon")).save_pretrained(tmp_path / "teacher model")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "images.npy", (rng.random((40, 1, 8, 8)) * 255).astype(np.uint8))
    out = run(
        "train_unconditional_distill.py", "--model", tmp_path / "teacher model", "--data", tmp_path / "images.npy",
        "--output", tmp_path / "student", "--epochs", 1, "--batch", 8, "--steps", 4,
    )
    assert out.count("loss") == 2  # two rounds of halving
    import mergeplan.diffusers

    student = DiffusionPipeline.from_pretrained(tmp_path / "student")
    assert isinstance(student.scheduler, mergeplan.diffusers.MergeScheduler)
    student.set_progress_bar_config(disable=True)
    images = student(batch_size=2, output_type="np", num_inference_steps=1).images
    assert images.shape == (2, 8, 8, 1) and np.isfinite(images).all()
    student.scheduler.set_timesteps()
    assert len(student.scheduler.timesteps) == 1
    moved = sum(float((a - b).detach().abs().sum()) for a, b in zip(student.unet.parameters(), unet.parameters()))
    assert moved > 0


def test_adapters_are_distilled(tmp_path, run):
    pytest.importorskip("peft")
    out = run("distill_lora.py", "--output", tmp_path / "adapters", "--updates", 3, "--guidance", 2)
    assert "steps 1..4: held-out error" in out
    files = {path.name for path in (tmp_path / "adapters").iterdir()}
    assert files == {"pytorch_lora_weights.safetensors", "scheduler"}
    from safetensors.torch import load_file

    tensors = load_file(tmp_path / "adapters/pytorch_lora_weights.safetensors")
    assert tensors and all("lora" in name for name in tensors)
    assert any(float(v.abs().max()) > 0 for n, v in tensors.items() if "lora_B" in n or "lora.up" in n)


def test_the_notebook_runs():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    book = nbformat.read(EXAMPLES / "merge_plans.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in book.cells if cell.cell_type == "code"), "outputs are not kept in git"
    os.environ["PYTHONPATH"] = ":".join(p for p in sys.path if p)
    client = nbclient.NotebookClient(book, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(EXAMPLES)}})
    client.execute()
    outputs = [out for cell in book.cells if cell.cell_type == "code" for out in cell.outputs]
    assert any("image/svg+xml" in out.get("data", {}) for out in outputs)
    assert not any(out.output_type == "error" for out in outputs)
