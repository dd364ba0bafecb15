"""What the extension module asks of Python: arguments of many kinds as arrays, configs and callbacks.

Nothing here imports torch or diffusers: their objects are known by what they have.
"""

from __future__ import annotations

import json
import os
import sys


def _is_torch(x):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def _is_array(x):
    """Something with axes: a scalar of numpy or torch is a number."""
    if isinstance(x, (memoryview, bytearray, bytes)):
        return True
    return (hasattr(x, "__dlpack__") or hasattr(x, "__array__")) and getattr(x, "ndim", 1) > 0


def _refuse_masked(x, what):
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ma.MaskedArray):
        raise ValueError(
            f"{what}: is a masked array, whose masked entries have no value; leave those samples out, or fill them "
            "(x.filled(value))"
        )


def _without_numbers(x):
    """Words where a torch tensor has no numbers that lie side by side; else None."""
    torch = sys.modules["torch"]
    if x.is_meta:
        return "on the device meta, which holds no numbers, expected one with numbers in it"
    if x.layout != torch.strided:
        return f"with the layout {x.layout}, expected a dense one; x.to_dense() makes it so"
    return None


def array(x):
    """An object that the extension can read where it lies; a copy only where that is elsewhere or in another byte order."""
    _refuse_masked(x, "latents")
    if _is_torch(x):
        without = _without_numbers(x)
        if without:
            raise ValueError(f"latents: is a tensor {without}")
        x = x.detach()
        return x if x.device.type == "cpu" else x.cpu()
    if hasattr(x, "__dlpack__") and not hasattr(x, "__array_interface__"):
        return x
    if isinstance(x, (memoryview, bytearray, bytes)):
        return x
    import numpy

    try:
        x = numpy.asarray(x)
    except (TypeError, ValueError) as error:
        raise ValueError(f"latents: cannot be read as an array ({error}), expected samples of one shape") from None
    # bfloat16 of ml_dtypes has the kind V, structures of fields too.
    if x.dtype.kind not in "iufbV" or x.dtype.names is not None or x.dtype.itemsize > 8:
        raise ValueError(
            f"latents: holds {x.dtype} values, expected float16, float32, float64, bfloat16, integers or booleans"
        )
    return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))


def _is_batch(item):
    return _is_array(item) or isinstance(item, dict) or (isinstance(item, (tuple, list)) and bool(item) and _is_array(item[0]))


def _samples_of(item):
    """The array of a batch as data loaders give it: itself, the first entry of a tuple, or the only sensible one of a dict."""
    if isinstance(item, (tuple, list)) and item and _is_array(item[0]):
        return _batch(item[0])
    if isinstance(item, dict):
        for key in ("latents", "latent", "pixel_values", "images", "image", "input", "x"):
            if key in item:
                return _batch(item[key])
        raise ValueError(
            f"latents: a batch is a dict with the keys {sorted(map(str, item))}, expected one of latents, pixel_values, "
            "images, input; give a generator that picks the array"
        )
    return _batch(item)


def _batch(x):
    """Of an iterable: samples along the first axis. One axis would be a single sample, taken for many of one number each."""
    x = array(x)
    if getattr(x, "ndim", None) == 1:
        raise ValueError(
            f"latents: the iterable gives arrays of one axis (the first holds {len(x)} numbers), expected batches of shape "
            "(n, ...): where each is a sample, stack them, or wrap the data in a DataLoader with a batch size; where each "
            "holds n samples of one number, reshape them to (n, 1)"
        )
    return x


def _refuse_single_samples(x):
    """A map-style dataset, or a DataLoader that hands over its items as they are, gives samples one by one."""
    torch = sys.modules.get("torch")
    data = getattr(getattr(torch, "utils", None), "data", None)
    if data is None:
        return
    do = "wrap it in a DataLoader with a batch size: DataLoader(dataset, batch_size=256)"
    if isinstance(x, data.Dataset) and not hasattr(x, "__iter__"):
        raise ValueError(f"latents: is a {type(x).__name__}, which gives samples one by one, expected batches; {do}")
    if isinstance(x, data.DataLoader) and x.batch_sampler is None and isinstance(x.dataset, data.TensorDataset):
        if not isinstance(x.sampler, data.BatchSampler):
            raise ValueError(f"latents: is a DataLoader with batch_size=None, which gives samples one by one; {do}")


def samples(x):
    """(open, again): `open()` gives an iterator over arrays of samples, more than once where `again`."""
    if isinstance(x, (str, os.PathLike)):
        raise ValueError(
            f"latents: {os.fspath(x)!r} is a path; read it first (numpy.load, safetensors), or run mergeplan analyze on it "
            "and read what that writes with Spectrum.from_file"
        )
    if isinstance(x, dict):
        raise ValueError(
            f"latents: is a dict with the keys {sorted(map(str, x))}, expected an array or an iterable of batches; pass the "
            "array under its key"
        )
    if _is_array(x) or getattr(x, "ndim", None) == 0:
        return (lambda: iter((array(x),))), True
    if isinstance(x, (list, tuple)) and x and not _is_batch(x[0]):
        return (lambda: iter((array(x),))), True  # numbers, or lists of them
    _refuse_single_samples(x)
    if hasattr(x, "__next__"):
        return (lambda: map(_samples_of, x)), False
    # Not asked for an iterator to see whether it has one: a DataLoader would start its workers.
    if hasattr(x, "__iter__") or hasattr(x, "__getitem__"):
        return (lambda: map(_samples_of, x)), True
    raise ValueError(
        f"latents: is a {type(x).__name__}, expected an array with samples along its first axis, an iterable of such arrays, "
        "or a DataLoader"
    )


def numbers(x):
    """A flat float64 array in C order."""
    import numpy

    _refuse_masked(x, "the argument")
    if _is_torch(x):
        without = _without_numbers(x)
        if without:
            raise TypeError(f"a tensor {without}")
        x = x.detach().cpu()
        x = x.double() if x.is_floating_point() else x  # numpy has no bfloat16
    if x is None:
        raise TypeError("None")
    x = numpy.asarray(x)
    if x.dtype.kind in "cUSb":
        kind = {"c": "complex", "b": "no numbers but True and False"}.get(x.dtype.kind, "text")
        raise TypeError(f"{x.dtype} values, which are {kind}")
    return numpy.ascontiguousarray(x, dtype=numpy.float64)


def moments(x):
    """(count, shape, mean, m2, m3, m4, comoment) of mergeplan.torch.LatentMoments or anything like it; flat arrays or None."""
    names = ("count", "shape", "mean", "m2", "m3", "m4", "comoment")

    def get(name, otherwise):
        value = x.get(name, otherwise) if isinstance(x, dict) else getattr(x, name, otherwise)
        return otherwise if callable(value) else value  # lists and texts have a method count

    missing = [name for name in names[:4] if get(name, None) is None]
    if missing:
        if get("count", None) == 0:
            raise ValueError("moments: are of 0 samples, expected at least 2")
        raise ValueError(
            f"moments: is a {type(x).__name__} without {', '.join(missing)}, expected mergeplan.torch.LatentMoments, or an "
            "object or dict with count, shape, mean, m2 and, where they are known, m3, m4, comoment"
        )
    count, shape = get("count", None), get("shape", None)
    try:
        head = (int(count), [int(axis) for axis in shape])
    except (TypeError, ValueError):
        raise ValueError(f"moments: count is {count!r} and shape {shape!r}, expected a whole number and a tuple of them") from None
    if head[0] != count:
        raise ValueError(f"moments: count is {count!r}, expected a whole number")
    arrays = []
    for name in names[2:]:
        value = get(name, None)
        arrays.append(None if value is None else numbers(value).reshape(-1))
    return (*head, *arrays)


def _plain(x):
    if hasattr(x, "tolist"):
        return x.tolist()
    raise TypeError(f"a {type(x).__name__}")


def config(scheduler):
    """(text, name) of a diffusers scheduler or its config as a dict; (None, path) of a file or folder."""
    if isinstance(scheduler, (str, os.PathLike)):
        return None, os.fspath(scheduler)
    entries = getattr(scheduler, "config", scheduler)
    try:
        entries = dict(entries)
    except (TypeError, ValueError):
        raise ValueError(
            f"scheduler: is a {type(scheduler).__name__}, expected a diffusers scheduler, its config (a dict) or the path of "
            "a scheduler_config.json"
        ) from None
    if entries is not scheduler and hasattr(scheduler, "config"):
        entries["_class_name"] = type(scheduler).__name__
    entries = {str(key): value for key, value in entries.items() if value is not None or not str(key).startswith("_")}
    try:
        text = json.dumps(entries, default=_plain)
    except (TypeError, ValueError) as error:
        raise ValueError(f"scheduler: its config holds {error}, expected what JSON can hold") from None
    return text, str(entries.get("_class_name", "scheduler config"))


def misfit(name, signature, args, kwargs):
    """TypeError of a constructor that was given other arguments than it has."""
    from ._calls import misfit as raises

    raises(name, signature, args, kwargs)


def options(given):
    """[(key, text)] of options that replace those of a config."""
    out = []
    for key, value in given.items():
        if isinstance(value, str):
            out.append((key, value))
            continue
        try:
            out.append((key, json.dumps(value, default=_plain)))
        except (TypeError, ValueError):
            raise TypeError(f"{key}: is a {type(value).__name__}, expected a number, a word, True, False or None") from None
    return out


class _Bar:
    def __init__(self, bar):
        self.bar = bar

    def __call__(self, seconds, objective, lower_bound):
        gap = (objective - lower_bound) / objective if objective > 0 else 0.0
        self.bar.set_postfix(objective=f"{objective:.6e}", gap=f"{gap:.3g}", refresh=False)
        self.bar.update(max(0.0, round(seconds - self.bar.n, 3)))

    def close(self):
        self.bar.close()


def progress(asked, time_limit):
    """A callable for the search, or None. True asks for tqdm; a class like tqdm.tqdm is used in its place."""
    if asked is None or asked is False:
        return None
    if asked is True:
        try:
            from tqdm.auto import tqdm as asked
        except ImportError:
            raise ValueError(
                "progress: True needs tqdm, which is not installed (pip install tqdm, or mergeplan[progress]); or pass a "
                "function of (seconds, objective, lower_bound)"
            ) from None
    if isinstance(asked, type):
        return _Bar(asked(total=None, desc="mergeplan", unit="s"))
    if not callable(asked):
        raise TypeError(
            f"progress: is a {type(asked).__name__}, expected True, a class like tqdm.tqdm, or a function of (seconds, "
            "objective, lower_bound)"
        )
    return asked
