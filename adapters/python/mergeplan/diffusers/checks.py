"""Arguments of MergeScheduler: what is wrong is said by name, with what was found and what is expected."""

from __future__ import annotations

import math
import operator
from typing import Any, Iterable

import torch


def whole(what: str, value: Any, least: int, most: int | None = None) -> int:
    """ValueError for what is no whole number of [least, most]."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        upper = " or more" if most is None else f" to {most}"
        raise ValueError(f"{what} is {value!r}, expected a whole number, {least}{upper}")
    return number


def number(value: Any) -> float:
    """TypeError for text, True and False, which Python would take for numbers, and for what is none."""
    if isinstance(value, (str, bytes, bool)) or type(value).__name__ in ("bool_", "bool"):  # numpy's two names
        raise TypeError(f"{value!r} is a {type(value).__name__}")
    return float(value)


def numbers(what: str, values: Iterable[Any]) -> list[float]:
    """Of a list, a tensor, an array. ValueError for what is no list of numbers."""
    try:
        if isinstance(values, (str, bytes)):
            raise TypeError(f"a {type(values).__name__}")
        return [number(v) for v in (values.tolist() if hasattr(values, "tolist") else values)]
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(f"{what} is {values!r}, expected a list of numbers ({error})") from None


def positive(what: str, value: Any) -> None:
    """ValueError for what is no positive, finite number."""
    try:
        found = number(value)
    except (TypeError, ValueError):
        found = math.nan
    if not (found > 0 and math.isfinite(found)):
        raise ValueError(f"{what} is {value!r}, expected a positive number")


def truth(what: str, value: Any) -> None:
    """ValueError for what is neither True nor False: any text would pass for True."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} is {value!r}, expected True or False")


def plain(value: Any) -> Any:
    """An entry of a config as JSON has it, in one form: numbers are floats (1 is 1.0), tensors and tuples lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def states(what: str, value: Any, like: torch.Tensor | None = None) -> None:
    """TypeError for what is no tensor, ValueError for whole numbers, and for another shape than `like` has."""
    if not isinstance(value, torch.Tensor):
        do = "; pass its .sample" if hasattr(value, "sample") else ""
        raise TypeError(f"{what} is a {type(value).__name__}, expected a tensor{do}")
    if not value.is_floating_point():
        raise ValueError(f"{what} is of {value.dtype}, expected floating-point numbers")
    if like is not None and value.shape != like.shape:
        raise ValueError(
            f"{what} has the shape {tuple(value.shape)}, expected that of the sample, {tuple(like.shape)} (of a network that "
            "also predicts variances the first half of the channels)"
        )


def per_row(timesteps: torch.Tensor, samples: torch.Tensor) -> None:
    """ValueError where there is neither one timestep nor one for every sample."""
    if timesteps.numel() not in (1, len(samples)):
        raise ValueError(f"timesteps are {timesteps.numel()} for {len(samples)} samples, expected one, or one for every sample")


def jumps(times: Any, alphas: Any, sigmas: Any, most: int) -> tuple[list[float], list[float], list[float]]:
    """The jumps of a config, N timesteps of 0..most and N+1 levels each; ValueError says what they are not."""
    named = (("jump_timesteps", times), ("jump_alphas", alphas), ("jump_sigmas", sigmas))
    times, alphas, sigmas = ([] if part is None else numbers(what, part) for what, part in named)
    n = len(times)
    if n == 0 or len(alphas) != n + 1 or len(sigmas) != n + 1:
        raise ValueError(
            f"the config has {n} jump_timesteps, {len(alphas)} jump_alphas and {len(sigmas)} jump_sigmas, expected N, N+1 and N+1"
        )
    for k, time in enumerate(times):
        if not 0 <= time <= most:
            raise ValueError(f"jump_timesteps[{k}] is {time:g}, expected 0 to num_train_timesteps = {most}")
    return times, alphas, sigmas


def entries(count: Any, start: Any, end: Any, trained: list[float] | None) -> None:
    """Of a config: ValueError names the one that cannot be."""
    whole("num_train_timesteps", count, 1, 1_000_000)
    betas = [("beta_start", start), ("beta_end", end)] if trained is None else []
    for k, beta in enumerate(trained or ()):
        betas.append((f"trained_betas[{k}]", beta))
    for what, beta in betas:
        if isinstance(beta, (str, bool)) or not 0 < beta <= 1:
            raise ValueError(f"{what} is {beta!r}, expected a number above 0 and at most 1")
