"""Plans of the package against those of the command."""

import base64
import json
import pickle
import re
import signal
import threading
import time

import mergeplan
import numpy as np
import pytest
from planner_cases import close, refusal, run

CASES = [
    dict(variances=[0.95, 1.05], T=32, schedule="cosine", train_time=6.4, gap=0),
    dict(variances=[1.2], T=16, schedule="cosine", train_time=1.6, gap=0, space="binary"),
    dict(variances=[0.3, 0.9, 2.5], T=20, schedule="ddpm-linear", lr=0.01, iterations=40, student_steps=3),
    dict(variances=[0.3, 0.9, 2.5], T=12, schedule="flow:shift=3", train_time=0.8, reference="teacher"),
    dict(variances=[0.5, 1.5], T=10, schedule="cosine", train_time=1.6, init="child-jump", reference="data"),
    dict(variances=[0.2], T=1, schedule="cosine", train_time=1.6),
]
FLAGS = {"train_time": "--train-time", "lr": "--lr", "iterations": "--iterations", "gap": "--gap", "space": "--space",
         "student_steps": "-N", "init": "--init", "reference": "--reference"}


def both(case):
    options = {key: value for key, value in case.items() if key in FLAGS}
    flags = [word for key, value in options.items() for word in (FLAGS[key], value)]
    theirs = run("plan", "--variances", ",".join(map(str, case["variances"])), "-T", case["T"], "--schedule", case["schedule"],
                 "--json", *flags)
    ours = mergeplan.plan(case["variances"], case["schedule"], teacher_steps=case["T"], **options)
    return ours, theirs


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['schedule']}-{case['T']}")
def test_equals_the_command(case):
    ours, theirs = both(case)
    assert ours.tree == theirs["tree"]
    assert [list(block) for block in ours.blocks] == theirs["blocks"]
    assert [[m.first, m.last, m.round, [list(c) for c in m.children]] for m in ours.merges] == [
        [m["first"], m["last"], m["round"], m["children"]] for m in theirs["merges"]]
    for key in ("objective", "lower_bound", "objective_teacher", "objective_surrogate", "tolerance", "value", "tau"):
        close(getattr(ours, key), theirs[key])
    if ours.objective_equal_total_time is not None:
        close(ours.objective_equal_total_time, theirs["objective_equal_total_time"])
    assert (ours.status, ours.init, ours.reference) == (theirs["status"], theirs["init"], theirs["reference"])
    close(ours.schedule.alpha, theirs["alpha"])
    close(ours.schedule.sigma, theirs["sigma"])
    assert set(ours.strategies) == set(theirs["strategies"])
    for name, figures in ours.strategies.items():
        assert set(figures) == set(theirs["strategies"][name])
        for key, value in figures.items():
            close(value, theirs["strategies"][name][key])
    assert {key: value for key, value in ours.costs.items()} == {key: theirs[key] for key in ours.costs}


def test_rounds_levels_and_merges():
    plan = mergeplan.strategy("progressive", "cosine", teacher_steps=8, student_steps=2)
    assert plan.levels == [8, 4, 0]
    assert plan.blocks == [(1, 4), (5, 8)]
    assert [[(m.first, m.last) for m in r] for r in plan.rounds] == [[(1, 2), (3, 4), (5, 6), (7, 8)], [(1, 4), (5, 8)]]
    last = plan.rounds[1][1]
    assert (last.target, last.round, last.children) == (4, 2, [(5, 6), (7, 8)])
    assert sorted(plan.merges, key=lambda m: (m.first, m.last)) == sorted(
        [m for r in plan.rounds for m in r], key=lambda m: (m.first, m.last))
    assert len({*plan.merges, *plan.merges}) == len(plan) == 6
    assert plan.objective is None and plan.strategies == {} and plan.init == "child-jump"
    assert str(plan) == "((1 2) (3 4)) ((5 6) (7 8))"
    with pytest.raises(ValueError, match="without data"):
        plan.to_toml("nowhere.toml")


def test_strategy_with_data_has_the_figures_of_the_table():
    question = dict(train_time=1.6, init="child", reference="surrogate")
    plan = mergeplan.plan([0.4, 1.3], "cosine", teacher_steps=12, **question)
    for name, figures in plan.strategies.items():
        one = mergeplan.strategy(name, plan.schedule, spectrum=[0.4, 1.3], **question)
        close(one.objective, figures["objective"])
        assert one.status == "unchecked" and one.lower_bound == 0


def test_a_thousand_steps_deep():
    plan = mergeplan.strategy("boot", "cosine", teacher_steps=1000)
    depth, node = 0, plan.tree[0]
    while len(node) == 3:
        node, depth = node[2][-1], depth + 1
    assert depth == 999 and len(plan.rounds) == 999
    assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize("name", ["plan.toml", "a plan.json"])
@pytest.mark.parametrize("dimensions", [2, 200])
def test_files_go_both_ways(tmp_path, name, dimensions):
    plan = mergeplan.plan(np.linspace(0.2, 2, dimensions), "cosine", teacher_steps=8, lr=0.01, iterations=20)
    plan.to_toml(tmp_path / name)
    again = mergeplan.Plan.from_toml(tmp_path / name)
    assert again == plan and again.tree == plan.tree and again.objective == plan.objective
    assert again.status == plan.status and again.strategies == plan.strategies and again.schedule == plan.schedule
    shown = run("show", tmp_path / name, "--json")
    close(shown["objective"], plan.objective)
    assert json.loads(plan.to_json())["tree"] == shown["tree"]


def test_pickle_keeps_everything(tmp_path):
    plan = mergeplan.plan([0.5, 1.5], "ddpm-linear", teacher_steps=6, lr=0.01, iterations=20)
    again = pickle.loads(pickle.dumps(plan))
    assert (again, again.objective, again.strategies, again.schedule) == (plan, plan.objective, plan.strategies, plan.schedule)
    assert again.to_json() == plan.to_json()
    merge = plan.merges[0]
    assert pickle.loads(pickle.dumps(merge)) == merge


def test_pictures():
    plan = mergeplan.plan([0.5, 1.5], "cosine", teacher_steps=6, train_time=1.6)
    import xml.etree.ElementTree as xml

    assert xml.fromstring(plan._repr_svg_()).tag.endswith("svg")
    page = plan._repr_html_()
    (picture,) = re.findall('src="data:image/svg.xml;base64,([^"]+)"', page)
    assert base64.b64decode(picture).decode() == plan._repr_svg_()
    assert "vanilla" in page and f"{plan.objective:.6e}" in page
    xml.fromstring(page.replace('">', '"/>', 1))
    assert "<img" in mergeplan.strategy("boot", "cosine", teacher_steps=1)._repr_html_()


REFUSED = [
    (dict(), ["--train-time", 1.6, "--init", "jumps"], dict(train_time=1.6, init="jumps"), "--init"),
    (dict(), ["--train-time", 1.6, "--reference", "truth"], dict(train_time=1.6, reference="truth"), "--reference"),
    (dict(), ["--lr", 5, "--iterations", 4], dict(lr=5, iterations=4), None),
    (dict(schedule="cosines"), ["--train-time", 1.6], dict(train_time=1.6), None),
    (dict(variances="1,-2"), ["--train-time", 1.6], dict(train_time=1.6), "variances"),
]


@pytest.mark.parametrize("change, flags, options, own", REFUSED, ids=lambda x: str(x)[:20])
def test_errors_are_the_commands(change, flags, options, own):
    question = {"variances": "0.5,1.5", "schedule": "cosine", **change}
    theirs = refusal("plan", "--variances", question["variances"], "--schedule", question["schedule"], "-T", 8, *flags)
    with pytest.raises(ValueError) as caught:
        mergeplan.plan([float(x) for x in question["variances"].split(",")], question["schedule"], teacher_steps=8, **options)
    ours = str(caught.value)
    assert "\n" not in ours
    if own is None:
        assert ours in theirs
    elif own.startswith("--"):
        assert own[2:] in ours and ours.removeprefix(own[2:]) in theirs
    else:
        assert own in ours


@pytest.mark.parametrize("options, words", [
    (dict(), "no budget"),
    (dict(lr=0.1), "iterations"),
    (dict(iterations=3), "lr"),
    (dict(train_time=1, lr=0.1, iterations=2), "excludes"),
    (dict(train_time=1, feature_norm=2), "feature_norm"),
    (dict(train_time=float("nan")), "nan"),
    (dict(train_time=-1), "-1"),
    (dict(train_time=1, gap=1), "gap is 1, expected"),
    (dict(train_time=1, gap=float("nan")), "gap"),
    (dict(train_time=1, student_steps=9), "student_steps is 9, expected 1..8"),
    (dict(train_time=1, student_steps=0), "student_steps is 0, expected 1..8"),
    (dict(train_time=1, time_limit=0), "time_limit is 0 seconds, expected a positive"),
    (dict(train_time=1, weights=[1.0]), "weight"),
    (dict(train_time=1, weights=[[1.0, 1.0]]), "axes"),
    (dict(train_time=1, space="trees"), "trees"),
    (dict(train_time=1, teacher_steps=0), "teacher steps"),
    (dict(train_time=1, max_merges=-1), "-1"),
])
def test_bad_arguments_are_value_errors(options, words):
    with pytest.raises(ValueError, match=f"(?i){words}"):
        mergeplan.plan([0.5, 1.5], "cosine", **{"teacher_steps": 8, **options})


@pytest.mark.parametrize("variances", [[], [float("nan")], [float("inf")], [-1e-9], [[0.1, 0.2]], ["a"]])
def test_bad_variances(variances):
    with pytest.raises(ValueError):
        mergeplan.plan(variances, "cosine", teacher_steps=8, train_time=1)


def hard(**options):
    """A search that does not end by itself within its limit."""
    return mergeplan.plan(np.geomspace(0.5, 2, 128), "cosine", teacher_steps=64, train_time=1.6, gap=0, **options)


def test_ctrl_c_stops_the_search():
    # Where the tests run in the background, SIGINT is ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            hard(time_limit=600)
            timer.join()  # solved before that: the signal is on its way
            pytest.skip("the search was too quick to be stopped")
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)


def test_progress_may_stop_it_with_what_there_is():
    told = []

    def progress(seconds, objective, lower_bound):
        told.append((seconds, objective, lower_bound))
        return False

    plan = hard(time_limit=600, progress=progress)
    assert told and plan.status in ("interrupted", "optimal") and 0 <= plan.lower_bound <= plan.objective


def test_an_error_of_progress_is_raised():
    with pytest.raises(ZeroDivisionError):
        hard(time_limit=600, progress=lambda *_: 1 // 0)


def test_progress_with_a_class_like_tqdm():
    class Bar:
        made = []

        def __init__(self, **options):
            self.n, self.closed = 0, False
            Bar.made.append(self)

        def update(self, n):
            self.n += n

        def set_postfix(self, **figures):
            self.figures = figures

        def close(self):
            self.closed = True

    mergeplan.plan([0.5, 1.5], "cosine", teacher_steps=8, train_time=1.6, progress=Bar)
    assert len(Bar.made) == 1 and Bar.made[0].closed


def test_other_threads_run_while_it_searches():
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    thread = threading.Thread(target=tick)
    thread.start()
    hard(time_limit=1)
    done.set()
    thread.join()
    assert len(ticks) > 5
