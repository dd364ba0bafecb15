"""The build backend of pyproject.toml: scikit-build-core's, with an sdist that also holds what lies above this folder.

The sdist has the layout of the repository, with pyproject.toml at its root and the paths in it as they are from there. It takes
the planner's sources and this package, nothing else.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from pathlib import Path

from scikit_build_core import build as _core
from scikit_build_core.build import *  # noqa: F403: the other hooks

HELD = ("CMakeLists.txt", "LICENSE", "cmake", "planner", "adapters/python")
# In pyproject.toml, here and from the root of the sdist.
MOVED = (
    ('backend-path = ["backend"]', 'backend-path = ["adapters/python/backend"]'),
    ('readme = "README.md"', 'readme = "adapters/python/README.md"'),
    ('cmake.source-dir = "../.."', 'cmake.source-dir = "."'),
    ('build-dir = "../../build/', 'build-dir = "build/'),
    ('wheel.packages = ["mergeplan"]', 'wheel.packages = ["adapters/python/mergeplan"]'),
)


def _root() -> tuple[Path, str]:
    """The folder with the planner, and pyproject.toml as it is from there."""
    here = Path.cwd()
    text = (here / "pyproject.toml").read_text(encoding="utf-8")
    if (here / "planner").is_dir():  # an sdist, unpacked
        return here, text
    root = here.parents[1]
    if not (root / "planner").is_dir():
        raise FileNotFoundError(f"{root / 'planner'}: is not there, expected the whole repository around {here}")
    for old, new in MOVED:
        if text.count(old) != 1:
            raise ValueError(f"{here / 'pyproject.toml'}: holds {text.count(old)} times {old!r}, expected once (backend/mergeplan_build.py)")
        text = text.replace(old, new)
    return root, text


def _files(root: Path) -> list[Path]:
    found = []
    for held in HELD:
        path = root / held
        found += [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    left_out = {"__pycache__", "build", "dist"}
    # The pyproject.toml of the package stands at the root.
    return sorted(
        p.relative_to(root)
        for p in found
        if p.name != "pyproject.toml" and not any(part in left_out or part.startswith(".") for part in p.relative_to(root).parts)
    )


def build_sdist(sdist_directory: str, config_settings=None) -> str:
    """Writes mergeplan-VERSION.tar.gz, the same bytes for the same files, and returns its name."""
    root, text = _root()
    with tempfile.TemporaryDirectory() as folder:
        info = _core.prepare_metadata_for_build_wheel(folder, config_settings)
        metadata = (Path(folder) / info / "METADATA").read_bytes()
    name = info.removesuffix(".dist-info")
    made = {"pyproject.toml": text.encode(), "PKG-INFO": metadata}
    target = Path(sdist_directory) / f"{name}.tar.gz"
    beside = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with open(beside, "wb") as out, gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for path in sorted([*map(Path, made), *_files(root)]):
                    data = made.get(str(path)) or (root / path).read_bytes()
                    entry = tarfile.TarInfo(f"{name}/{path.as_posix()}")
                    entry.size, entry.mode = len(data), 0o644
                    tar.addfile(entry, io.BytesIO(data))
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    return target.name
