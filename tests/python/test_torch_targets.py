"""mergeplan.torch: what a batch holds, against a slow twin and against diffusers' own numbers."""

import copy
import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import torch_cases as cases
from mergeplan.torch import MergeDistiller

SHARED = os.environ.get("MERGEPLAN_SHARED", "")


def walk(distiller, twin, plan, init, nets, task, z):
    """The target of a merge by the plan's tree: children from the noisiest, each with the weights and the landing level
    that its start gave it."""
    whole = init in ("jump", "child-jump")
    merge = next(m for m in plan.merges if (m.first, m.last) == (task.first, task.last))
    for first, last in reversed(merge.children):
        if first == last:
            z = twin.jump(nets["teacher"], z, last, last - 1)
        else:
            z = twin.jump(nets[first, last], z, last, first - 1 if whole else last - 1)
    return z


@pytest.mark.parametrize("seed", range(24))
def test_batches_are_those_of_the_slow_twin(seed):
    rng = cases.seeded_random(seed)
    torch.manual_seed(seed)
    steps = rng.randint(2, 9)
    prediction, init = cases.PREDICTIONS[seed % 4], cases.INITS[(seed // 4) % 4]
    schedule = cases.schedule(steps, "flow" if prediction == "flow" else "cosine")
    cut = rng.randint(1, steps)
    trees = [cases.random_tree(1, cut, rng)] + ([cases.random_tree(cut + 1, steps, rng)] if cut < steps else [])
    plan = cases.make_plan(steps, trees, schedule, init)
    if not plan.merges:
        plan = cases.make_plan(steps, [cases.random_tree(1, steps, rng)], schedule, init)
    teacher = cases.Small()
    distiller = MergeDistiller(
        plan, teacher, prediction_type=prediction, updates=2, seed=seed, shared=rng.random() < 0.7,
        loss=rng.choice(["z", "x0", "v"]), weighting=rng.choice(["uniform", "truncated-snr"]),
    )
    twin, nets = cases.Twin(schedule, prediction), {"teacher": teacher}
    optimizer = torch.optim.SGD(distiller.student.parameters(), 1e-3)
    data = torch.randn(64, 5, dtype=torch.float64)
    trained = 0
    for stage in distiller.rounds(optimizer):
        start = copy.deepcopy(distiller.student)
        # The start is the teacher, or what the noisiest child became.
        for task in stage.stage.tasks:
            merge = next(m for m in plan.merges if (m.first, m.last) == (task.first, task.last))
            first, last = merge.children[-1]
            from_child = init in ("child", "child-jump") and first != last
            expected = nets[first, last] if from_child else teacher
            for a, b in zip(start.parameters(), expected.parameters()):
                assert torch.equal(a, b)
        for _ in stage:
            x0 = data[: rng.randint(1, 7)]
            batch = distiller.batch(x0)
            student = distiller.student(batch.z, batch.t)
            loss = distiller.loss(student, batch, "sum")
            total = 0.0
            for row, k in enumerate(distiller._last.tasks):
                task = stage.stage.tasks[k]
                z = batch.z[row : row + 1] / schedule.level_scale[task.last]
                assert float(batch.t[row]) == pytest.approx(schedule.timesteps[task.last], rel=1e-6)
                end = walk(distiller, twin, plan, init, nets, task, z)
                landing = task.first - 1 if init in ("jump", "child-jump") else task.last - 1
                wanted = twin.output_for(z, task.last, landing, end)
                assert torch.allclose(batch.target[row : row + 1], wanted, rtol=1e-7, atol=1e-9)
                landed = twin.jump(distiller.student, z, task.last, landing)
                factor = distiller._factor(stage.stage, task)
                total += len(stage.stage.tasks) * factor * float((landed - end).detach().square().sum())
            assert float(loss.detach()) == pytest.approx(total / len(x0), rel=1e-7)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            trained += 1
        for task in stage.stage.tasks:
            nets[task.first, task.last] = copy.deepcopy(distiller.student)
    assert trained and distiller.finished and len(distiller.records) == len(plan.merges)
    # The whole student is its blocks one after the other.
    z = torch.randn(3, 5, dtype=torch.float64)
    expected = z * (schedule.alpha[-1] ** 2 + schedule.sigma[-1] ** 2) ** 0.5
    whole = init in ("jump", "child-jump")
    for first, last in reversed(plan.blocks):
        expected = torch.cat([
            twin.jump(teacher if first == last else nets[first, last], row[None], last, first - 1 if whole else last - 1)
            for row in expected
        ])
    expected = expected * schedule.level_scale[0]
    assert torch.allclose(distiller.sample(z), expected.detach(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 64])
def test_rows_are_shared_out_evenly(rows):
    schedule = cases.schedule(12)
    plan = cases.make_plan(12, [[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], 11, 12], schedule)
    distiller = MergeDistiller(plan, cases.Small(), prediction_type="v_prediction", updates=20)
    distiller.advance()
    counts = [0] * 5
    for _ in range(20):
        distiller.batch(torch.zeros(rows, 5, dtype=torch.float64))
        for k in distiller._last.tasks:
            counts[k] += 1
    assert max(counts) - min(counts) <= 1 and sum(counts) == 20 * rows


@pytest.mark.parametrize("prediction", ["epsilon", "sample", "v_prediction"])
def test_diffusers_own_first_merge(prediction):
    """Target, losses and gradients of shared/reference/diffusers/teacher-ddim."""
    folder = Path(SHARED) / "reference/diffusers"
    if not (folder / "teacher-ddim").is_dir():
        pytest.skip("set MERGEPLAN_SHARED to the folder with reference/diffusers")
    from diffusers import UNet2DModel

    io = np.load(folder / "teacher-ddim" / prediction / "io.npz")
    bars = io["alphas_cumprod"].astype(np.float64)[io["timesteps"][::-1]]
    schedule = SimpleNamespace(
        alpha=[1.0, *np.sqrt(bars)], sigma=[0.0, *np.sqrt(1 - bars)],
        timesteps=[float("nan"), *map(float, io["timesteps"][::-1])], prediction_type=prediction,
    )
    plan = cases.make_plan(8, [1, 2, 3, 4, 5, 6, [7, 8]], schedule, "jump")
    teacher = UNet2DModel.from_pretrained(folder / "unets/plain").double()
    distiller = MergeDistiller(plan, teacher, updates=1)
    assert distiller.advance()
    # A start with the reference's noise: x0 = 0 leaves sigma * noise.
    z = torch.from_numpy(io["z_f64"][0]).double()
    noise = z / schedule.sigma[8]
    distiller._noise = lambda like, generator: noise
    batch = distiller.batch(torch.zeros_like(z))
    assert torch.allclose(batch.z, z, rtol=1e-12) and batch.t.tolist() == [999, 999]
    said = distiller.student(batch.z, batch.t).sample
    loss = distiller.loss(said, batch, "sum")
    assert float(loss.detach()) == pytest.approx(float(io["loss_sum_f64"]), rel=1e-6)
    landed = distiller.levels.landing(8, 6)
    end = batch.z * landed.state + batch.target * landed.output
    assert np.abs(end.numpy() - io["target_f64"]).max() <= 1e-7 * np.abs(io["target_f64"]).max()
    loss.backward()
    named = dict(distiller.student.named_parameters())
    for k in range(2):
        wanted = io[f"loss_sum.grad_{k}_f64"]
        found = named[str(io["grad_names"][k].decode())].grad.numpy()
        assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()
    torch.optim.SGD(distiller.student.parameters(), 1e-4).step()
    again = distiller.loss(distiller.student(batch.z, batch.t).sample, batch, "sum")
    assert float(again.detach()) == pytest.approx(float(io["loss_sum.sgd_loss_f64"]), rel=1e-5)


def test_rollouts_need_no_data():
    schedule = cases.schedule(6)
    plan = cases.make_plan(6, [[[1, 2], [3, 4], [5, 6]]], schedule)
    teacher = cases.Small()
    distiller = MergeDistiller(plan, teacher, prediction_type="v_prediction", updates=3)
    distiller.advance()
    shape = torch.empty(6, 5, dtype=torch.float64)
    batch = distiller.batch(like=shape)
    twin = cases.Twin(schedule, "v_prediction")
    noise = distiller._noise(shape, torch.Generator().manual_seed(0))
    again = MergeDistiller(plan, teacher, prediction_type="v_prediction", updates=3)
    again.advance()
    batch = again.batch(like=shape, generator=torch.Generator().manual_seed(0))
    for row, k in enumerate(again._last.tasks):
        z = noise[row : row + 1]
        for level in range(6, again.stage.tasks[k].last, -1):
            z = twin.jump(teacher, z, level, level - 1)
        assert torch.allclose(batch.z[row : row + 1], z, rtol=1e-9)


def test_conditions_go_with_their_rows():
    schedule = cases.schedule(4)
    plan = cases.make_plan(4, [[[1, 2], [3, 4]]], schedule)
    teacher = cases.Small(condition=2)
    distiller = MergeDistiller(plan, teacher, prediction_type="sample", updates=2)
    extra = torch.randn(8, 2, dtype=torch.float64)
    twin = cases.Twin(schedule, "sample")
    distiller.advance()
    batch = distiller.batch(torch.randn(8, 5, dtype=torch.float64), extra=extra)
    for row, k in enumerate(distiller._last.tasks):
        task, z = distiller.stage.tasks[k], batch.z[row : row + 1]
        here = extra[row : row + 1]
        for level in (task.last, task.last - 1):
            z = twin.jump(teacher, z, level, level - 1, extra=here)
        wanted = twin.output_for(batch.z[row : row + 1], task.last, task.first - 1, z)
        assert torch.allclose(batch.target[row : row + 1], wanted.detach(), rtol=1e-8, atol=1e-10)


def test_a_fit_comes_first_for_students_of_another_kind():
    schedule = cases.schedule(4)
    plan = cases.make_plan(4, [[1, 2, 3, 4]], schedule)
    teacher, student = cases.Small(), cases.Small(hidden=24)
    data = torch.randn(256, 5, dtype=torch.float64)
    distiller = MergeDistiller(plan, teacher, student, prediction_type="v_prediction", updates=3, fit_updates=300)
    noise = torch.randn(128, 5, dtype=torch.float64)

    def off():
        z, t = noise, torch.full((128,), schedule.timesteps[3])
        return float((student(z, t) - teacher(z, t)).detach().square().mean())

    before, after = off(), None
    optimizer = torch.optim.Adam(student.parameters(), 1e-2)
    for stage in distiller.rounds(optimizer):
        if stage.number == 1:
            after = off()
        for x0 in stage.over(data.split(32)):
            batch = distiller.batch(x0)
            distiller.loss(student(batch.z, batch.t), batch).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert after < before / 20
    assert [(r.first, r.last) for r in distiller.records] == [(1, 4)]


def refuse(match, plan, teacher, error=ValueError, **options):
    with pytest.raises(error, match=match):
        MergeDistiller(plan, teacher, **{"prediction_type": "v_prediction", "updates": 1, **options})


def test_what_does_not_fit_is_said_before_anything_is_trained():
    schedule = cases.schedule(4)
    plan, net = cases.make_plan(4, [[1, 2, 3, 4]], schedule), cases.Small()
    refuse("updates is None", plan, net, updates=None)
    refuse("updates is 0", plan, net, updates=0)
    refuse("neither teacher nor student", plan, None)
    refuse("one network", plan, net, student=net)
    refuse("prediction_type 'noise'", plan, net, prediction_type="noise")
    refuse("does not say what the network predicts", plan, net, prediction_type="")
    refuse("start 'child-jump', not 'jump'", plan, net, init="jump")
    refuse("loss 'l1'", plan, net, loss="l1")
    refuse("weighting 'p2'", plan, net, weighting="p2")
    refuse("gamma is -1", plan, net, weighting="min-snr-gamma", gamma=-1)
    refuse("4 teacher steps, the schedule 5", plan, net, schedule=cases.schedule(5))
    refuse("0 timesteps for 5 levels", plan, net, schedule=SimpleNamespace(alpha=schedule.alpha, sigma=schedule.sigma))
    refuse("without a teacher", plan, None, student=cases.Small(), fit_updates=3)
    refuse("needs a folder", plan, net, memory=1000)
    frozen = copy.deepcopy(net).requires_grad_(False)
    refuse("nothing to train", plan, net, student=frozen)
    dark = cases.schedule(4)
    dark.alpha[-1], dark.sigma[-1] = 0.0, 1.0
    refuse("zero terminal SNR.*v_prediction or sample", cases.make_plan(4, [[1, 2, 3, 4]], dark), net, prediction_type="epsilon")
    # The same level is no trouble for a network that says something about x0 there.
    good = MergeDistiller(cases.make_plan(4, [[1, 2, 3, 4]], dark), net, prediction_type="v_prediction", updates=1)
    good.advance()
    assert torch.isfinite(good.batch(torch.randn(3, 5, dtype=torch.float64)).target).all()


def test_misuse_of_a_loop_is_said():
    plan = cases.make_plan(4, [[1, 2, 3, 4]], cases.schedule(4))
    distiller = MergeDistiller(plan, cases.Small(), prediction_type="sample", updates=1)
    x0 = torch.randn(2, 5, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="advance"):
        distiller.batch(x0)
    distiller.advance()
    for bad in (x0[:0], x0[0], x0.long()):
        with pytest.raises(ValueError, match="samples have the shape"):
            distiller.batch(bad)
    with pytest.raises(ValueError, match="needs samples"):
        distiller.batch()
    batch = distiller.batch(x0)
    with pytest.raises(RuntimeError, match="no updates left"):
        distiller.batch(x0)
    with pytest.raises(ValueError, match="output has the shape"):
        distiller.loss(torch.zeros(2, 4), batch)
    with pytest.raises(ValueError, match="reduction"):
        distiller.loss(torch.zeros(2, 5), batch, "max")
    with pytest.raises(RuntimeError, match="finished student"):
        distiller.sample(x0)
    lazy = MergeDistiller(plan, cases.Small(), prediction_type="sample", updates=2)
    with pytest.raises(RuntimeError, match="never"):
        for stage in lazy.rounds():
            for _ in stage:
                pass
    with pytest.raises(RuntimeError, match="left stage 1"):
        for stage in MergeDistiller(plan, cases.Small(), prediction_type="sample", updates=2).rounds():
            pass
    with pytest.raises(ValueError, match="no batch at all"):
        for stage in MergeDistiller(plan, cases.Small(), prediction_type="sample", updates=2).rounds():
            list(stage.over([]))
    wide = torch.nn.Module()
    wide.p = torch.nn.Parameter(torch.zeros(1))
    wide.forward = lambda z, t: torch.cat([z, z], 1)
    learned = MergeDistiller(plan, wide, prediction_type="sample", updates=2)
    learned.advance()
    with pytest.raises(ValueError, match="also predicts variances"):
        learned.batch(x0.float())


def test_one_step_and_one_dimension():
    """T = 1 leaves nothing to train; one dimension and one row are samples like others."""
    still = MergeDistiller(cases.make_plan(1, [1], cases.schedule(1)), cases.Small(1), prediction_type="sample", updates=1)
    assert list(still.rounds()) == [] and still.finished
    z = torch.randn(4, 1, dtype=torch.float64)
    assert torch.equal(still.sample(z), still.sample_teacher(z))
    plan = cases.make_plan(2, [[1, 2]], cases.schedule(2))
    one = MergeDistiller(plan, cases.Small(1), prediction_type="epsilon", updates=2)
    cases.train(one, one.student, torch.randn(5, 1, dtype=torch.float64), batch=1)
    assert one.finished


def test_a_thousand_steps():
    plan = cases.make_plan(1000, [cases.progressive(1000)], cases.schedule(1000))
    net = cases.Small()
    distiller = MergeDistiller(plan, net, prediction_type="v_prediction", updates=1)
    cases.train(distiller, distiller.student, torch.randn(8, 5, dtype=torch.float64), batch=8, rate=1e-6)
    assert distiller.finished and len(distiller.records) == 999
    assert json.dumps(distiller.records[0].to_dict())


def test_networks_of_samplers_with_sigmas_see_states_of_unit_variance():
    """Euler works on x0 + sigma noise and divides before it calls the network: level_scale is the sampler's business."""
    plain, scaled = cases.schedule(4), cases.schedule(4)
    scaled.level_scale = [1 / a for a in scaled.alpha]
    x0 = torch.randn(3, 5, dtype=torch.float64)
    net, seen = cases.Small(), []
    for schedule in (plain, scaled):
        plan = cases.make_plan(4, [cases.boot(4)], schedule)
        distiller = MergeDistiller(plan, net, prediction_type="epsilon", updates=1)
        distiller.advance()
        seen.append(distiller.batch(x0))
    for a, b in zip(*seen):
        assert torch.equal(a, b)


def test_arguments_of_other_kinds():
    schedule = cases.schedule(4)
    plan = cases.make_plan(4, [[1, 2, 3, 4]], schedule)
    for bad in ("plan.toml", 3, None):
        with pytest.raises(ValueError, match=f"plan is a {type(bad).__name__}, expected a Plan"):
            MergeDistiller(bad, cases.Small(), prediction_type="sample", updates=1)
    counted = MergeDistiller(plan, cases.Small(), prediction_type="sample", updates=torch.tensor(3), seed=torch.tensor(1))
    assert counted.updates_total == 3 and type(counted.seed) is int
    for bad in (2.0, "3", float("nan"), 0):
        with pytest.raises(ValueError, match=f"updates is {bad!r}, expected a whole number"):
            MergeDistiller(plan, cases.Small(), prediction_type="sample", updates=bad)


class Answers(torch.nn.Module):
    """A network whose answer is wrapped in something."""

    def __init__(self, wrap):
        super().__init__()
        self.net, self.wrap = cases.Small(), wrap

    def forward(self, z, t):
        return self.wrap(self.net(z, t))


@pytest.mark.parametrize("wrap", [lambda x: {"sample": x, "other": 1}, lambda x: (x, 1), lambda x: [x]])
def test_answers_of_many_kinds(wrap):
    plan = cases.make_plan(4, [[1, 2, 3, 4]], cases.schedule(4))
    distiller = MergeDistiller(plan, Answers(wrap), prediction_type="sample", updates=1)
    distiller.advance()
    assert distiller.batch(torch.randn(4, 5, dtype=torch.float64)).target.isfinite().all()


@pytest.mark.parametrize("wrap, words", [
    (lambda x: {"out": x}, "gives a dict with the keys .'out'.*forward="),
    (lambda x: None, "gives a NoneType, expected a tensor"),
    (lambda x: ("text",), "output is a str, expected a tensor"),
])
def test_answers_that_are_no_tensor(wrap, words):
    plan = cases.make_plan(4, [[1, 2, 3, 4]], cases.schedule(4))
    distiller = MergeDistiller(plan, Answers(wrap), prediction_type="sample", updates=1)
    distiller.advance()
    with pytest.raises(ValueError, match=words):
        distiller.batch(torch.randn(4, 5, dtype=torch.float64))
