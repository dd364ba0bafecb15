"""The package as it is installed: what it loads, what it needs, what it says of itself."""

import ast
import pathlib
import subprocess
import sys

import mergeplan
import pytest

FOLDER = pathlib.Path(mergeplan.__file__).parent
EVERYWHERE = ("linux-vdso", "ld-linux", "libc.so", "libm.so", "libdl.so", "librt.so", "libpthread.so", "libgcc_s.so", "libstdc++.so")


def test_import_loads_neither_torch_nor_numpy():
    text = "import sys, mergeplan; print(sorted({'torch', 'diffusers', 'numpy', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_extension_needs_only_what_it_brings_and_what_every_system_has():
    (core,) = FOLDER.glob("_core*.so")
    done = subprocess.run(["ldd", core], capture_output=True, text=True, check=True)
    assert "not found" not in done.stdout
    for line in done.stdout.splitlines():
        name = line.split()[0].rsplit("/", 1)[-1]
        if name.startswith(EVERYWHERE):
            continue
        assert "mergeplan.libs/" in line, line
    assert "blas" not in done.stdout.lower() and "icu" not in done.stdout


def test_the_extension_shows_nothing_but_its_entry():
    (core,) = FOLDER.glob("_core*.so")
    done = subprocess.run(["nm", "-D", "--defined-only", core], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("no nm")
    names = {line.split()[-1] for line in done.stdout.splitlines()}
    assert {name for name in names if not name.startswith("PyInit")} == set()


def test_it_is_typed():
    assert (FOLDER / "py.typed").exists() and "Apache License" in (FOLDER / "LICENSE").read_text()
    tree = ast.parse((FOLDER / "_core.pyi").read_text())
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {"Spectrum", "Schedule", "Plan", "Merge"} <= set(classes)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    names = [a.arg for a in functions["plan"].args.args + functions["plan"].args.kwonlyargs]
    for name in ("spectrum", "schedule", "teacher_steps", "train_time", "lr", "iterations", "feature_norm", "student_steps",
                 "init", "reference", "space", "gap", "time_limit", "progress"):
        assert name in names


def test_everything_public_is_documented():
    for name in mergeplan.__all__:
        thing = getattr(mergeplan, name)
        if isinstance(thing, type):
            for member in vars(thing):
                if not member.startswith("_"):
                    assert getattr(thing, member).__doc__, f"{name}.{member}"
        if name != "__version__":
            assert thing.__doc__
    assert mergeplan.__version__.count(".") == 2
