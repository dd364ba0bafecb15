"""Writes a table of experts_bench into a README: table.py updates UPDATES.csv EAGER.csv README.md, or
table.py figure FIGURE.csv WORDS README.md, WORDS being the command's arguments."""

import csv
import re
import sys


def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def updates(result, eager):
    peer = {row["inputs"]: float(row["microseconds"]) for row in rows(eager)}
    peer["pool"] = peer["fixed"]
    yield "| inputs | steps in the target | numbers | students side by side | µs per update | eager torch, float32 | ratio |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows(result):
        own, steps = float(row["microseconds"]), int(row["target_steps"])
        # The peer's target is one step.
        other = peer[row["inputs"]] if steps == 1 else None
        yield (
            f"| {row['inputs']} | {steps} | {row['precision']} | {row['trials']} | {own:.0f} "
            f"| {f'{other:.0f}' if other else ''} | {f'{other / own:.1f}' if other else ''} |"
        )


def figure(result, words):
    yield f"`bash bench/experts/table.sh {words.strip()}`:"
    yield ""
    yield "| T | loss (mean) | deviation over trials | single steps | teacher calls | seconds |"
    yield "|---|---|---|---|---|---|"
    for row in rows(result):
        calls = f"{int(row['teacher_calls']):,}"
        yield f"| {row['T']} | {row['loss']} | {row['deviation']} | {row['fit']} | {calls} | {float(row['seconds']):.0f} |"


def main(kind, result, other, readme):
    lines = {"updates": updates, "figure": figure}[kind](result, other)
    block = f"<!-- {kind} -->\n" + "\n".join(lines) + f"\n<!-- end of {kind} -->"
    with open(readme) as file:
        text = file.read()
    text, count = re.subn(f"<!-- {kind} -->.*?<!-- end of {kind} -->", lambda _: block, text, flags=re.S)
    if count != 1:
        sys.exit(f"{readme}: expected one place for {kind}, found {count}")
    with open(readme, "w") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
