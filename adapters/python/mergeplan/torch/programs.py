"""Frozen maps applied to the rows of a batch, each row at levels of its own, with as few calls of networks as can be.

Rows of one batch belong to different merges. Their links are walked in lockstep: in every wave the rows that need the
same network go through it together. What depends only on who is where (times, coefficients, indices) is made once per
pattern of rows and kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Sequence

import torch

from .levels import Levels
from .order import TEACHER, Link

# network number, level, level where the wrapper lands
Move = tuple[int, int, int]
Segment = tuple[int, int, int]  # task, first row, row behind the last


def moves_of(links: Sequence[Link]) -> list[Move]:
    """Single calls: the teacher takes one step at a time."""
    moves: list[Move] = []
    for link in links:
        if link.snapshot == TEACHER:
            moves += [(TEACHER, t, t - 1) for t in range(link.origin, link.to, -1)]
        else:
            moves.append((link.snapshot, link.origin, link.landing))
    return moves


def column(values: Sequence[float], like: torch.Tensor) -> torch.Tensor:
    """[rows, 1, ..] that multiplies `like`."""
    flat = torch.tensor(values, dtype=torch.float64)
    return flat.to(device=like.device, dtype=like.dtype).view(-1, *[1] * (like.dim() - 1))


@dataclass
class Rows:
    """What the network gets and what its output means, row by row."""

    time: torch.Tensor  # [rows]
    scale: torch.Tensor | None  # [rows, 1, ..]; None: 1 everywhere
    state: torch.Tensor
    output: torch.Tensor


def rows_at(levels: Levels, where: Sequence[tuple[int, int]], like: torch.Tensor) -> Rows:
    """Of (level, landing level) for each row."""
    known = {pair: levels.landing(*pair) for pair in set(where)}
    times = [levels.timesteps[origin] for origin, _ in where]
    scales = [levels.scale[origin] for origin, _ in where]
    return Rows(
        time=torch.tensor(times, dtype=torch.int64 if levels.integer_time else torch.float32).to(like.device),
        scale=None if all(s == 1 for s in scales) else column(scales, like),
        state=column([known[pair].state for pair in where], like),
        output=column([known[pair].output for pair in where], like),
    )


@dataclass
class _Call:
    network: int
    rows: slice | torch.Tensor | None  # None: all
    at: Rows


class Program:
    """The moves of all rows, wave by wave. `moves[k]` are those of task k."""

    def __init__(
        self, levels: Levels, moves: Sequence[Sequence[Move]], segments: Sequence[Segment], like: torch.Tensor
    ):
        self._calls: list[_Call] = []
        rows = len(like)
        for wave in range(max((len(moves[task]) for task, _, _ in segments), default=0)):
            members: dict[int, list[tuple[int, Move]]] = {}
            for task, begin, end in segments:
                if wave < len(moves[task]):
                    move = moves[task][wave]
                    members.setdefault(move[0], []).extend((row, move) for row in range(begin, end))
            for network, who in members.items():
                index = [row for row, _ in who]
                at = rows_at(levels, [(move[1], move[2]) for _, move in who], like)
                self._calls.append(_Call(network, self._index(index, rows, like.device), at))
        self.teacher_calls = sum(
            (len(call.at.time) for call in self._calls if call.network == TEACHER), 0
        )

    @staticmethod
    def _index(index: list[int], rows: int, device) -> slice | torch.Tensor | None:
        if len(index) == rows:
            return None
        if index[-1] - index[0] + 1 == len(index):
            return slice(index[0], index[-1] + 1)
        return torch.tensor(index, device=device)

    @torch.no_grad()
    def run(self, z: torch.Tensor, call: Callable[..., torch.Tensor], condition: dict) -> torch.Tensor:
        """`call(network, state, time, condition)` gives the output of a network. `z`: [rows, ..], left as it is."""
        state, owned = z, False
        for one in self._calls:
            part = state if one.rows is None else state[one.rows]
            seen = part if one.at.scale is None else part * one.at.scale
            out = call(one.network, seen, one.at.time, pick(condition, one.rows, len(z)))
            moved = torch.addcmul(part * one.at.state, out.to(part.dtype), one.at.output)
            if one.rows is None:
                state, owned = moved, True
                continue
            if not owned:
                state, owned = state.clone(), True
            state[one.rows] = moved
        return state


def pick(condition: dict, rows: slice | torch.Tensor | None, count: int) -> dict:
    """The conditions of some rows: tensors with one entry a row are cut, dictionaries looked into, all else is as it is."""
    if rows is None or not condition:
        return condition

    def cut(value):
        if isinstance(value, dict):
            return {key: cut(inner) for key, inner in value.items()}
        if isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == count:
            return value[rows]
        return value

    return {key: cut(value) for key, value in condition.items()}
