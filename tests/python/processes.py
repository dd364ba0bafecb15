"""Runs one program in several processes at once, as torchrun does: `python PROGRAM RANK WORLD FOLDER`."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent


def run_ranks(program, world, folder, timeout=200):
    """Starts `program` (a file beside this one) for every rank and waits; a rank that fails or takes more than `timeout` seconds
    fails the test with what all of them said."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    running = []
    for rank in range(world):
        command = [sys.executable, str(HERE / program), str(rank), str(world), str(folder)]
        log = open(folder / f"log-{rank}.txt", "w+")
        running.append((log, subprocess.Popen(command, stdout=log, stderr=log, env=environment)))
    codes = []
    for _, process in running:
        try:
            codes.append(process.wait(timeout=timeout))
        except subprocess.TimeoutExpired:
            for _, other in running:
                other.kill()
            codes.append(f"no end after {timeout} s")
    said = []
    for log, _ in running:
        log.seek(0)
        said.append(log.read())
        log.close()
    assert codes == [0] * world, f"{codes}\n" + "\n".join(said)
