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


def numbers(what: str, values: Iterable[Any]) -> list[float]:
    """ValueError for what is no list of numbers."""
    try:
        return [float(v) for v in values]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{what} is {values!r}, expected a list of numbers ({error})") from None


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


def entries(count: Any, start: Any, end: Any, trained: Any, clip: Any, reach: Any) -> None:
    """Of a config: ValueError names the one that cannot be."""
    whole("num_train_timesteps", count, 1, 1_000_000)
    betas = [("beta_start", start), ("beta_end", end)] if trained is None else []
    for k, beta in enumerate(() if trained is None else numbers("trained_betas", trained)):
        betas.append((f"trained_betas[{k}]", beta))
    for what, beta in betas:
        if isinstance(beta, (str, bool)) or not 0 < beta <= 1:
            raise ValueError(f"{what} is {beta!r}, expected a number above 0 and at most 1")
    if not isinstance(clip, bool):
        raise ValueError(f"clip_sample is {clip!r}, expected True or False")
    if isinstance(reach, (str, bool)) or not (reach > 0 and math.isfinite(reach)):
        raise ValueError(f"clip_sample_range is {reach!r}, expected a positive number")
