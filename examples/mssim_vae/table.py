#!/usr/bin/env python3
"""Tables in Markdown of what story.sh measured.

    python3 table.py FOLDER     reads FOLDER/CONTENT/bench-UPDATES.csv and FOLDER/CONTENT/latents.json
"""

import csv
import itertools
import json
import pathlib
import sys

ORDER = ["vanilla", "progressive", "boot", "consistency", "dp_custom"]
NAMES = {"boot": "BOOT", "dp_custom": "the DP's plan"}
FIGURES = {  # columns of the table of `mergeplan bench`, and what they are; less is better
    "achieved_error": "error of the operator against the surrogate",
    "distance_from_teacher": "decoded, from the teacher's samples for the same noise",
    "frechet_distance": "decoded, Frechet distance",
}
BUDGETS = {"per-merge": "the same updates for every merge", "total": "the same updates in all"}


def verdict(path):
    found = json.loads(path.read_text())
    basis = found["bases"][found["basis"]]
    low, high = basis["variances_low"], basis["variances_high"]
    below = sum(h <= 1 for h in high)
    above = sum(l > 1 for l in low)
    values = sorted(basis["variances"])
    return (
        f"{found['samples']} latents, basis {found['basis']}: regime {basis['regime']}; variances {values[0]:.3g} to {values[-1]:.3g}, "
        f"median {values[len(values) // 2]:.3g}; {below} of {len(values)} surely at most 1, {above} surely above, "
        f"{len(values) - below - above} undecided ({found['confidence']:.0%} intervals)"
    )


def main(folder):
    for content in sorted(p for p in folder.iterdir() if (p / "latents.json").exists()):
        print(f"\n**{content.name}**: {verdict(content / 'latents.json')}.")
        runs = {}
        for file in content.glob("bench-*.csv"):
            for row in csv.DictReader(file.open()):
                for figure in FIGURES:
                    if row[figure]:
                        runs[figure, row["budget"], row["strategy"], int(file.stem.split("-")[1])] = float(row[figure])
        updates = sorted({k[3] for k in runs})
        for (figure, meaning), (budget, words) in itertools.product(FIGURES.items(), BUDGETS.items()):
            if not any(k[:2] == (figure, budget) for k in runs):
                continue
            print(f"\n| {meaning}; {words} | " + " | ".join(f"{u:,}" for u in updates) + " |")
            print("|---|" + "---|" * len(updates))
            best = {u: min(runs[figure, budget, s, u] for s in ORDER if s != "dp_custom") for u in updates}
            for strategy in ORDER:
                cells = []
                for u in updates:
                    error = runs[figure, budget, strategy, u]
                    text = f"{error:.4g}"
                    # The best of the four; together where they differ by rounding and SGD's noise only.
                    cells.append(f"**{text}**" if strategy != "dp_custom" and error <= best[u] * (1 + 1e-4) else text)
                print(f"| {NAMES.get(strategy, strategy)} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
