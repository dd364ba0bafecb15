"""Moments summed by torch, in one process and in several, against one pass of the planner."""

import copy

import mergeplan
import numpy as np
import pytest
import torch
from mergeplan.torch import LatentMoments

from processes import run_ranks


def latents(n=600, offset=0.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(3)
    mix = torch.randn(12, 12, generator=generator, dtype=torch.float64)
    x = (torch.rand(n, 12, generator=generator, dtype=torch.float64) ** 2) @ mix + offset
    return x.reshape(n, 3, 2, 2).to(dtype)


def moments_of(batches, **options):
    moments = LatentMoments(**options)
    for batch in batches:
        moments.update(batch)
    return moments


def assert_same(ours, whole, tolerance=1e-11):
    assert ours.samples == whole.samples
    for basis in ("diagonal", "dct", "pca"):
        a, b = ours.in_basis(basis), whole.in_basis(basis)
        np.testing.assert_allclose(a.variances, b.variances, rtol=tolerance)
        np.testing.assert_allclose(a.variances_high, b.variances_high, rtol=tolerance)
    np.testing.assert_allclose(ours.mean, whole.mean, rtol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes", [(600,), (1, 599), (100, 0, 37, 463)])
def test_moments_are_those_of_one_pass(dtype, sizes):
    x = latents(dtype=dtype)
    whole = mergeplan.Spectrum.from_latents(x, second_pass=False)
    assert_same(mergeplan.Spectrum.from_moments(moments_of(x.split(sizes))), whole)


def test_large_offsets_and_small_chunks(monkeypatch):
    import mergeplan.torch.moments as module

    monkeypatch.setattr(module, "_CHUNK", 50)
    x = latents(offset=1e6, dtype=torch.float64)
    whole = mergeplan.Spectrum.from_latents(x, second_pass=False)
    assert_same(mergeplan.Spectrum.from_moments(moments_of(x.split(200))), whole, tolerance=1e-8)


def test_merging_and_a_checkpoint(tmp_path):
    x = latents()
    a, b = moments_of([x[:250]]), moments_of([x[250:]])
    torch.save(a.state_dict(), tmp_path / "a.pt")
    again = LatentMoments()
    again.load_state_dict(torch.load(tmp_path / "a.pt"))
    again.merge(b)
    again.merge(LatentMoments())
    a.merge(b)
    assert torch.equal(a.comoment, again.comoment) and torch.equal(a.m4, again.m4)
    assert_same(mergeplan.Spectrum.from_moments(a), mergeplan.Spectrum.from_latents(x, second_pass=False))


def test_without_covariance_there_is_the_diagonal_only():
    x = latents()
    spectrum = mergeplan.Spectrum.from_moments(moments_of([x], covariance=False))
    whole = mergeplan.Spectrum.from_latents(x, basis="diagonal")
    np.testing.assert_allclose(spectrum.variances, whole.variances, rtol=1e-12)
    np.testing.assert_allclose(spectrum.variances_low, whole.variances_low, rtol=1e-11)


def test_moments_of_numpy_by_name():
    x = latents(dtype=torch.float64).numpy().reshape(600, 12)
    y = x - x.mean(0)
    given = {"count": 600, "shape": (12,), "mean": x.mean(0), "m2": (y**2).sum(0), "comoment": y.T @ y}
    spectrum = mergeplan.Spectrum.from_moments(given, basis="pca")
    np.testing.assert_allclose(np.sort(spectrum.variances), np.linalg.eigvalsh(np.cov(x.T)), rtol=1e-11)


def test_wrong_input_is_named_and_adds_nothing():
    moments = moments_of([latents()])
    before = moments.m2.clone()
    broken = latents(4)
    broken[2, 1, 0, 1] = float("nan")
    for x, words in [
        (broken, "not finite.*in dimension 5"),
        (latents(4).reshape(4, 12), r"shape \(12,\), expected \(3, 2, 2\)"),
        (torch.zeros(5), r"has the shape \(5,\)"),
        (torch.zeros(5, 3, 2, 2, dtype=torch.complex64), "complex64"),
    ]:
        with pytest.raises(ValueError, match=words):
            moments.update(x)
    with pytest.raises(TypeError, match="ndarray"):
        moments.update(np.zeros((5, 3)))
    assert moments.count == 600 and torch.equal(moments.m2, before)
    with pytest.raises(ValueError, match="this one itself"):
        moments.merge(moments)
    with pytest.raises(ValueError, match="covariance=False, expected True"):
        moments.merge(LatentMoments(covariance=False))
    with pytest.raises(RuntimeError, match="init_process_group"):
        moments.all_reduce()
    with pytest.raises(ValueError, match="of 0 samples"):
        mergeplan.Spectrum.from_moments(LatentMoments())
    with pytest.raises(ValueError, match="of 1 samples"):
        mergeplan.Spectrum.from_moments(moments_of([latents(1)]))
    with pytest.raises(ValueError, match="is a list without count, shape, mean, m2"):
        mergeplan.Spectrum.from_moments([1, 2])
    with pytest.raises(ValueError, match="m2 is -1 in dimension 0"):
        mergeplan.Spectrum.from_moments({"count": 3, "shape": (1,), "mean": [0], "m2": [-1]})
    with pytest.raises(ValueError, match="count is 2.5"):
        mergeplan.Spectrum.from_moments({"count": 2.5, "shape": (1,), "mean": [0], "m2": [1]})


def test_processes_with_a_distributed_sampler(tmp_path):
    run_ranks("moments_ranks.py", 3, tmp_path)
    (whole, few), *others = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    for other, other_few in others:
        assert all(torch.equal(whole[name], other[name]) for name in ("mean", "m2", "m3", "m4", "comoment"))
        assert torch.equal(few["m4"], other_few["m4"])
    assert_same(mergeplan.Spectrum.from_moments(whole), mergeplan.Spectrum.from_latents(latents(), second_pass=False))
    assert few["count"] == 600 and few["comoment"] is None
    again = mergeplan.Spectrum.from_latents(latents(), basis="diagonal")
    np.testing.assert_allclose(mergeplan.Spectrum.from_moments(few).variances, again.variances, rtol=1e-12)


@pytest.mark.parametrize("entries, words", [
    (dict(covariance=1), "covariance is 1, expected True or False"),
    (dict(count=-1), "count is -1, expected a whole number"),
    (dict(count=2.0), "count is 2.0"),
    (dict(count=0), "mean is a Tensor, expected None"),
    (dict(shape=None), "shape is None, expected the axes"),
    (dict(shape=(3, 0, 2)), "shape is .3, 0, 2."),
    (dict(shape=(3, 2)), r"mean is a Tensor .*expected a dense float64 tensor of shape \(6,\)"),
    (dict(mean=None), "mean is a NoneType"),
    (dict(mean=[0.0] * 12), "mean is a list"),
    (dict(m2=-torch.ones(12, dtype=torch.float64)), "m2 holds numbers that cannot be, expected finite ones, none below 0"),
    (dict(m3=torch.full((12,), float("nan"), dtype=torch.float64)), "m3 holds numbers that cannot be"),
    (dict(m4=torch.ones(12)), "m4 is a Tensor torch.strided torch.float32"),
    (dict(m4=torch.ones(12, dtype=torch.float64).to_sparse()), "m4 is a Tensor torch.sparse_coo"),
    (dict(m4=torch.ones(12, dtype=torch.float64, device="meta")), "m4 is a Tensor .* on meta"),
    (dict(comoment=None), "comoment is a NoneType"),
    (dict(covariance=False), "comoment is a Tensor, expected None"),
], ids=lambda x: str(x)[:30].replace("\n", " "))  # fmt: skip
def test_a_damaged_state_is_refused_and_changes_nothing(entries, words):
    moments = moments_of([latents()])
    before = moments.state_dict()
    with pytest.raises(ValueError, match=words):
        moments.load_state_dict({**before, **entries})
    assert moments.state_dict() == before
    for state in ([], {**before, "more": 1}):
        with pytest.raises(ValueError, match="has the names"):
            moments.load_state_dict(state)


def test_dense_numbers_only():
    for bad in (torch.eye(3).to_sparse(), torch.ones(3, 2, device="meta")):
        with pytest.raises(ValueError, match="expected a dense tensor with numbers in it"):
            LatentMoments().update(bad)


@pytest.mark.parametrize("options, words", [
    (dict(confidence=1.5), "confidence is 1.5; expected a number between 0 and 1"),
    (dict(confidence="x"), "confidence: is a str"),
    (dict(basis=3), "basis: is a int"),
    (dict(shrink="ledoit-wolf"), "needs the samples, which moments do not hold"),
    (dict(threads=-1), "threads: is -1"),
    (dict(name=None), "name: is None"),
], ids=str)  # fmt: skip
def test_options_of_a_spectrum_of_moments(options, words):
    with pytest.raises((ValueError, TypeError), match=words):
        mergeplan.Spectrum.from_moments(moments_of([latents()]), **options)


def test_without_a_covariance_there_is_none():
    spectrum = mergeplan.Spectrum.from_moments(moments_of([latents()], covariance=False))
    assert spectrum.covariance is None and spectrum.vectors is None and spectrum.bases == ["diagonal"]
    for wrong in (None, [1, 2], "moments"):
        with pytest.raises(ValueError, match="without count, shape, mean, m2"):
            mergeplan.Spectrum.from_moments(wrong)


def test_what_is_refused_changes_nothing():
    """Third and fourth powers overflow long before the values do."""
    for covariance in (True, False):
        moments = moments_of([latents()], covariance=covariance)
        before = {name: None if value is None else copy.deepcopy(value) for name, value in moments.state_dict().items()}

        def unchanged():
            for name, value in moments.state_dict().items():
                assert torch.equal(value, before[name]) if isinstance(value, torch.Tensor) else value == before[name], name

        for power, words in (
            (90, "latents: hold a value that is too large for its fourth power, in dimension 5"),
            (160, "latents: hold a value that is not finite, or too large to be squared, in dimension 5"),
            (float("inf"), "not finite"),
        ):
            bad = torch.zeros(4, 3, 2, 2, dtype=torch.float64)
            bad[1, 1, 0, 1] = 10.0**power
            with pytest.raises(ValueError, match=words):
                moments.update(bad)
            unchanged()
        # Each alone can be, both together cannot.
        far = torch.full((4, 3, 2, 2), 1e90, dtype=torch.float64)
        with pytest.raises(ValueError, match="latents: with those that were added before they are too large for its|too large for"):
            moments.update(far)
        unchanged()
        other = moments_of([far], covariance=covariance)
        with pytest.raises(ValueError, match="other: with the samples of this one they are too large for its fourth power"):
            moments.merge(other)
        unchanged()
    empty = LatentMoments()
    with pytest.raises(ValueError, match="fourth power"):
        empty.update(torch.tensor([[0.0, 1e90], [1.0, 0.0]], dtype=torch.float64))
    assert empty.count == 0 and empty.shape is None and empty.mean is None
