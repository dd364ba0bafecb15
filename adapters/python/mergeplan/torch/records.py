"""What is known about merges that have been trained."""

from __future__ import annotations

import math
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

import torch


@dataclass
class MergeRecord:
    """One trained merge [first, last]. Losses on held-out rows are E |student - target|^2 summed over the dimensions,
    NaN where no rows were given."""

    first: int
    last: int
    round: int
    landing: int
    updates: int
    seconds: float
    initial_loss: float = math.nan
    final_loss: float = math.nan
    curve: list[float] = field(default_factory=list)  # the loss of every update, of all merges in its company

    @property
    def residual(self) -> float:
        """final_loss / initial_loss."""
        return self.final_loss / self.initial_loss if self.initial_loss > 0 else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> MergeRecord:
        """The reverse. ValueError, KeyError for other keys, TypeError for what is no dict."""
        if not isinstance(values, dict):
            raise TypeError(f"a record is a {type(values).__name__}, expected a dict")
        unknown = set(values) - {f.name for f in fields(cls)}
        if unknown:
            raise ValueError(f"a record has the unknown keys {sorted(map(str, unknown))}")
        for f in fields(cls):
            if f.default is MISSING and f.default_factory is MISSING and f.name not in values:
                raise KeyError(f"{f.name} of a record")
        return cls(**values)


class Curve:
    """Losses of updates, gathered on their device and fetched in blocks so that no batch waits for it."""

    _BLOCK = 256

    def __init__(self, accumulate: int):
        self._accumulate = accumulate
        self._done: list[float] = []
        self._pending: list[torch.Tensor] = []

    def add(self, value: torch.Tensor) -> None:
        """The loss of one batch."""
        self._pending.append(value)
        if len(self._pending) >= self._BLOCK * self._accumulate:
            self._fetch()

    def _fetch(self) -> None:
        if not self._pending:
            return
        fetched = torch.stack([v.float() for v in self._pending]).tolist()
        self._pending = []
        for k, value in enumerate(fetched):
            if not math.isfinite(value):
                self.not_finite(value, (len(self._done) + k) // self._accumulate + 1)
        self._done += fetched

    @staticmethod
    def not_finite(value, update: int) -> None:
        """Raises RuntimeError."""
        raise RuntimeError(
            f"the loss is {float(value)} at update {update} of its stage, expected a finite number; go back to the last "
            "saved state with a lower learning rate, warm-up or clipping"
        )

    def values(self) -> list[float]:
        """One number an update: the mean of its batches."""
        self._fetch()
        n = self._accumulate
        return [sum(self._done[i : i + n]) / len(self._done[i : i + n]) for i in range(0, len(self._done), n)]

    def state(self) -> list[float]:
        """Of all batches."""
        self._fetch()
        return list(self._done)

    @classmethod
    def from_state(cls, accumulate: int, values: list[float]) -> Curve:
        """The reverse."""
        curve = cls(accumulate)
        curve._done = [float(v) for v in values]
        return curve
