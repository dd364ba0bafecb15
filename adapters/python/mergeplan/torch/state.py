"""Where the training of a MergeDistiller stands, as a dict, and back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .checks import whole
from .records import Curve, MergeRecord

if TYPE_CHECKING:
    from .distiller import MergeDistiller

_FORMAT = 1


def question_of(d: MergeDistiller) -> dict[str, Any]:
    """What the training is of: two that differ in it cannot go on from one state."""
    return {
        "merges": [[t.first, t.last, t.landing] for s in d.order.stages for t in s.tasks],
        "alpha": d.levels.alpha.tolist(),
        "sigma": d.levels.sigma.tolist(),
        "timesteps": d.levels.timesteps[1:].tolist(),
        "prediction_type": d.levels.prediction,
        "init": d.init,
        "updates": d._updates,
        "accumulate": d._accumulate,
        "fit_updates": d._fit_updates,
        "loss": list(d._loss),
        "shared": d._shared,
        "seed": d.seed,
    }


def state_of(d: MergeDistiller) -> dict[str, Any]:
    """MergeDistiller.state_dict."""
    return {
        "format": _FORMAT,
        "question": question_of(d),
        "stage": d.stage_index,
        "batches": d.batches,
        "rows": d._rows,
        "teacher_calls": d.teacher_calls,
        "seconds": d._seconds + time.monotonic() - d._since,
        "initial": list(d._initial),
        "curve": d._curve.state(),
        "records": [record.to_dict() for record in d.records],
        "snapshots": d.snapshots.state_dict() if d.stage_index >= 0 else {},
    }


def load_state(d: MergeDistiller, state: dict[str, Any]) -> None:
    """MergeDistiller.load_state_dict: everything is looked at before anything is changed."""
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        found = state.get("format") if isinstance(state, dict) else type(state).__name__
        raise ValueError(f"the state has the format {found!r}, expected {_FORMAT}")
    own, asked = question_of(d), state.get("question")
    if not isinstance(asked, dict):
        raise ValueError(f"the state is damaged: its question is a {type(asked).__name__}, expected a dict")
    for key, value in own.items():
        if asked.get(key) != value:
            raise ValueError(
                f"the state belongs to another training: {key} is {asked.get(key)!r} there and {value!r} here"
            )
    try:
        stage, batches = whole("stage", state["stage"], -1), whole("batches", state["batches"], 0)
        rows, calls = whole("rows", state["rows"], 0), whole("teacher_calls", state["teacher_calls"], 0)
        records = [MergeRecord.from_dict(r) for r in state["records"]]
        curve = Curve.from_state(d._accumulate, state["curve"])
        initial = [float(v) for v in state["initial"]]
        numbers = {int(n) for n in state["snapshots"]}
        seconds = float(state["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the state is damaged: {error!r}") from None
    if stage > len(d.order.stages):
        raise ValueError(f"the state is damaged: stage {stage} of {len(d.order.stages)}")
    most = d.updates_of(d.order.stages[stage]) * d._accumulate if 0 <= stage < len(d.order.stages) else 0
    if batches > most:
        raise ValueError(f"the state is damaged: batches is {batches}, expected {most} or fewer in stage {stage}")
    if batches > rows:
        raise ValueError(f"the state is damaged: rows is {rows}, expected one or more of every batch ({batches})")
    if not 0 <= seconds < float("inf"):
        raise ValueError(f"the state is damaged: seconds is {seconds}, expected a finite number, 0 or more")
    needed = d.order.needed_after(stage - 1) if stage >= 0 else set()
    if not needed <= numbers:
        raise ValueError(f"the state is damaged: snapshots {sorted(needed - numbers)} are missing")
    d.snapshots.load_state_dict(state["snapshots"])
    d.stage_index, d.batches, d._rows = stage, batches, rows
    d.records, d._curve, d._initial = records, curve, initial
    d.teacher_calls = calls
    d.moves, d._patterns, d._last = [], {}, None
    d._seconds, d._since = seconds, time.monotonic()
