"""A table of what `mergeplan analyze --json` says of regimes.

    python regimes.py TITLE=FILE.json ...
"""
import json
import sys

print("| | basis | regime | variances above 1 | intervals that hold 1 | energy above 1 | largest variance, with interval |")
print("|---|---|---|---|---|---|---|")
for word in sys.argv[1:]:
    title, path = word.split("=", 1)
    with open(path) as f:
        found = json.load(f)
    for name, basis in found["bases"].items():
        k = max(range(len(basis["variances"])), key=basis["variances"].__getitem__)
        largest = f"{basis['variances'][k]:.3g} ({basis['variances_low'][k]:.3g} to {basis['variances_high'][k]:.3g})"
        print(
            f"| {title} | {name} | {basis['regime']} | {100 * basis['fraction_above_one']:.1f} % of {len(basis['variances'])} "
            f"| {basis['undecided']} | {100 * basis['energy_above_one']:.0f} % | {largest} |"
        )
