"""Spectra that several processes estimate together, each from its share of a DistributedSampler."""

import os
import subprocess
import sys
from pathlib import Path

import mergeplan
import numpy as np
import torch

HERE = Path(__file__).parent


def test_ranks_together_are_one_pass(tmp_path):
    torch.manual_seed(4)
    x = torch.randn(900, 2, 3, 3) * torch.linspace(0.5, 2, 18).view(2, 3, 3) + 0.3
    torch.save(x, tmp_path / "latents.pt")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    running = []
    for rank in range(3):
        command = [sys.executable, str(HERE / "spectrum_ranks.py"), str(rank), "3", str(tmp_path)]
        log = open(tmp_path / f"log-{rank}.txt", "w+")
        running.append((log, subprocess.Popen(command, stdout=log, stderr=log, env=environment)))
    for rank, (log, process) in enumerate(running):
        try:
            code = process.wait(timeout=200)
        except subprocess.TimeoutExpired:
            code = "no end after 200 s"
            for _, other in running:
                other.kill()
        log.seek(0)
        assert code == 0, f"process {rank}: {code}\n{log.read()[-3000:]}"
    whole = mergeplan.Spectrum.from_latents(x)
    for rank in range(3):
        merged = mergeplan.Spectrum.from_file(tmp_path / f"whole-{rank}.toml")
        assert merged.samples == 900 and merged.shape == (2, 3, 3)
        np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-11, atol=1e-11)
        for basis in ("diagonal", "dct", "pca"):
            ours, theirs = merged.in_basis(basis).variances, whole.in_basis(basis).variances
            np.testing.assert_allclose(ours, theirs, rtol=1e-10)
