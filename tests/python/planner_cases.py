"""What the tests of the planner half share."""

import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def command():
    """The mergeplan binary to compare with; the test is skipped where there is none."""
    named = os.environ.get("MERGEPLAN_BIN")
    for path in [named] if named else [ROOT / "build" / preset / "bin" / "mergeplan" for preset in ("release", "torch-free")]:
        if path and os.access(path, os.X_OK):
            return str(path)
    pytest.skip("no mergeplan binary: build one, or name it by MERGEPLAN_BIN")


def run(*arguments):
    """The JSON that a command prints."""
    done = subprocess.run([command(), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(*arguments):
    """The line that a command refuses with, without its name."""
    done = subprocess.run([command(), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    return done.stderr.strip().split(": ", 1)[1]


def close(a, b, relative=1e-12):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    assert a.shape == b.shape
    assert np.all(np.abs(a - b) <= relative * np.maximum(np.abs(a), np.abs(b))), (a, b)
