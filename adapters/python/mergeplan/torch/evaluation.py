"""What the student lands on, against its target, and what it makes of noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from .batches import mix
from .networks import asked, input_type
from .order import Task
from .programs import Move, Program, moves_of, pick, rows_at
from .snapshots import frozen

if TYPE_CHECKING:
    from .distiller import MergeDistiller


def errors(owner: MergeDistiller, x0: torch.Tensor, task: Task, block: int, condition: dict) -> torch.Tensor:
    """|student(z) - target|^2 of every row of `x0` on noise that is the same every time, [rows] in float64 on the CPU."""
    out = []
    for begin in range(0, len(x0), block):
        part = x0[begin : begin + block].to(torch.float64 if x0.dtype == torch.float64 else torch.float32)
        rows = slice(begin, begin + len(part))
        cut = pick(condition, rows, len(x0))
        generator = torch.Generator("cpu").manual_seed(mix(owner.seed, -1 - task.last, begin, 0))
        noise = torch.randn(part.shape, generator=generator, dtype=part.dtype).to(part.device)
        z = part * (owner.levels.alpha[task.last] / owner.levels.data_scale) + noise * owner.levels.sigma[task.last]
        end = Program(owner.levels, [moves_of(task.target)], [(0, 0, len(part))], part).run(z, owner.call, cut)
        at = rows_at(owner.levels, [(task.last, task.landing)] * len(part), part)
        seen = (z if at.scale is None else z * at.scale).to(input_type(owner.network) if z.dtype == torch.float32 else z.dtype)
        with frozen(owner.network):
            said = asked(owner.forward, owner.inner(), seen, at.time, cut, "student").to(z.dtype)
        got = z * at.state + said * at.output
        out.append((got - end).double().flatten(1).square().sum(1).cpu())
    return torch.cat(out)


def walk(owner: MergeDistiller, noise: torch.Tensor, moves: list[Move], condition: dict) -> torch.Tensor:
    """The states that `moves` lead noise [B, ..] of unit variance to, in the network's own units."""
    T = owner.levels.steps
    size = (owner.levels.alpha[T] ** 2 + owner.levels.sigma[T] ** 2) ** 0.5
    z = noise.to(torch.float64 if noise.dtype == torch.float64 else torch.float32) * size
    z = Program(owner.levels, [moves], [(0, 0, len(z))], z).run(z, owner.call, condition)
    return (z * (owner.levels.scale[0] * owner.levels.data_scale if owner.levels.alpha[0] else 1)).to(noise.dtype)
