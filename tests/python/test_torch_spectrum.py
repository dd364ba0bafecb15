"""Spectra that several processes estimate together, each from its share of a DistributedSampler."""

import mergeplan
import numpy as np
import torch

from processes import run_ranks


def test_ranks_together_are_one_pass(tmp_path):
    torch.manual_seed(4)
    x = torch.randn(900, 2, 3, 3) * torch.linspace(0.5, 2, 18).view(2, 3, 3) + 0.3
    torch.save(x, tmp_path / "latents.pt")
    run_ranks("spectrum_ranks.py", 3, tmp_path)
    whole = mergeplan.Spectrum.from_latents(x)
    for rank in range(3):
        merged = mergeplan.Spectrum.from_file(tmp_path / f"whole-{rank}.toml")
        assert merged.samples == 900 and merged.shape == (2, 3, 3)
        np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-11, atol=1e-11)
        for basis in ("diagonal", "dct", "pca"):
            ours, theirs = merged.in_basis(basis).variances, whole.in_basis(basis).variances
            np.testing.assert_allclose(ours, theirs, rtol=1e-10)
