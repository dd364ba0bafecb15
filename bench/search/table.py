"""Writes the tables of README.md from a result of search_bench: table.py RESULT.json README.md"""

import json
import re
import sys

BLOCKS = (1, 2, 4, 8)
GOALS = {
    "Scalar/0.5": "one variance 0.5, T = 1024, proven best",
    "Scalar/1.02": "one variance 1.02, T = 1024, proven best",
    "Scalar/1.2": "one variance 1.2, T = 1024, proven best",
    "Scalar/1.9": "one variance 1.9, T = 1024, proven best",
    "Scalar/3": "one variance 3, T = 1024, proven best",
    "LogSpacedVariances/wide_d128_T64_exact": "d = 128, 0.2..5, T = 64, proven best",
    "LogSpacedVariances/around_one_d128_T32_gap01": "d = 128, 0.5..2, T = 32, gap 0.1 %",
    "LogSpacedVariances/around_one_d128_T32_exact": "d = 128, 0.5..2, T = 32, proven best",
    "LogSpacedVariances/around_one_d128_T64_gap1": "d = 128, 0.5..2, T = 64, gap 1 %",
    "LogSpacedVariances/around_one_d32_T256_gap1": "d = 32, 0.3..3, T = 256, gap 1 %",
    "FashionMnist": "Fashion-MNIST's principal directions, d = 784, T = 32, gap 0.1 %",
    "FallingVariances/d16384_T256_gap1": "d = 16,384, 8 k^-0.35, T = 256, gap 1 %",
    "FallingVariances/d16384_T1000_gap1": "d = 16,384, 8 k^-0.35, T = 1000, gap 1 %",
}


def short(x):
    return f"{x:.3g}" if x < 100 else f"{x:.0f}"


def goals(runs):
    yield "| work | N | seconds | objective | lower bound | gap | memory |"
    yield "|---|---|---|---|---|---|---|"
    for name, words in GOALS.items():
        for blocks in (None,) + BLOCKS:
            run = runs.get(name if blocks is None else f"{name}/{blocks}")
            if run is None:
                continue
            status = run["label"].replace("_", " ")
            yield (
                f"| {words} | {blocks or 1} | {short(run['real_time'])} | {run['objective']:.9e} | {run['lower_bound']:.9e} "
                f"| {short(run['gap_percent'])} % ({status}) | {run['memory_MB']:.0f} MB |"
            )


def scaling(runs):
    cells = {}
    for name, run in runs.items():
        match = re.fullmatch(r"Scaling/T:(\d+)/d:(\d+)", name)
        if match:
            cells[int(match[1]), int(match[2])] = run
    dimensions = sorted({d for _, d in cells})
    yield "| T | " + " | ".join(f"d = {d:,}" for d in dimensions) + " |"
    yield "|---" * (len(dimensions) + 1) + "|"
    for steps in sorted({t for t, _ in cells}):
        row = (f"{short(cells[steps, d]['real_time'])} s, {cells[steps, d]['memory_MB']:.0f} MB" for d in dimensions)
        yield f"| {steps} | " + " | ".join(row) + " |"


def pairs(run):
    yield (
        f"Algorithm 1 as printed: {run['algorithm1_seconds']:.3g} s for the ten pairs ({run['algorithm1_candidates']:,.0f} candidates). "
        f"Here, each right after Algorithm 1 on the same pair: {1e3 * run['this_seconds']:.3g} ms for all ten, {run['ratio']:,.0f} times as fast; "
        f"the ten one after the other: {1e3 * run['together_seconds']:.3g} ms, {run['ratio_together']:,.0f} times. Proven best: "
        f"{run['optimal_of_10']:.0f} of 10; no worse than Algorithm 1: {run['no_worse_of_10']:.0f} of 10."
    )


def main(result, readme):
    with open(result) as file:
        report = json.load(file)
    runs = {}
    for run in report["benchmarks"]:
        name = re.sub(r"/iterations:1|/real_time", "", run["name"])
        if not run.get("error_occurred"):
            runs[name] = run
    tables = {"goals": goals(runs), "scaling": scaling(runs), "pairs": pairs(runs["TenPairs"])}
    context = report["context"]
    tables["machine"] = iter([f"{context['num_cpus']} cores at {context['mhz_per_cpu']} MHz, {context['date'][:10]}."])
    with open(readme) as file:
        text = file.read()
    for key, lines in tables.items():
        block = f"<!-- {key} -->\n" + "\n".join(lines) + f"\n<!-- end of {key} -->"
        text, count = re.subn(f"<!-- {key} -->.*?<!-- end of {key} -->", lambda _: block, text, flags=re.S)
        if count != 1:
            sys.exit(f"{readme}: expected one place for {key}, found {count}")
    with open(readme, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
