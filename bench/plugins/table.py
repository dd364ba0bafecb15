"""Writes the table of plugins_bench into the README: table.py RESULT.json README.md"""

import json
import re
import sys

ROWS = {
    "BM_Border_Plan": "`plan()` for T = 1, through the table: the border itself",
    "BM_Cancelled": "`runtime->cancelled`, host's side included",
    "BM_Progress": "`runtime->progress` with a text",
    "BM_Evaluate": "`runtime->evaluate`",
    "BM_TrainMerge": "`runtime->train_merge` with its checks (a chain of 999; `Execute` shared among them)",
    "BM_MakePlan/1/0": "`MakePlan` whole, T = 1, no spectrum",
    "BM_MakePlan/1/784": "`MakePlan` whole, T = 1, d = 784",
    "BM_MakePlan/50/784": "`MakePlan` whole, T = 50, d = 784",
    "BM_MakePlan/1000/784": "`MakePlan` whole, T = 1000, d = 784",
    "BM_Execute": "`Execute` whole, T = 1, nothing to train",
}


def words(seconds):
    for unit, size in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def main(result, readme):
    with open(result) as file:
        report = json.load(file)
    lines = ["| call | CPU time, median of five | most of five |", "|---|---|---|"]
    for name, text in ROWS.items():
        runs = [r for r in report["benchmarks"] if r["run_name"] == name and r["run_type"] == "iteration"]
        if not runs or any(r.get("error_occurred") for r in runs):
            sys.exit(f"{result}: no figures for {name}")
        scale = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[runs[0]["time_unit"]]
        times = sorted(r["per_call"] if "per_call" in r else r["cpu_time"] * scale for r in runs)
        lines.append(f"| {text} | {words(times[len(times) // 2])} | {words(times[-1])} |")
    context = report["context"]
    lines += ["", f"{context['num_cpus']} cores at {context['mhz_per_cpu']} MHz, {context['date'][:10]}."]
    with open(readme) as file:
        text = file.read()
    block = "<!-- table -->\n" + "\n".join(lines) + "\n<!-- end of table -->"
    text, count = re.subn("<!-- table -->.*?<!-- end of table -->", lambda _: block, text, flags=re.S)
    if count != 1:
        sys.exit(f"{readme}: expected one place for the table, found {count}")
    with open(readme, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
