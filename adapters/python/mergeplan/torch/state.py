"""Where the training of a MergeDistiller stands, as a dict, and back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .checks import whole
from .distributed import unwrap
from .networks import fingerprint
from .records import Curve, MergeRecord

if TYPE_CHECKING:
    from .distiller import MergeDistiller

_FORMAT = 1


def teacher_of(d: MergeDistiller) -> dict[str, Any] | None:
    """What tells its teacher from others; None where it has none (its first weights are in the snapshots then)."""
    return None if d.teacher is None else fingerprint(unwrap(d.teacher))


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
        "teacher": teacher_of(d),
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
    _same_teacher(d, state)
    try:
        stage, batches = whole("stage", state["stage"], -1), whole("batches", state["batches"], 0)
        rows, calls = whole("rows", state["rows"], 0), whole("teacher_calls", state["teacher_calls"], 0)
        records = [MergeRecord.from_dict(r) for r in _list(state, "records")]
        curve = Curve.from_state(d._accumulate, _list(state, "curve"))
        initial = [float(v) for v in _list(state, "initial")]
        numbers = {int(n) for n in state["snapshots"]}
        seconds = float(state["seconds"])
    except KeyError as error:
        raise ValueError(f"the state is damaged: {error.args[0]} is missing") from None
    except (TypeError, ValueError) as error:
        raise ValueError(f"the state is damaged: {error}") from None
    stages = d.order.stages
    if stage > len(stages):
        raise ValueError(f"the state is damaged: stage {stage} of {len(stages)}")
    done = sum(len(s.tasks) for s in stages[: max(stage, 0)] if s.round)
    if len(records) != done:
        raise ValueError(f"the state is damaged: it has {len(records)} records, expected {done}, one for every merge that is trained")
    here = stages[stage] if 0 <= stage < len(stages) else None
    if here and here.round and d.held_out is not None and len(initial) != len(here.tasks):
        raise ValueError(
            f"the state has {len(initial)} losses in initial, expected {len(here.tasks)}, one for every merge of stage {stage}: it "
            "is damaged, or of a training without held_out; leave held_out out to take that up"
        )
    most = d.updates_of(here) * d._accumulate if here else 0
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


def _list(state: dict[str, Any], name: str) -> list:
    value = state[name]
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} is a {type(value).__name__}, expected a list")
    return value


def _same_teacher(d: MergeDistiller, state: dict[str, Any]) -> None:
    """Its targets are the teacher's: another one would go on with others, and nothing would tell."""
    if "teacher" not in state:  # written before teachers were kept
        return
    found, own = state["teacher"], teacher_of(d)
    if found == own:
        return
    for what, value in (("the state's training", found), ("this one", own)):
        if value is None:
            raise ValueError(f"the state belongs to another training: {what} has no teacher beside the student, the other has one")
    if not isinstance(found, dict):
        raise ValueError(f"the state is damaged: teacher is a {type(found).__name__}, expected a dict")
    key = next((key for key in own if found.get(key) != own[key]), "")
    raise ValueError(
        f"the state belongs to another training: of its teacher's parameters the {key} are {found.get(key)!r}, of this one's "
        f"{own.get(key)!r}; make the distiller with the teacher that the training began with"
    )
