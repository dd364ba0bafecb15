"""Speed of `mergeplan analyze` against its peers, all in one run: table.py [--rows N] [--bytes B] [--repeats R].

Covariance of N x 784 float32 (default 60,000) against a bare dsyrk, numpy.cov and, where it is installed, scikit-learn's
IncrementalPCA; then --diagonal-only of a float32 file of B bytes (default 4e9) against `cat FILE > /dev/null`, both from the page
cache. The seconds of mergeplan are those that it prints: opening and reading the file are in them, as is all else that the covariance
comes with (third and fourth moments, channels, scaling). Peers have the data in memory already. Least of R runs in turn.

MERGEPLAN and PYTHON name the programs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = os.path.join(HERE, "..", "peers", "covariance.py")
MERGEPLAN = os.environ.get("MERGEPLAN", "mergeplan")


def analyze(path, threads, *flags):
    out = subprocess.run(
        [MERGEPLAN, "analyze", path, "--threads", str(threads), "--no-gaussianity", "--json", *flags],
        check=True, capture_output=True, text=True)
    return json.loads(out.stdout)["seconds"]


def peer(path, name, threads):
    env = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
    out = subprocess.run([sys.executable, PEER, path, name, "1"], env=env, capture_output=True, text=True)
    return float(out.stdout) if out.returncode == 0 else None


def cat(path):
    begin = time.perf_counter()
    subprocess.run(["sh", "-c", 'cat "$0" > /dev/null', path], check=True)
    return time.perf_counter() - begin


def least(repeats, runs):
    """The least time of each, taken in turn so that all see the same machine."""
    best = {}
    for _ in range(repeats):
        for name, run in runs.items():
            seconds = run()
            if seconds is not None:
                best[name] = min(best.get(name, float("inf")), seconds)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=60000)
    parser.add_argument("--bytes", type=float, default=4e9)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.npy")
        np.save(path, random.standard_normal((args.rows, 784), dtype=np.float32))
        print(f"covariance of {args.rows:,} x 784 float32, seconds\n")
        print("| threads | mergeplan analyze | dsyrk | numpy.cov | IncrementalPCA | mergeplan / dsyrk |\n|---|---|---|---|---|---|")
        for threads in (1, 2):
            times = least(args.repeats, {
                "mergeplan": lambda: analyze(path, threads, "--basis", "diagonal"),
                "dsyrk": lambda: peer(path, "dsyrk", threads),
                "cov": lambda: peer(path, "cov", threads),
                "ipca": lambda: peer(path, "ipca", threads),
            })
            text = [f"{times[n]:.3f}" if n in times else "not installed" for n in ("mergeplan", "dsyrk", "cov", "ipca")]
            print(f"| {threads} | " + " | ".join(text) + f" | {times['mergeplan'] / times['dsyrk']:.2f} |", flush=True)
        big = os.path.join(folder, "big.npy")
        rows = int(args.bytes // 4096)
        block = random.standard_normal((min(rows, 4096), 1024), dtype=np.float32)
        with open(big, "wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, 1024)})
            for first in range(0, rows, len(block)):
                block[: min(len(block), rows - first)].tofile(file)
        size = os.path.getsize(big)
        print(f"\ndiagonal moments of {rows:,} x 1024 float32, {size / 1e9:.2f} GB, GB/s\n")
        print("| | GB/s | share of cat |\n|---|---|---|")
        runs = {"cat": lambda: cat(big)}
        for threads in (1, 2):
            runs[f"--diagonal-only --threads {threads}"] = lambda t=threads: analyze(big, t, "--diagonal-only")
        times = least(args.repeats, runs)
        for name, seconds in times.items():
            print(f"| {name} | {size / 1e9 / seconds:.2f} | {100 * times['cat'] / seconds:.0f} % |")


main()
