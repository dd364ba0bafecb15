"""Arguments of the public calls: what is wrong is said by name, with what was found and what is expected."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

import torch
from torch import nn


def whole(what: str, value, least: int) -> int:
    """Of Python, numpy, torch. ValueError for other numbers, and below `least`."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{what} is {value!r}, expected a whole number, {least} or more")
    return number


def positive(what: str, value) -> float:
    """ValueError for what is no positive, finite number."""
    try:
        none = isinstance(value, (bool, str)) or type(value).__name__ in ("bool", "bool_")  # numpy's two names
        number = math.nan if none else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (number > 0 and math.isfinite(number)):
        raise ValueError(f"{what} is {value!r}, expected a positive number")
    return number


def finite(what: str, value: torch.Tensor) -> None:
    """ValueError where a number of a tensor is not finite."""
    if not bool(value.isfinite().all()):
        raise ValueError(f"{what} holds numbers that are not finite")


def network(what: str, value) -> None:
    """TypeError for what is no module."""
    if not isinstance(value, nn.Module):
        raise TypeError(f"{what} is a {type(value).__name__}, expected a torch.nn.Module")


def function(what: str, value, signature: str) -> None:
    """TypeError for what cannot be called."""
    if not callable(value):
        raise TypeError(f"{what} is a {type(value).__name__}, expected a function {signature}")


def tensor(what: str, value, axes: int = 2) -> torch.Tensor:
    """[rows, ..] of floating-point numbers, one row or more: ValueError, and TypeError for what is no tensor."""
    if not isinstance(value, torch.Tensor):
        do = "; pass the tensor in it" if isinstance(value, (tuple, list, dict)) else ""
        do = "; torch.from_numpy(x) makes one" if type(value).__module__ == "numpy" else do
        raise TypeError(f"{what} are a {type(value).__name__}, expected a tensor [rows, ...]{do}")
    if value.dim() < axes or len(value) == 0 or not value.is_floating_point():
        raise ValueError(
            f"{what} have the shape {tuple(value.shape)} and type {value.dtype}, expected [rows, ...] with one "
            "row or more, of floating-point numbers"
        )
    return value


def optimizers(values, student: nn.Module) -> None:
    """TypeError for what has no moments that could be dropped, ValueError for torch's own on none of the student's parameters."""
    own = {id(parameter) for parameter in student.parameters()}
    for value in values:
        if not (hasattr(value, "zero_grad") and hasattr(value, "state")):
            raise TypeError(f"optimizer is a {type(value).__name__}, expected a torch.optim.Optimizer")
        if not isinstance(value, torch.optim.Optimizer) or not own:
            continue
        if all(id(parameter) not in own for group in value.param_groups for parameter in group["params"]):
            raise ValueError(
                f"optimizer is a {type(value).__name__} of none of the student's parameters, expected one that trains "
                "distiller.student; of one that keeps copies of them, leave it out here and clear its state at the start of "
                "every round"
            )


def conditions(what: str, value) -> dict[str, Any]:
    """TypeError for what is no dict; None is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise TypeError(f"{what} is a {type(value).__name__}, expected a dict of the network's other arguments")
    return value


def _decoded(what: str, path) -> str:
    try:
        return os.fsdecode(path)
    except TypeError:
        raise TypeError(f"{what} is a {type(path).__name__}, expected a str, bytes or os.PathLike") from None


def folder(what: str, path) -> str:
    """The path of a folder for files, made where it is missing. ValueError where nothing can be written into it."""
    path = _decoded(what, path)
    try:
        os.makedirs(path, exist_ok=True)
        reason = "" if os.access(path, os.W_OK | os.X_OK) else "it cannot be written to"
    except OSError as error:
        reason = error.strerror or str(error)
    except ValueError as error:  # a NUL in it
        reason = str(error)
    if reason:
        raise ValueError(f"{what} is {path!r}, expected a folder for files, or a name under which one can be made ({reason})")
    return path


def writable(what: str, path) -> str:
    """The path of a file that is still to be written: what cannot be is found before the work, not after it."""
    path = _decoded(what, path)
    folder = os.path.dirname(path) or "."
    if not path or "\0" in path or os.path.isdir(path) or not os.path.isdir(folder) or not os.access(folder, os.W_OK):
        raise ValueError(f"{what} is {path!r}, expected a file in a folder that is there and can be written to")
    return path
