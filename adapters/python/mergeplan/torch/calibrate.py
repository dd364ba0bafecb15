"""The measured model: pilot merges say how far starts are from their targets, how fast training closes the gap, and what it
leaves. planner/measured/README.md has the model and the file."""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Callable, Iterable, Sequence

import torch

from . import checks
from .checks import whole
from .order import TEACHER
from .programs import Program
from .snapshots import Snapshots


@dataclass
class Calibration:
    """What was measured, entry by entry as the file has them. Errors are root mean squares of norms over held-out rows,
    in the schedule's coordinates; low and high are two standard errors away."""

    teacher_steps: int
    init: str
    gain: list[dict[str, Any]] = field(default_factory=list)
    distance: list[dict[str, Any]] = field(default_factory=list)
    residual: list[dict[str, Any]] = field(default_factory=list)
    floor: list[dict[str, Any]] = field(default_factory=list)

    def to_toml(self, path: str | os.PathLike, source: str = "mergeplan.torch calibrate") -> None:
        """The file that `mergeplan plan --measured` reads, written beside and renamed."""
        lines = [
            "# What was measured of a network's merges (mergeplan.torch). Step 1 is the cleanest.",
            "format = 1",
            'kind = "measured"',
            f"teacher_steps = {self.teacher_steps}",
            'combine = "sum"',
            f"source = {json.dumps(source)}",
        ]
        for name in ("gain", "distance", "residual", "floor"):
            lines.append(f"{name} = [")
            for entry in getattr(self, name):
                lines.append("  { " + ", ".join(f"{key} = {value!r}" for key, value in entry.items()) + " },")
            lines.append("]")
        path = os.fsdecode(path)
        beside = f"{path}.{os.getpid()}.part"
        with open(beside, "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, path)


def _entry(first: int, last: int, value: float, error: float, **more) -> dict[str, Any]:
    return {
        "first": first, "last": last, **more,
        "value": value, "low": max(0.0, value - 2 * error), "high": value + 2 * error,
    }  # fmt: skip


def _rms(squares: torch.Tensor) -> tuple[float, float]:
    """Root of the mean, and its standard error."""
    mean = float(squares.mean())
    root = math.sqrt(mean)
    if len(squares) < 2 or root == 0:
        return root, 0.0
    return root, float(squares.std()) / math.sqrt(len(squares)) / (2 * root)


def pilot_ranges(steps: int, lengths: Sequence[int] | None = None) -> list[tuple[int, int]]:
    """Both ends of every length: 2, about half, all."""
    chosen = sorted({min(steps, max(2, n)) for n in (lengths or (2, (steps + 2) // 2, steps))} | {2, steps})
    return [r for n in chosen for r in dict.fromkeys([(1, n), (steps - n + 1, steps)])]


def _pilot_plan(steps: int, ranges: Sequence[tuple[int, int]], init: str, schedule):
    """Merges one in the other, from the inside, of which the first is of single steps."""
    merges, inner = [], None
    for number, (first, last) in enumerate(ranges, 1):
        end = inner[0] - 1 if inner else last
        children = [(t, t) for t in range(first, end + 1)] + ([inner] if inner else [])
        merges.append(SimpleNamespace(first=first, last=last, round=number, children=children))
        inner = (first, last)
    blocks = [(t, t) for t in range(1, inner[0])] + [inner] + [(t, t) for t in range(inner[1] + 1, steps + 1)]
    return SimpleNamespace(teacher_steps=steps, merges=merges, blocks=blocks, init=init, schedule=schedule)


def calibrate(
    distiller,
    samples: Iterable[torch.Tensor] | Callable[[], torch.Tensor],
    make_optimizer: Callable[[list[torch.nn.Parameter]], torch.optim.Optimizer],
    *,
    held_out: torch.Tensor,
    updates: int = 100,
    lengths: Iterable[int] | None = None,
    path: str | os.PathLike | None = None,
    probe: float = 1e-2,
    progress: Callable[[str], None] | None = None,
) -> Calibration:
    """Measures pilots of `updates` updates each.

    `samples`: a loader (gone through as often as needed) or a function that gives a batch; `make_optimizer(parameters)`:
    a fresh optimizer, as the training will have it; `held_out`: [rows, ..] samples that errors are measured on, two or
    more; `lengths`: how many steps the pilots span (2, about half of T, T); `path`: where to write the file.

    For the starts `child` and `child-jump` the distance from a trained child is measured too. `combine` stays "sum":
    whether errors add up or average out is judged by `mergeplan calibrate` alone.
    """
    if distiller.stage_index >= 0:
        raise RuntimeError("calibrate() comes before the training: the student must still be at its start")
    T = distiller.levels.steps
    if T < 2:
        raise ValueError("a teacher of one step has nothing to merge")
    updates = whole("updates", updates, 4)
    if len(checks.tensor("held_out", held_out)) < 2:
        raise ValueError(f"held_out has {len(held_out)} row, expected 2 or more")
    checks.finite("held_out", held_out)
    if lengths is not None:
        if isinstance(lengths, (str, bytes)) or not isinstance(lengths, Iterable):
            raise TypeError(f"lengths is a {type(lengths).__name__}, expected numbers of steps")
        lengths = [whole("lengths", n, 2) for n in lengths]
        if any(n > T for n in lengths):
            raise ValueError(f"lengths is {lengths}, expected numbers of steps from 2 to {T}")
    probe = checks.positive("probe", probe)
    checks.function("make_optimizer", make_optimizer, "of (parameters)")
    if not callable(samples) and not isinstance(samples, Iterable) and not hasattr(samples, "__getitem__"):
        raise TypeError(f"samples is a {type(samples).__name__}, expected a loader, or a function that gives a batch")
    if progress is not None:
        checks.function("progress", progress, "of (text)")
    if path is not None:
        path = checks.writable("path", path)
    say = progress or (lambda text: None)
    draw = samples if callable(samples) else _again(samples)
    out = Calibration(T, distiller.init)
    keep = Snapshots(distiller.network)
    keep.put(0)
    distiller.check_start()
    try:
        distiller.snapshots.put(0)
        _gains(distiller, held_out, out, probe)
        distiller.snapshots.keep_only(())
        for first, last in pilot_ranges(T, lengths):
            say(f"pilot over steps {first}..{last}")
            _pilot(distiller, first, last, draw, make_optimizer, held_out, updates, out)
            keep.load(0)
            if last - first >= 2 and distiller.init in ("child", "child-jump"):
                say(f"pilot over steps {first}..{last} from its noisiest child")
                _child_start(distiller, first, last, draw, make_optimizer, held_out, updates, out)
                keep.load(0)
    finally:
        keep.load(0)
        distiller.snapshots.keep_only(())
    if path is not None:
        out.to_toml(path)
    return out


def _again(loader: Iterable) -> Callable[[], torch.Tensor]:
    state = {"it": iter(loader)}

    def draw() -> torch.Tensor:
        try:
            return next(state["it"])
        except StopIteration:
            state["it"] = iter(loader)
            try:
                return next(state["it"])
            except StopIteration:
                raise ValueError("the loader gives no batch at all (or can be gone through only once)") from None

    return draw


def _pilot_distiller(distiller, ranges: Sequence[tuple[int, int]], updates: int):
    loss, weighting, gamma = distiller._loss
    return type(distiller)(
        _pilot_plan(distiller.levels.steps, ranges, distiller.init, distiller._schedule),
        distiller.teacher, distiller.student,
        prediction_type=distiller.levels.prediction, timesteps=distiller._timesteps, updates=updates, loss=loss,
        weighting=weighting, gamma=gamma, forward=distiller.forward, teacher_forward=distiller._teacher_forward,
        seed=distiller.seed + 1,
    )  # fmt: skip


def _step(pilot, draw, optimizer) -> None:
    batch = pilot.batch(draw())
    said = pilot.forward(pilot.student, batch.z, batch.t, {})
    pilot.loss(said, batch).backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def _parameters(pilot) -> list[torch.nn.Parameter]:
    return [p for p in pilot.student.parameters() if p.requires_grad]


def _optimizer(make_optimizer, pilot):
    optimizer = make_optimizer(_parameters(pilot))
    checks.optimizers([optimizer], pilot.network)
    return optimizer


def _pilot(distiller, first, last, draw, make_optimizer, held_out, updates, out: Calibration) -> None:
    """One merge of single steps: distance, residual after a quarter, half and all of the updates, floor."""
    pilot = _pilot_distiller(distiller, [(first, last)], updates)
    optimizer = _optimizer(make_optimizer, pilot)
    pilot.advance()
    (task,) = pilot.stage.tasks
    distance, error = _rms(pilot.errors(held_out, task))
    more = {"start": last} if distiller.init in ("child", "child-jump") and last - first >= 2 else {}
    out.distance.append(_entry(first, last, distance, error, **more))
    marks = sorted({max(1, updates // 4), max(1, updates // 2), updates})
    seen = []
    for update in range(1, updates + 1):
        _step(pilot, draw, optimizer)
        if update in marks:
            seen.append((update, *_rms(pilot.errors(held_out, task))))
    floor = min(_floor(distance, [(u, e) for u, e, _ in seen]), min(e for _, e, _ in seen))
    out.floor.append(
        {"first": first, "last": last, "value": floor, "low": 0.0, "high": max(floor, min(e + 2 * s for _, e, s in seen))}
    )
    bound = {"value": 1.0, "low": 1.0, "high": 1.0}
    for update, value, spread in seen:
        # What the model adds up is residual * distance + floor. It never rises with the updates.
        scale = 1 / distance if distance > 0 else 0.0
        numbers = {"value": value - floor, "low": value - 2 * spread - floor, "high": value + 2 * spread - floor}
        for key in bound:
            bound[key] = min(bound[key], max(0.0, numbers[key] * scale))
        out.residual.append({"first": first, "last": last, "updates": update, **bound})


def _floor(distance: float, seen: Sequence[tuple[int, float]]) -> float:
    """Of e(u) = f + (distance - f) exp(-u/h), the f that fits best: least squares over a grid of h, from the clean 0."""
    best, found = math.inf, 0.0
    for k in range(-20, 40):
        decay = [math.exp(-u / (seen[-1][0] * 2.0 ** (k / 8))) for u, _ in seen]
        top = sum((1 - d) * (e - distance * d) for d, (_, e) in zip(decay, seen))
        bottom = sum((1 - d) ** 2 for d in decay)
        floor = min(max(top / bottom if bottom > 0 else 0.0, 0.0), distance)
        off = sum((floor + (distance - floor) * d - e) ** 2 for d, (_, e) in zip(decay, seen))
        if off < best:
            best, found = off, floor
    return found


def _child_start(distiller, first, last, draw, make_optimizer, held_out, updates, out: Calibration) -> None:
    """How far a student that was trained on all but the cleanest step is from the whole merge's target."""
    pilot = _pilot_distiller(distiller, [(first + 1, last), (first, last)], updates)
    optimizer = _optimizer(make_optimizer, pilot)
    pilot.advance()
    while not pilot.stage_done:
        _step(pilot, draw, optimizer)
    pilot.advance()
    (task,) = pilot.stage.tasks
    distance, error = _rms(pilot.errors(held_out, task))
    out.distance.append(_entry(first, last, distance, error, start=first + 1))


@torch.no_grad()
def _gains(distiller, held_out: torch.Tensor, out: Calibration, probe: float) -> None:
    """By how much the teacher's steps first..last enlarge a small error at level `last`."""
    T, levels = distiller.levels.steps, distiller.levels
    x0 = held_out.to(torch.float64 if held_out.dtype == torch.float64 else torch.float32)
    generator = torch.Generator("cpu").manual_seed(distiller.seed)
    for first, last in dict.fromkeys([(1, 1), (T - 1, T - 1), (1, T - 1)]):
        noise, direction = (
            torch.randn(x0.shape, generator=generator, dtype=x0.dtype).to(x0.device) for _ in range(2)
        )
        z = x0 * (levels.alpha[last] / levels.data_scale) + noise * levels.sigma[last]
        moved = direction * (probe * float(z.square().mean().sqrt()))
        program = Program(levels, [[(TEACHER, t, t - 1) for t in range(last, first - 1, -1)]], [(0, 0, len(z))], z)
        apart = program.run(z + moved, distiller.call, {}) - program.run(z, distiller.call, {})
        ratios = apart.double().flatten(1).square().sum(1) / moved.double().flatten(1).square().sum(1)
        out.gain.append(_entry(first, last, *_rms(ratios.cpu())))
