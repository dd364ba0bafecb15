"""Spectra of torch's tensors: of several processes, each with its share of a DistributedSampler, and of tensors without numbers."""

import mergeplan
import numpy as np
import pytest
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


def test_tensors_without_numbers_side_by_side_are_refused():
    x = torch.eye(4)
    for bad, words in [
        (x.to("meta"), "is a tensor on the device meta, which holds no numbers, expected one with numbers in it"),
        (x.to_sparse(), "is a tensor with the layout torch.sparse_coo, expected a dense one; x.to_dense.. makes it so"),
        (x.to_sparse_csr(), "is a tensor with the layout torch.sparse_csr, expected a dense one"),
    ]:
        with pytest.raises(ValueError, match=f"latents: {words}"):
            mergeplan.Spectrum.from_latents(bad)
        with pytest.raises(ValueError, match=f"latents: {words}"):
            mergeplan.Spectrum.from_latents([bad, bad])
    for bad, words in [
        (torch.ones(3, device="meta"), "on the device meta"),
        (torch.ones(3).to_sparse(), "with the layout torch.sparse_coo, expected a dense one"),
    ]:
        with pytest.raises(ValueError, match=f"variances: cannot be read as numbers .a tensor {words}"):
            mergeplan.Spectrum(bad)
