"""Checks what examples/quickstart.sh left in a folder, and that its law test can fail."""

import json
import pathlib
import shutil
import subprocess
import sys

STRATEGIES = ["vanilla", "progressive", "boot", "consistency", "dp_custom"]
PROBLEM = "--teacher-steps 32 --schedule cosine --iterations 320 --batch 64 --basis pca".split()


def mergeplan(*arguments):
    return subprocess.run(["mergeplan", *map(str, arguments)], check=True, text=True, capture_output=True).stdout


def law(out, runs, page):
    rows = json.loads(mergeplan("report", *runs, "-o", out / page, "--json"))["strategies"]
    return {pathlib.Path(row["run"]).name: row for row in rows}


def main(out):
    page = (out / "report.html").read_text()
    assert "<svg" in page and "data:image/png;base64," in page, "the report has no pictures"
    assert 'src="http' not in page and "url(http" not in page, "the report needs something from outside"

    plan = json.loads(mergeplan("show", out / "plan.toml", "--json"))
    assert plan["gap"] <= 0.01, plan["gap"]
    assert plan["lower_bound"] <= plan["objective"]
    for name, figures in plan["strategies"].items():
        assert plan["objective"] <= figures["objective"], name

    right = law(out, [out / "runs" / s for s in STRATEGIES], "right.html")
    for name, row in right.items():
        test = row["law_test"]
        print(f"{name}: predicted {row['predicted_error_with_noise']:.6g}, achieved {row['achieved_error']:.6g}, "
              f"least p {test['smallest_p']:.2g} of {test['hypotheses']}")
        assert test["rejected"] == 0, f"{name} is rejected in {test['rejected']} dimensions"
        assert test["hypotheses"] == 5 * 784

    # The same runs, but one of them trained with a learning rate 5 % too large.
    for name in STRATEGIES[:4]:
        wrong = out / "wrong" / name
        mergeplan("distill", "--strategy", name, *PROBLEM, "--lr", 0.00525, "--teacher", f"analytic:{out}/spectrum.toml",
                  "-o", wrong)
        for file in [*wrong.glob("plan*")]:
            file.unlink()
        for file in (out / "runs" / name).glob("plan*"):
            shutil.copy(file, wrong)
        runs = [wrong if s == name else out / "runs" / s for s in STRATEGIES]
        test = law(out, runs, "wrong.html")[name]["law_test"]
        print(f"{name} with the rate 5 % off: rejected in {test['rejected']} dimensions, p = {test['adjusted_p']:.2g}")
        assert test["rejected"] > 0, f"{name} with a wrong rate was not noticed"


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
