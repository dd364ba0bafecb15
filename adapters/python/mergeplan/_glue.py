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


def array(x):
    """An object that the extension can read where it lies; a copy only where that is elsewhere or in another byte order."""
    if _is_torch(x):
        x = x.detach()
        return x if x.device.type == "cpu" else x.cpu()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.ndarray):
        return x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    if hasattr(x, "__dlpack__") or isinstance(x, (memoryview, bytearray, bytes)):
        return x
    import numpy

    return numpy.asarray(x)


def _is_batch(item):
    return _is_array(item) or isinstance(item, dict) or (isinstance(item, (tuple, list)) and bool(item) and _is_array(item[0]))


def _samples_of(item):
    """The array of a batch as data loaders give it: itself, the first entry of a tuple, or the only sensible one of a dict."""
    if isinstance(item, (tuple, list)) and item and _is_array(item[0]):
        return array(item[0])
    if isinstance(item, dict):
        for key in ("latents", "latent", "pixel_values", "images", "image", "input", "x"):
            if key in item:
                return array(item[key])
        raise ValueError(
            f"latents: a batch is a dict with the keys {sorted(map(str, item))}, expected one of latents, pixel_values, "
            "images, input; give a generator that picks the array"
        )
    return array(item)


def samples(x):
    """(open, again): `open()` gives an iterator over arrays of samples, more than once where `again`."""
    if isinstance(x, (str, os.PathLike)):
        raise ValueError(
            f"latents: {os.fspath(x)!r} is a path; read it first (numpy.load, safetensors), or run mergeplan analyze on it "
            "and read what that writes with Spectrum.from_file"
        )
    if _is_array(x):
        return (lambda: iter((array(x),))), True
    if isinstance(x, (list, tuple)) and x and not _is_batch(x[0]):
        return (lambda: iter((array(x),))), True  # numbers, or lists of them
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

    if _is_torch(x):
        x = x.detach().cpu()
    return numpy.ascontiguousarray(x, dtype=numpy.float64)


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
        from tqdm.auto import tqdm as asked
    if isinstance(asked, type):
        return _Bar(asked(total=None, desc="mergeplan", unit="s"))
    if not callable(asked):
        raise ValueError(
            f"progress: is a {type(asked).__name__}, expected True, a class like tqdm.tqdm, or a function of (seconds, "
            "objective, lower_bound)"
        )
    return asked
