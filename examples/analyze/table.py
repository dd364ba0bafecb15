"""Markdown table of what `mergeplan analyze --json` said: table.py TITLE=FILE.json ..."""

import json
import sys


def cells(path):
    with open(path, encoding="utf-8") as file:
        a = json.load(file)
    normal = a["gaussianity"]
    basis = a["bases"][a["basis"]]
    scale = a["scaling"]
    extremes = [(axes["least_kurtosis"], axes["largest_kurtosis"]) for axes in normal["axes"].values()]
    shape = " x ".join(str(extent) for extent in a["shape"])
    return [
        ("samples", f"{a['samples']:,} of {shape}"),
        ("mean of all values", f"{scale['shift_factor']:.4f} ± {scale['shift_factor_error']:.1g}"),
        ("scaling factor", f"{scale['scaling_factor']:.4f} ± {scale['scaling_factor_error']:.1g}"),
        ("basis", a["basis"]),
        ("off-diagonal energy, own axes", f"{100 * a['bases']['diagonal']['off_diagonal_energy']:.1f} %"),
        ("regime in that basis", basis["regime"]),
        ("variances above 1", f"{100 * basis['fraction_above_one']:.1f} %, {100 * basis['energy_above_one']:.0f} % of the variance"),
        ("effective rank", f"{basis['effective_rank']:.1f} of {a['dimensions']}"),
        ("kurtosis along axes", f"{min(e[0] for e in extremes):.2f} to {max(e[1] for e in extremes):.4g}"),
        ("verdict", normal["verdict"]),
        ("strategy (T = 50, cosine, s = 1.6)", a["recommended_strategy"]),
        ("seconds", f"{a['seconds']:.1f}"),
    ]


columns = [argument.partition("=") for argument in sys.argv[1:]]
tables = [cells(path) for _, _, path in columns]
print("| |", " | ".join(title for title, _, _ in columns), "|")
print("|---|" + "---|" * len(columns))
for rows in zip(*tables):
    print("|", rows[0][0], "|", " | ".join(value for _, value in rows), "|")
