"""Writes the tables of README.md: table.py OURS.json PEER_BEFORE.json PEER_AFTER.json README.md"""

import json
import re
import sys

WORK = (
    ("one batch for all updates, sums once (`--draws fixed`)", "Train/fixed", "fixed", {2: 100, 128: 100}),
    ("the same, looping over its samples in every update", "LoopOverFixedSamples", "fixed", {128: 15}),
    ("fresh samples (`--draws samples`, the default)", "Train/samples", "samples", {2: 2, 128: 2}),
    ("fresh sums (`--draws chi2`)", "Train/chi2", "samples", {2: 100, 128: 100}),
)


def rate(x):
    return f"{x / 1e6:.3g} M" if x >= 1e6 else f"{x / 1e3:.3g} k"


def main():
    ours_path, before_path, after_path, readme = sys.argv[1:]
    with open(ours_path, encoding="utf-8") as file:
        result = json.load(file)
    runs = {re.sub(r"/iterations:1|/real_time", "", run["name"]): run for run in result["benchmarks"]}
    peers = []
    for path in (before_path, after_path):
        with open(path, encoding="utf-8") as file:
            peers.append(json.load(file))
    # The faster of the peer's two turns, so that a busy moment of its is not our merit.
    peer = {key: max(p[key] for p in peers) for key in peers[0] if key != "torch"}

    lines = ["| work | d | ours | PyTorch, eager | ratio | goal |", "|---|---|---|---|---|---|"]
    for words, name, key, goals in WORK:
        for d in (2, 128):
            mine, theirs = runs[f"{name}/{d}"]["items_per_second"], peer[f"{key}/{d}"]
            goal = f"{goals[d]} ×" if d in goals else "–"
            lines.append(f"| {words} | {d} | {rate(mine)} | {rate(theirs)} | {mine / theirs:.3g} × | {goal} |")
    normals = runs["DrawNormals"]["items_per_second"] / 1e6
    chi2 = runs["DrawChiSquared"]["items_per_second"] / 1e6
    tables = {
        "updates": lines,
        "draws": [f"{normals:.0f} million normal numbers a second on one thread, {chi2:.1f} million sums of 2,560 squares."],
        "paper": [
            f"All tables with sums from their χ² law: {runs['PaperTables/chi2']['real_time']:.3g} s. "
            f"T = 32 alone (about one part in 32 of the work) with all samples drawn: "
            f"{runs['PaperTables/samples_T32']['real_time']:.3g} s. Two threads."
        ],
        "machine": [
            f"{result['context']['num_cpus']} cores at {result['context']['mhz_per_cpu']} MHz, load "
            f"{result['context']['load_avg'][0]:.1f} at the start of our part, torch {peers[0]['torch']}, "
            f"{result['context']['date'][:10]}."
        ],
    }
    with open(readme, encoding="utf-8") as file:
        text = file.read()
    for name, content in tables.items():
        block = "<!-- {0} -->\n{1}\n<!-- end of {0} -->".format(name, "\n".join(content))
        text, count = re.subn(rf"<!-- {name} -->.*?<!-- end of {name} -->", lambda _: block, text, flags=re.S)
        if count != 1:
            sys.exit(f"{readme}: found {count} places for '{name}', expected 1")
    with open(readme, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
