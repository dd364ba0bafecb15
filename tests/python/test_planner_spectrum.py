"""Spectra of the package against those of mergeplan analyze, and every way of handing data over."""

import concurrent.futures
import functools
import multiprocessing
import pickle
import signal
import sys
import threading

import mergeplan
import numpy as np
import pytest
from planner_cases import close, run


def latents(n=500, shape=(3, 4, 4), seed=1):
    return np.random.default_rng(seed).normal(0.3, np.linspace(0.5, 2, int(np.prod(shape))), (n, int(np.prod(shape)))).reshape(n, *shape)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "uint8", "int16"])
@pytest.mark.parametrize("basis", ["auto", "diagonal", "dct", "pca"])
def test_equals_analyze(tmp_path, dtype, basis):
    x = (latents() * 20 + 100).clip(0, 255).astype(dtype) if dtype in ("uint8", "int16") else latents().astype(dtype)
    np.save(tmp_path / "x.npy", x)
    theirs = run("analyze", tmp_path / "x.npy", "--json", "--basis", basis, "--no-gaussianity")
    ours = mergeplan.Spectrum.from_latents(x, basis=basis)
    assert ours.basis == theirs["basis"] and ours.samples == 500 and ours.shape == (3, 4, 4)
    for name, figures in theirs["bases"].items():
        mine = ours.in_basis(name)
        close(mine.variances, figures["variances"])
        close(mine.variances_low, figures["variances_low"])
        close(mine.variances_high, figures["variances_high"])
        assert mine.regime == figures["regime"]
    close(ours.scaling_factor, theirs["scaling"]["scaling_factor"])
    close(ours.shift_factor, theirs["scaling"]["shift_factor"])


def leading_equals(ours, theirs):
    close(ours.variances, theirs["variances"])
    close(ours.variances_low, theirs["variances_low"])
    close(ours.variances_high, theirs["variances_high"])
    # Lengths of what is left where much cancels: of the size of the variances' rounding.
    assert np.all(np.abs(ours.errors - theirs["errors"]) <= 1e-12 * ours.variances[0])
    close(ours.share, theirs["share"])
    assert ours.interval == theirs["interval"]
    if "kurtosis" in theirs:
        close(ours.kurtosis, theirs["kurtosis"], 1e-10)
        assert np.allclose(ours.skewness, theirs["skewness"], rtol=0, atol=1e-10)


def low_rank(n, d, dtype="float32"):
    """Samples with a few variances that stand out."""
    random = np.random.default_rng(7)
    return (random.normal(size=(n, 6)) * [9, 7, 5, 3, 2, 1] @ random.normal(size=(6, d)) / 9 + random.normal(size=(n, d))).astype(dtype)


@pytest.mark.parametrize("flags, options", [
    ([], {}),
    (["--basis", "diagonal"], dict(basis="diagonal")),
    (["--basis", "dct", "--shrink", "oas", "--confidence", 0.8], dict(basis="dct", shrink="oas", confidence=0.8)),
    (["--bootstrap", 20, "--seed", 3], dict(bootstrap=20, seed=3)),
    (["--diagonal-only"], dict(diagonal_only=True)),
    (["--diagonal-only", "--seed", 9], dict(diagonal_only=True, seed=9)),
], ids=str)  # fmt: skip
def test_leading_directions_equal_those_of_analyze(tmp_path, flags, options):
    x = low_rank(700, 48).reshape(-1, 3, 4, 4)
    np.save(tmp_path / "x.npy", x)
    theirs = run("analyze", tmp_path / "x.npy", "--json", "--no-gaussianity", "--directions", 5, *flags)
    ours = mergeplan.Spectrum.from_latents(x, directions=5, **options)
    assert "pca" not in ours.bases and ours.vectors is None and ours.basis == theirs["basis"]
    assert len(ours.leading) == 5 and ours.leading.vectors.shape == (5, 48)
    leading_equals(ours.leading, theirs["leading"])
    for name, figures in theirs["bases"].items():
        close(ours.in_basis(name).variances, figures["variances"])


def test_leading_directions_are_by_default_those_of_many_dimensions(tmp_path):
    # 4,100 dimensions: 128 directions by themselves; the iterator is read once, the covariance serves all products.
    x = low_rank(150, 4100)
    np.save(tmp_path / "x.npy", x)
    theirs = run("analyze", tmp_path / "x.npy", "--json", "--no-gaussianity")
    ours = mergeplan.Spectrum.from_latents(x)
    assert ours.basis == theirs["basis"] == "diagonal" and "pca" not in ours.bases
    leading_equals(ours.leading, theirs["leading"])
    assert len(ours.leading) == 128 and "128 leading directions" in repr(ours)
    once = mergeplan.Spectrum.from_latents(iter([x[:60], x[60:]]), directions=6).leading
    close(once.variances, ours.leading.variances[:6], 1e-4)
    assert once.interval == "gaussian" and once.kurtosis is None
    assert mergeplan.Spectrum.from_latents(x, basis="diagonal").leading is None


def test_leading_directions_are_eigenvectors():
    x = low_rank(900, 60, "float64")
    values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
    for options in ({}, dict(diagonal_only=True)):
        found = mergeplan.Spectrum.from_latents(x, directions=4, **options)
        leading = found.leading
        np.testing.assert_allclose(leading.variances, values[::-1][:4], rtol=1e-5)
        np.testing.assert_allclose(np.abs(np.sum(leading.vectors * vectors.T[::-1][:4], axis=1)), 1, rtol=1e-5)
        left = np.cov(x, rowvar=False) @ leading.vectors.T - leading.vectors.T * leading.variances
        np.testing.assert_allclose(leading.errors, np.linalg.norm(left, axis=0), atol=1e-10)
        assert np.all(leading.errors <= 1e-3 * leading.variances) and leading.interval == "fourth-moment"
        assert leading.share == pytest.approx(leading.variances.sum() / values.sum(), rel=1e-10)
        assert np.all(leading.variances_low < leading.variances) and np.all(leading.variances < leading.variances_high)
    assert found.covariance is None and found.bases == ["diagonal"] and found.scaling_factor > 0


def test_leading_directions_of_an_iterable_and_its_passes():
    x = low_rank(500, 40)
    whole = mergeplan.Spectrum.from_latents(x, directions=3, diagonal_only=True)

    class Loader:
        opened = 0

        def __iter__(self):
            Loader.opened += 1
            return iter([x[:123], x[123:]])

    seen = []
    found = mergeplan.Spectrum.from_latents(Loader(), directions=3, diagonal_only=True, progress=seen.append)
    assert found.leading.vectors.tolist() == whole.leading.vectors.tolist() and sum(seen) == 500
    # The first pass, those of the products, and that of the fourth moments.
    assert 3 <= Loader.opened <= 42
    for once, options in ((iter([x]), {}), (x, dict(second_pass=False))):
        with pytest.raises(ValueError, match="directions: .*up to 40 passes.*read once only.*hand over an array.*leave out diagonal_only=True"):
            mergeplan.Spectrum.from_latents(once, directions=3, diagonal_only=True, **options)
    with pytest.raises(ZeroDivisionError):
        mergeplan.Spectrum.from_latents(x, diagonal_only=True, progress=lambda n: n // 0)

    class Growing(Loader):
        def __iter__(self):
            Growing.opened += 1
            return iter([x] * Growing.opened)

    Growing.opened = 0
    with pytest.raises(ValueError, match="a later pass read 1000 samples, the first 500"):
        mergeplan.Spectrum.from_latents(Growing(), directions=3, diagonal_only=True)


def test_leading_directions_are_kept(tmp_path):
    x = low_rank(300, 30)
    for options in ({}, dict(diagonal_only=True)):
        spectrum = mergeplan.Spectrum.from_latents(x, directions=3, **options)
        spectrum.to_file(tmp_path / "s.toml")
        for again in (pickle.loads(pickle.dumps(spectrum)), mergeplan.Spectrum.from_file(tmp_path / "s.toml")):
            assert again == spectrum and again.leading.vectors.tolist() == spectrum.leading.vectors.tolist()
        leading = pickle.loads(pickle.dumps(spectrum.leading))
        assert leading.errors.tolist() == spectrum.leading.errors.tolist() and repr(leading) == repr(spectrum.leading)
        assert leading.share == spectrum.leading.share and leading.vectors.shape == (3, 30)
        merged = spectrum.merge(mergeplan.Spectrum.from_latents(low_rank(100, 30)[:50], **options))
        assert merged.samples == 350 and (merged.covariance is None) == bool(options)


def test_ctrl_c_ends_the_leading_directions():
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    random = np.random.default_rng(2)

    # Gives the same samples at any pass; the signal comes at the third, among the products.
    class Loader:
        opened = 0

        def __iter__(self):
            Loader.opened += 1
            if Loader.opened == 3:
                signal.raise_signal(signal.SIGINT)
            return iter([x])

    x = random.normal(size=(200, 50))
    try:
        with pytest.raises(KeyboardInterrupt):
            mergeplan.Spectrum.from_latents(Loader(), directions=20, diagonal_only=True)
        assert Loader.opened == 3
        # And where the covariance is there: while it is multiplied.
        timer = threading.Timer(1.5, signal.raise_signal, [signal.SIGINT])
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            mergeplan.Spectrum.from_latents(random.normal(size=(300, 6000)).astype("float32"), directions=600)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, handler)


def test_leading_directions_of_moments():
    x = low_rank(400, 30, "float64")
    centred = x - x.mean(axis=0)
    moments = dict(count=400, shape=(30,), mean=x.mean(axis=0), m2=(centred**2).sum(axis=0), m3=(centred**3).sum(axis=0),
                   m4=(centred**4).sum(axis=0), comoment=centred.T @ centred)  # fmt: skip
    found = mergeplan.Spectrum.from_moments(moments, directions=4).leading
    whole = mergeplan.Spectrum.from_latents(x, directions=4).leading
    close(found.variances, whole.variances, 1e-9)
    with pytest.raises(ValueError, match="directions: need sums of products"):
        mergeplan.Spectrum.from_moments({**moments, "comoment": None}, directions=4)


def test_too_many_dimensions_for_a_covariance():
    x = np.random.default_rng(1).normal(size=(3, 20_001)).astype("float32")
    with pytest.raises(ValueError, match="more than 20000 dimensions.*diagonal_only=True.*directions=32") as caught:
        mergeplan.Spectrum.from_latents(x)
    assert "--" not in str(caught.value)
    close(mergeplan.Spectrum.from_latents(x, diagonal_only=True).variances, x.astype(float).var(axis=0, ddof=1), 1e-9)
    assert len(mergeplan.Spectrum.from_latents(x, diagonal_only=True, directions=2).leading) == 2


def test_a_plan_for_data_equals_the_commands(tmp_path):
    x = latents()
    spectrum = mergeplan.Spectrum.from_latents(x)
    spectrum.to_file(tmp_path / "my spectrum.toml")
    theirs = run("plan", tmp_path / "my spectrum.toml", "-T", 8, "--schedule", "cosine", "-s", 1.6, "--json")
    ours = mergeplan.plan(spectrum, "cosine", teacher_steps=8, train_time=1.6)
    assert ours.tree == theirs["tree"]
    close(ours.objective, theirs["objective"])
    close(ours.lower_bound, theirs["lower_bound"])
    again = mergeplan.Spectrum.from_file(tmp_path / "my spectrum.toml")
    assert again == spectrum


def numpy_is(a, b):
    assert np.array_equal(a.variances, b.variances) and a.samples == b.samples and a.shape == b.shape


def test_however_it_is_handed_over():
    x = latents()
    whole = mergeplan.Spectrum.from_latents(x)
    parts = [x[:7], x[7:7], x[7:300], x[300:]]
    numpy_is(mergeplan.Spectrum.from_latents(parts), whole)
    numpy_is(mergeplan.Spectrum.from_latents([(part, 0) for part in parts]), whole)
    numpy_is(mergeplan.Spectrum.from_latents([{"latents": part, "label": 3} for part in parts]), whole)
    numpy_is(mergeplan.Spectrum.from_latents(np.asfortranarray(x)), whole)
    numpy_is(mergeplan.Spectrum.from_latents(np.repeat(x, 2, axis=0)[::2]), whole)
    numpy_is(mergeplan.Spectrum.from_latents(x[::-1][::-1]), whole)
    numpy_is(mergeplan.Spectrum.from_latents(np.ascontiguousarray(x.transpose(0, 3, 2, 1)).transpose(0, 3, 2, 1)), whole)
    numpy_is(mergeplan.Spectrum.from_latents(x.astype(">f8")), whole)
    numpy_is(mergeplan.Spectrum.from_latents(memoryview(x)), whole)
    frozen = x.copy()
    frozen.flags.writeable = False
    numpy_is(mergeplan.Spectrum.from_latents(frozen), whole)
    numpy_is(mergeplan.Spectrum.from_latents(x[:9, 0, 0].tolist()), mergeplan.Spectrum.from_latents(x[:9, 0, 0]))
    numpy_is(mergeplan.Spectrum.from_latents(x[:9, 0, 0, 0].tolist()), mergeplan.Spectrum.from_latents(x[:9, 0, 0, 0]))
    # An iterator is read once, so its intervals are those of normal data; the variances are the same.
    once = mergeplan.Spectrum.from_latents(iter(parts))
    numpy_is(once, whole)
    numpy_is(mergeplan.Spectrum.from_latents(part for part in parts), whole)
    numpy_is(mergeplan.Spectrum.from_latents(x, second_pass=False), whole)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    x = latents().astype("float32")
    whole = mergeplan.Spectrum.from_latents(x)
    tensor = torch.from_numpy(x.copy())
    numpy_is(mergeplan.Spectrum.from_latents(tensor), whole)
    numpy_is(mergeplan.Spectrum.from_latents(tensor.clone().requires_grad_()), whole)
    numpy_is(mergeplan.Spectrum.from_latents(tensor.to(memory_format=torch.channels_last)), whole)
    data = torch.utils.data.TensorDataset(tensor, torch.arange(len(x)))
    numpy_is(mergeplan.Spectrum.from_latents(torch.utils.data.DataLoader(data, batch_size=64)), whole)
    half = tensor.bfloat16()
    numpy_is(mergeplan.Spectrum.from_latents(half), mergeplan.Spectrum.from_latents(half.float()))
    close(mergeplan.Spectrum(torch.tensor([0.5, 2.0])).variances, [0.5, 2.0])
    close(mergeplan.Spectrum(torch.tensor([0.5, 2.0], dtype=torch.bfloat16)).variances, [0.5, 2.0])
    one_by_one = torch.utils.data.DataLoader(data, batch_size=None)
    for single in (data, torch.utils.data.Subset(data, range(9)), one_by_one):
        with pytest.raises(ValueError, match="one by one.*DataLoader.dataset, batch_size=256."):
            mergeplan.Spectrum.from_latents(single)
    by_batch = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(data), 64, drop_last=False)
    numpy_is(mergeplan.Spectrum.from_latents(torch.utils.data.DataLoader(data, batch_size=None, sampler=by_batch)), whole)


def test_no_copy_of_the_whole(tmp_path):
    # 400 MB of samples that are mapped: what is read is a batch at a time.
    import resource

    path = tmp_path / "big.npy"
    big = np.lib.format.open_memmap(path, "w+", np.float32, (1_600_000, 64))
    big[:] = np.float32(1)
    big[::2] = 0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    limit = 300 * 1024

    class Batches:
        def __iter__(self):
            return (np.load(path, mmap_mode="r")[k : k + 50_000] + 0 for k in range(0, 1_600_000, 50_000))

    spectrum = mergeplan.Spectrum.from_latents(Batches(), basis="diagonal")
    assert spectrum.samples == 1_600_000
    close(spectrum.variances, np.full(64, 0.25 * 1_600_000 / 1_599_999), 1e-9)
    del big
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < limit


def test_iterables_are_opened_once_a_pass():
    class Loader:
        opened = 0

        def __iter__(self):
            Loader.opened += 1
            return iter([latents()])

    mergeplan.Spectrum.from_latents(Loader(), second_pass=False)
    assert Loader.opened == 1


def test_merge_is_one_pass_over_everything():
    x = latents(900)
    parts = [mergeplan.Spectrum.from_latents(x[k::3]) for k in range(3)]
    merged, whole = parts[0].merge(*parts[1:]), mergeplan.Spectrum.from_latents(x)
    close(merged.in_basis("diagonal").variances, whole.in_basis("diagonal").variances, 1e-10)
    close(np.sort(merged.in_basis("pca").variances), np.sort(whole.in_basis("pca").variances), 1e-8)
    assert merged.samples == 900
    with pytest.raises(ValueError, match="same data"):
        parts[0].merge(parts[0])
    with pytest.raises(ValueError, match="no mergeplan.Spectrum"):
        parts[0].merge(3)
    with pytest.raises(ValueError, match="list of variances"):
        parts[0].merge(mergeplan.Spectrum([1.0]))


def part_of(path, first, last):
    """What a worker of a cluster does with its partition."""
    return mergeplan.Spectrum.from_latents(np.load(path, mmap_mode="r")[first:last])


def test_partitions_on_workers_are_one_pass(tmp_path):
    # As Dask, Ray or Spark do it: partitions of unequal size, spectra that travel by pickle and are joined two by two, in any order.
    x = latents(1000)
    np.save(tmp_path / "x.npy", x)
    borders = [0, 130, 131 + 9, 600, 1000]
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(part_of, [tmp_path / "x.npy"] * 4, borders[:-1], borders[1:]))
    whole = mergeplan.Spectrum.from_latents(x)
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        merged = functools.reduce(lambda a, b: a.merge(b), [parts[k] for k in order])
        assert merged.samples == 1000
        np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(merged.covariance, whole.covariance, rtol=1e-11, atol=1e-11)
        for basis in ("diagonal", "dct", "pca"):
            close(merged.in_basis(basis).variances, whole.in_basis(basis).variances, 1e-9)


def test_ctrl_c_ends_the_eigenvectors():
    # Where the tests run in the background, SIGINT is ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    x = np.random.default_rng(2).normal(size=(1501, 1500)).astype(np.float32)
    timer = threading.Timer(1, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            mergeplan.Spectrum.from_latents(x, basis="pca")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)


def test_pickle():
    for spectrum in (mergeplan.Spectrum.from_latents(latents()), mergeplan.Spectrum([0.5, 2.0])):
        again = pickle.loads(pickle.dumps(spectrum))
        assert again == spectrum and again.basis == spectrum.basis


def test_given_variances():
    spectrum = mergeplan.Spectrum(variances=np.array([0.5, 2.0], dtype="float32"))
    assert (spectrum.regime, spectrum.basis, spectrum.dimensions, spectrum.shape) == ("mixed", "given", 2, ())
    assert mergeplan.Spectrum([0.1, 1.0]).regime == "low" and mergeplan.Spectrum([3]).regime == "high"
    with pytest.raises(ValueError, match="list of variances"):
        spectrum.covariance
    with pytest.raises(ValueError, match="numpy.save"):
        spectrum.to_file("nowhere.toml")


def nan_at(k):
    x = latents(20)
    x[k, 0, 0, 0] = np.nan
    return x


@pytest.mark.parametrize("data, words", [
    (np.zeros((1, 3)), "sample"),
    (np.zeros((0, 3)), "no sample"),
    (np.zeros((5, 0)), "expected"),
    (np.float64(3.0), "first axis"),
    (nan_at(11), "sample 11"),
    (np.zeros((5, 2), dtype=complex), "float16"),
    ([], "no array"),
    ([np.zeros((4, 2)), np.zeros((4, 3))], "shape"),
    ([np.zeros((4, 2)), np.zeros((4, 2), "f4")], "type of number"),
    (3, "iterable"),
    ("latents.npy", "path"),
    ([np.zeros(3), np.ones(3)], "one axis.*stack them.*DataLoader"),
    ([(np.zeros(3), 0)], "one axis.*stack them"),
    ((row for row in np.zeros((5, 3))), "one axis"),
    (np.ma.masked_greater(np.ones((5, 3)), 2), "masked array"),
    ([np.ma.masked_greater(np.ones((5, 3)), 2)], "masked array"),
    ([{"weights": np.zeros((4, 2))}], "keys"),
    (np.array(["a", "b"]), "cannot be read|expected"),
])
def test_bad_data(data, words):
    with pytest.raises(ValueError, match=words):
        mergeplan.Spectrum.from_latents(data)


def test_samples_that_are_not_finite_can_be_left_out():
    spectrum = mergeplan.Spectrum.from_latents(nan_at(11), skip_nonfinite=True)
    assert (spectrum.samples, spectrum.skipped) == (19, 1)


def test_an_error_of_the_data_is_raised_as_it_is():
    def broken():
        yield latents(10)
        raise OSError("disk on fire")

    with pytest.raises(OSError, match="disk on fire"):
        mergeplan.Spectrum.from_latents(broken())

    def stopped():
        yield latents(10)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mergeplan.Spectrum.from_latents(stopped())


def test_other_data_on_the_second_pass_is_noticed():
    class Shrinking:
        n = 40

        def __iter__(self):
            Shrinking.n -= 1
            return iter([latents(Shrinking.n)])

    with pytest.raises(ValueError, match="second pass"):
        mergeplan.Spectrum.from_latents(Shrinking(), basis="pca")


def test_damaged_files(tmp_path):
    spectrum = mergeplan.Spectrum.from_latents(latents())
    spectrum.to_file(tmp_path / "s.toml")
    arrays = tmp_path / "s.npz"
    whole = arrays.read_bytes()
    arrays.write_bytes(whole[:-100])
    with pytest.raises(ValueError):
        mergeplan.Spectrum.from_file(tmp_path / "s.toml")
    arrays.write_bytes(whole)
    (tmp_path / "s.toml").write_text("format = 1\nnonsense = ")
    with pytest.raises(ValueError, match="s.toml"):
        mergeplan.Spectrum.from_file(tmp_path / "s.toml")
    with pytest.raises(ValueError, match="nothing.toml"):
        mergeplan.Spectrum.from_file(tmp_path / "nothing.toml")


def test_arrays_of_others_are_not_replaced(tmp_path):
    spectrum = mergeplan.Spectrum.from_latents(latents())
    own = tmp_path / "latents.npz"
    np.savez(own, latents=latents())
    before = own.read_bytes()
    with pytest.raises(ValueError, match="latents.npz.*holds.*give another name"):
        spectrum.to_file(tmp_path / "latents.toml")
    assert own.read_bytes() == before and not (tmp_path / "latents.toml").exists()
    own.unlink()
    spectrum.to_file(tmp_path / "latents.toml")
    spectrum.to_file(tmp_path / "latents.toml")
    assert mergeplan.Spectrum.from_file(tmp_path / "latents.toml") == spectrum


def test_equality_with_other_things():
    levels = mergeplan.Schedule("cosine", 4)
    plan = mergeplan.strategy("boot", levels)
    for one, another in (
        (mergeplan.Spectrum([1.0]), mergeplan.Spectrum([2.0])),
        (mergeplan.Spectrum.from_latents(latents()), mergeplan.Spectrum([1.0])),
        (levels, mergeplan.Schedule("cosine", 5)),
        (plan, mergeplan.strategy("vanilla", levels)),
        (plan.merges[0], plan.merges[1]),
    ):
        for other in (None, 3, "x", another):
            assert (one == other) is False and (other == one) is False and (one != other) is True
        assert (one == one) is True and (one != one) is False
        assert one.__eq__(None) is NotImplemented and one in [None, one]


def test_paths_and_masks_are_not_variances(tmp_path):
    for path in ("latents.toml", tmp_path / "latents.toml"):
        with pytest.raises(ValueError, match='latents.toml".*Spectrum.from_file'):
            mergeplan.plan(path, "cosine", teacher_steps=4, train_time=1)
        with pytest.raises(ValueError, match="Spectrum.from_file"):
            mergeplan.Spectrum(path)
    with pytest.raises(ValueError, match="masked array"):
        mergeplan.Spectrum(np.ma.masked_greater(np.ones(3), 2))
    with pytest.raises(ValueError, match="cannot be read as numbers") as caught:
        mergeplan.Spectrum([1.0, "a"])
    assert "Traceback" not in str(caught.value) and "\n" not in str(caught.value)


def test_errors_name_pythons_arguments():
    with pytest.raises(ValueError, match="skip_nonfinite=True") as caught:
        mergeplan.Spectrum.from_latents(nan_at(11))
    assert "--" not in str(caught.value)
    with pytest.raises(ValueError, match="teacher_steps .of Schedule: steps. is missing") as caught:
        mergeplan.Schedule("cosine")
    assert "--" not in str(caught.value)


def test_progress_counts_samples():
    seen = []
    mergeplan.Spectrum.from_latents([latents(30), latents(20)], progress=seen.append)
    assert sum(seen) == 50
    with pytest.raises(ZeroDivisionError):
        mergeplan.Spectrum.from_latents(latents(30), progress=lambda n: n // 0)


def test_references_are_given_back():
    x = latents()
    before = sys.getrefcount(x)
    spectrum = mergeplan.Spectrum.from_latents(x)
    assert sys.getrefcount(x) == before
    kept = spectrum.variances
    del spectrum
    assert np.isfinite(kept).all()
