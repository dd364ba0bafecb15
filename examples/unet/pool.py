"""Markdown tables of the runs that pool.sh makes: pool.py pool|gain FOLDER

FOLDER/VALUE/ARM-SEED are runs; the first VALUE, 0, is what the others are held against. Intervals are of 95 %, by Student's t over seeds.
"""

import os
import statistics
import sys
import tomllib

T95 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
SUM = ("vanilla", "boot", "planned")  # that the goal for calls of the teacher is about
NAMES = {"boot": "BOOT", "planned": "the plan `(1 2 (3 4))`"}


def read(folder):
    """{value: {arm: {seed: what result.toml says}}}"""
    runs = {}
    for value in sorted(os.listdir(folder), key=lambda v: (v != "0", v)):
        if not os.path.isdir(os.path.join(folder, value)):
            continue
        for name in sorted(os.listdir(os.path.join(folder, value))):
            path = os.path.join(folder, value, name, "result.toml")
            if os.path.exists(path):
                arm, _, seed = name.rpartition("-")
                with open(path, "rb") as file:
                    runs.setdefault(value, {}).setdefault(arm, {})[int(seed)] = tomllib.load(file)
    return runs


def achieved(trials):
    return [trials[seed]["achieved_error"] for seed in sorted(trials)]


def spread(numbers):
    """Mean and half of its interval."""
    n = len(numbers)
    half = T95[n] * statistics.stdev(numbers) / n**0.5 if n > 1 else float("nan")
    return statistics.mean(numbers), half


def number(mean, half):
    """Two digits of the half width; the mean alone where there is none."""
    if half != half:
        return f"{mean:.2f}"
    digits = max(0, 2 - len(str(int(abs(half)))) + (abs(half) < 1))
    return f"{round(mean, digits) + 0.0:.{digits}f} ± {half:.{digits}f}"


def differences(trials, first):
    seeds = sorted(set(trials) & set(first))
    return [100 * (trials[s]["achieved_error"] / first[s]["achieved_error"] - 1) for s in seeds]


def total(trials, key):
    return statistics.mean(trial[key] for trial in trials.values())


def pool(runs):
    fresh = runs["0"]
    print("| rollouts kept | strategy | calls of the teacher | achieved error | within the fresh ones' interval? | by seed, against fresh ones |")
    print("|---|---|---|---|---|---|")
    for value in sorted(runs, key=lambda v: -int(v) if v != "0" else -(10**9)):
        arms = runs[value]
        for arm, trials in arms.items():
            mean, half = spread(achieved(trials))
            cells = [value if value != "0" else "fresh", NAMES.get(arm, arm), f"{total(trials, 'teacher_calls'):.0f}", number(mean, half)]
            if value == "0":
                cells += ["", ""]
            else:
                base, width = spread(achieved(fresh[arm]))
                inside = "" if width != width else "yes" if abs(mean - base) <= width else ("**no, above**" if mean > base else "below")
                cells += [inside, number(*spread(differences(trials, fresh[arm]))) + " %"]
            print("|", " | ".join(cells), "|")
        if all(arm in arms for arm in SUM):
            calls = sum(total(arms[arm], "teacher_calls") for arm in SUM)
            share = calls / sum(total(fresh[arm], "teacher_calls") for arm in SUM)
            print(f"| {value if value != '0' else 'fresh'} | vanilla, BOOT and the plan | {calls:.0f}, {100 * share:.1f} % | | | |")


def gain(runs):
    fresh = runs["0"]
    print("| bound | strategy | updates | merges stopped early | seconds of training | achieved error | by seed, against no stop |")
    print("|---|---|---|---|---|---|---|")
    for value, arms in runs.items():
        for arm, trials in arms.items():
            most = max(merge["updates"] for trial in fresh[arm].values() for merge in trial["merge"])
            merges = [merge["updates"] for trial in trials.values() for merge in trial["merge"]]
            stopped = sum(updates < most for updates in merges)
            cells = [value if value != "0" else "none", NAMES.get(arm, arm), f"{total(trials, 'updates'):.0f}", f"{stopped} of {len(merges)}",
                     f"{total(trials, 'seconds'):.1f}", number(*spread(achieved(trials))),
                     number(*spread(differences(trials, fresh[arm]))) + " %" if value != "0" else ""]
            print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    {"pool": pool, "gain": gain}[sys.argv[1]](read(sys.argv[2]))
