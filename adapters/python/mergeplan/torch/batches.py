"""What a batch is, and everything about it that does not depend on its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Sequence

import torch

from .order import TEACHER
from .programs import Move, Program, Rows, Segment, column, rows_at

if TYPE_CHECKING:
    from .distiller import MergeDistiller


class Batch(NamedTuple):
    """What one batch trains on."""

    z: torch.Tensor  # [rows, ..] as the network sees it
    t: torch.Tensor  # [rows] its timesteps
    target: torch.Tensor  # [rows, ..] what the network should say
    weight: torch.Tensor  # [rows, 1, ..] of the squared error


class Pattern:
    """Everything about a batch that does not depend on its numbers."""

    def __init__(self, owner: MergeDistiller, segments: Sequence[Segment], like: torch.Tensor):
        levels, stage = owner.levels, owner.stage
        tasks = [task for task, begin, end in segments for _ in range(begin, end)]
        at = [stage.tasks[k].last for k in tasks]
        self.tasks = tasks
        self.alpha = column([levels.alpha[j] / levels.data_scale for j in at], like)
        self.sigma = column([levels.sigma[j] for j in at], like)
        self.rows: Rows = rows_at(levels, [(stage.tasks[k].last, stage.tasks[k].landing) for k in tasks], like)
        self.weight = column([owner.weight_of(stage, k) for k in tasks], like)
        self.target = Program(levels, owner.moves, segments, like)
        self.inputs: Program | None = None

    def to_inputs(self, owner: MergeDistiller, segments: Sequence[Segment], like: torch.Tensor) -> Program:
        """The teacher's steps from level T to every row's level."""
        if self.inputs is None:
            T = owner.levels.steps
            moves: list[list[Move]] = [
                [(TEACHER, t, t - 1) for t in range(T, task.last, -1)] for task in owner.stage.tasks
            ]
            self.inputs = Program(owner.levels, moves, segments, like)
        return self.inputs


def mix(*numbers: int) -> int:
    """A seed of 63 bits from some numbers (splitmix64 over them)."""
    state = 0x6D65726765706C61
    for number in numbers:
        state = (state ^ (number & 0xFFFFFFFFFFFFFFFF)) + 0x9E3779B97F4A7C15
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 31
    return state >> 1
