"""mergeplan.torch: pilots that measure a network's merges."""

import copy
import math
import os
import subprocess

import pytest
import torch

import torch_cases as cases
from mergeplan.torch import MergeDistiller
from mergeplan.torch.calibrate import pilot_ranges


def make(init="child-jump", steps=6):
    torch.manual_seed(0)
    plan = cases.make_plan(steps, [cases.boot(steps)], cases.schedule(steps), init)
    teacher = cases.Small()
    distiller = MergeDistiller(plan, teacher, prediction_type="v_prediction", updates=5)
    return distiller, torch.randn(96, 5, dtype=torch.float64)


def adam(parameters):
    return torch.optim.Adam(parameters, 1e-2)


def test_ranges_hold_the_corners():
    for steps in range(2, 40):
        ranges = pilot_ranges(steps)
        lengths = {last - first + 1 for first, last in ranges}
        assert {2, steps} <= lengths and len(set(ranges)) == len(ranges)
        for length in lengths:
            assert (1, length) in ranges and (steps - length + 1, steps) in ranges


@pytest.mark.parametrize("init", ["child-jump", "jump"])
def test_pilots_measure_and_leave_the_student_alone(init, tmp_path):
    distiller, data = make(init)
    before = copy.deepcopy(distiller.student.state_dict())
    path = tmp_path / "measured here.toml"
    found = distiller.calibrate(data.split(24), adam, held_out=data[:48], updates=40, path=path)
    assert all(torch.equal(v, before[k]) for k, v in distiller.student.state_dict().items())
    assert len(distiller.snapshots) == 0 and distiller.stage_index == -1
    ranges = pilot_ranges(6)
    assert [(e["first"], e["last"]) for e in found.floor] == ranges
    starts = {(e["first"], e["last"]): [] for e in found.distance}
    for e in found.distance:
        starts[e["first"], e["last"]].append(e.get("start"))
        assert 0 < e["low"] <= e["value"] <= e["high"] < math.inf
    for (first, last), have in starts.items():
        with_child = init == "child-jump" and last - first >= 2
        assert have == ([last, first + 1] if with_child else [None])
    if init == "child-jump":  # a trained child is nearer to the target
        whole = {e.get("start"): e["value"] for e in found.distance if (e["first"], e["last"]) == (1, 6)}
        assert whole[2] < whole[6]
    for first, last in ranges:
        left = [e["value"] for e in found.residual if (e["first"], e["last"]) == (first, last)]
        assert len(left) == 3 and all(0 <= b <= a <= 1 for a, b in zip(left, left[1:]))
    # A probe of a small error against the exact derivative of the teacher's cleanest step.
    gain = next(e for e in found.gain if (e["first"], e["last"]) == (1, 1))
    twin = cases.Twin(cases.schedule(6), "v_prediction")
    total = 0.0
    for row in data[:48]:
        jacobian = torch.autograd.functional.jacobian(lambda z: twin.jump(distiller.teacher, z[None], 1, 0)[0], row)
        total += float(jacobian.square().sum()) / len(row)
    assert gain["value"] == pytest.approx(math.sqrt(total / 48), rel=0.2)
    program = os.environ.get("MERGEPLAN_BIN")
    if program and os.path.exists(program):
        done = subprocess.run(
            [program, "plan", "--measured", str(path), "--updates", "40", "--json"],
            capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stderr
    text = path.read_text()
    assert text.startswith("# What was measured") and 'kind = "measured"' in text and "nan" not in text


def test_two_steps_and_misuse():
    distiller, data = make(steps=2)
    found = distiller.calibrate(lambda: data[:8], adam, held_out=data[:4], updates=4)
    assert len(found.distance) == len(found.floor) == 1 and len(found.gain) == 1
    with pytest.raises(ValueError, match="held_out has 1 row, expected 2 or more"):
        distiller.calibrate(data.split(8), adam, held_out=data[:1])
    with pytest.raises(ValueError, match="no batch at all"):
        distiller.calibrate([], adam, held_out=data[:4], updates=4)
    distiller.advance()
    with pytest.raises(RuntimeError, match="before the training"):
        distiller.calibrate(data.split(8), adam, held_out=data[:4])


def test_lengths_of_a_generator_and_a_path_of_bytes(tmp_path):
    path = os.fsencode(tmp_path / "measured.toml")
    distiller, data = make(steps=6)
    found = distiller.calibrate(data.split(24), adam, held_out=data[:8], updates=4, lengths=(n for n in (3, 6)), path=path)
    assert {e["last"] - e["first"] + 1 for e in found.floor} == {2, 3, 6}
    assert os.listdir(tmp_path) == ["measured.toml"]
    found.to_toml(os.fsencode(tmp_path / "again.toml"))
    assert sorted(os.listdir(tmp_path)) == ["again.toml", "measured.toml"]
