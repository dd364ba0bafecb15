"""MergeScheduler against diffusers' own schedulers."""

import glob
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import diffusers_cases as cases
import torch_cases
from diffusers import DDIMScheduler, DDPMScheduler, EDMEulerScheduler, FlowMatchEulerDiscreteScheduler
from mergeplan.diffusers import MergeScheduler
from mergeplan.torch import MergeDistiller

SHARED = Path(os.environ.get("MERGEPLAN_SHARED", ""))
REFERENCE = SHARED / "reference/diffusers/schedulers"
NAMES = ("ddpm-butterflies-128", "sd15", "sd21", "sdxl")


def config_of(name):
    (path,) = glob.glob(str(SHARED / "data/configs" / name / "**/scheduler_config.json"), recursive=True)
    with open(path) as file:
        return json.load(file)


@pytest.mark.parametrize("spacing", ["leading", "trailing", "linspace"])
@pytest.mark.parametrize("name", NAMES)
def test_single_steps_are_ddim(name, spacing):
    if not REFERENCE.is_dir():
        pytest.skip("set MERGEPLAN_SHARED to the folder with reference/diffusers")
    io = np.load(REFERENCE / f"{name}-ddim.npz")
    compared = refused = 0
    for prediction in ("epsilon", "sample", "v_prediction"):
        for zero in (0, 1):
            old = DDIMScheduler.from_config(
                config_of(name), prediction_type=prediction, timestep_spacing=spacing, rescale_betas_zero_snr=bool(zero)
            )
            key = f"{prediction}.{spacing}.zsnr{zero}."
            old.set_timesteps(8)
            schedule = cases.schedule_of(old, 8)
            if schedule.alpha[0] * schedule.sigma[1] <= schedule.alpha[1] * schedule.sigma[0]:
                # linspace of a config that does not land clean: the last timestep, 0, is where it lands.
                schedule.alpha, schedule.sigma = schedule.alpha[1:], schedule.sigma[1:]
                schedule.level_scale, schedule.timesteps = schedule.level_scale[1:], [float("nan"), *schedule.timesteps[2:]]
            if prediction == "epsilon" and zero and spacing != "leading":
                with pytest.raises(ValueError, match="zero terminal SNR.*v_prediction or sample.*leading"):
                    MergeScheduler.from_config(old.config, schedule=schedule)
                refused += 1
                continue
            ours = MergeScheduler.from_config(old.config, schedule=schedule)
            ours.set_timesteps(8)
            expected = io[key + "timesteps_8"]
            assert ours.timesteps.tolist() == expected[: len(ours.timesteps)].tolist()
            assert len(ours.timesteps) >= 7
            z = torch.from_numpy(io["x"])
            for k, t in enumerate(ours.timesteps):
                z = ours.step(torch.from_numpy(io["model_outputs_8"][k]), t, z).prev_sample
                wanted = io[key + "traj_8"][k + 1]
                if spacing != "linspace":
                    assert np.abs(z.numpy() - wanted).max() <= 1e-5 * max(1.0, np.abs(wanted).max())
                    compared += 1
            if spacing == "linspace":
                # DDIM moves by 1000 // 8 and misses the next timestep; a jump lands on it. So the states differ, and the
                # end is the clean estimate of the last one.
                first = ours.step(torch.from_numpy(io["model_outputs_8"][0]), ours.timesteps[0], torch.from_numpy(io["x"]))
                table = old.alphas_cumprod.double()
                t = int(ours.timesteps[0])
                z0, out, bar = torch.from_numpy(io["x"]).double(), torch.from_numpy(io["model_outputs_8"][0]).double(), table[t]
                to = table[int(ours.timesteps[1])]
                x0 = {
                    "epsilon": lambda: (z0 - (1 - bar).sqrt() * out) / bar.sqrt(),
                    "sample": lambda: out,
                    "v_prediction": lambda: bar.sqrt() * z0 - (1 - bar).sqrt() * out,
                }[prediction]()
                eps = {
                    "epsilon": lambda: out,
                    "sample": lambda: (z0 - bar.sqrt() * out) / (1 - bar).sqrt(),
                    "v_prediction": lambda: bar.sqrt() * out + (1 - bar).sqrt() * z0,
                }[prediction]()
                if old.config.clip_sample:
                    x0 = x0.clamp(-1, 1)
                wanted = to.sqrt() * x0 + (1 - to).sqrt() * eps
                found = first.prev_sample.double()
                assert float((found - wanted).abs().max()) <= 1e-5 * max(1.0, float(wanted.abs().max()))
                compared += 1
    assert compared and (refused == 1 or spacing == "leading")


BETAS = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "clip_sample": False}


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("prediction", ["epsilon", "sample", "v_prediction", "flow"])
def test_jumps_land_where_the_student_was_trained_to_land(prediction, clean):
    """The states of MergeScheduler are those of the distiller."""
    if prediction == "flow":
        old = FlowMatchEulerDiscreteScheduler(shift=3.0)
    else:
        old = DDIMScheduler(**BETAS, set_alpha_to_one=clean, steps_offset=1, prediction_type=prediction)
    schedule = cases.schedule_of(old, 12)
    plan = cases.blocks_plan(schedule, [3, 8])
    net = torch_cases.Small(6)
    distiller = MergeDistiller(plan, net, prediction_type=prediction, updates=1)
    torch_cases.train(distiller, distiller.student, torch.randn(16, 6, dtype=torch.float64), rate=1e-3)
    assert distiller.one_network
    ours = MergeScheduler.from_config(old.config, plan=plan)
    ours.set_timesteps(3)
    noise = torch.randn(4, 6, dtype=torch.float64)
    with torch.no_grad():
        found = cases.sample(ours, lambda z, t: distiller.student(z, t.expand(len(z))), noise)
    assert torch.allclose(found, distiller.sample(noise), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("prediction", ["epsilon", "sample", "v_prediction", "flow"])
def test_stock_schedulers_make_the_same_samples(prediction, clean, tmp_path):
    if prediction == "flow":
        old = FlowMatchEulerDiscreteScheduler(shift=3.0)
    else:
        old = DDIMScheduler(**BETAS, set_alpha_to_one=clean, timestep_spacing="trailing", prediction_type=prediction)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 16), [2, 5, 11]))
    config, arguments = ours.to_stock_config()
    assert "Merge" not in config["_class_name"] and "mergeplan" not in json.dumps(config)
    (tmp_path / "scheduler_config.json").write_text(ours.stock_json())
    import diffusers

    stock = getattr(diffusers, config["_class_name"]).from_pretrained(tmp_path)
    stock.set_timesteps(**arguments)
    ours.set_timesteps()
    assert [float(t) for t in stock.timesteps] == pytest.approx([float(t) for t in ours.timesteps], rel=1e-6)
    net, noise = cases.network(), torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    a, b = cases.sample(ours, net, noise), cases.sample(stock, net, noise)
    assert float((a - b).abs().max()) <= 1e-5 * max(1.0, float(a.abs().max()))


def test_stock_says_where_it_cannot():
    old = DDIMScheduler(rescale_betas_zero_snr=True, timestep_spacing="trailing", prediction_type="v_prediction")
    schedule = cases.schedule_of(old, 8)
    with pytest.raises(ValueError, match="no signal"):
        MergeScheduler.from_config(old.config, plan=cases.blocks_plan(schedule, [4]), clip_sample=False).to_stock_config()
    clipping = MergeScheduler.from_config(DDIMScheduler().config, schedule=cases.schedule_of(DDIMScheduler(), 8))
    with pytest.raises(ValueError, match="clip_sample"):
        clipping.to_stock_config()


def test_saved_and_loaded_it_is_the_same(tmp_path):
    old = DDIMScheduler(**BETAS)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 10), [4]))
    folder = tmp_path / "with a space"
    ours.save_pretrained(folder)
    again = MergeScheduler.from_pretrained(folder)
    assert {**again.config, "_use_default_values": 0} == {**ours.config, "_use_default_values": 0}
    net, noise = cases.network(), torch.randn(2, 6)
    for scheduler in (ours, again, MergeScheduler.from_config(ours.config)):
        scheduler.set_timesteps(2)
        assert torch.equal(cases.sample(scheduler, net, noise), cases.sample(ours, net, noise))
    config = json.loads((folder / "scheduler_config.json").read_text())
    for change, match in (
        ({"jump_alphas": [0.1]}, "expected N, N\\+1 and N\\+1"),
        ({"jump_alphas": [float("nan")] * 3}, "expected finite"),
        ({"jump_sigmas": [1.0, 1.0, 1.0]}, "not cleaner|another schedule"),
        ({"beta_schedule": "cubic"}, "beta_schedule 'cubic'"),
        ({"prediction_type": "noise"}, "prediction_type 'noise'"),
        ({"trained_betas": [0.1]}, "1 entries"),
    ):
        (folder / "scheduler_config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(ValueError, match=match):
            MergeScheduler.from_pretrained(folder)


@pytest.mark.parametrize("flow", [False, True])
def test_add_noise_is_diffusers_own(flow):
    x, noise = torch.randn(5, 2, 3, 3), torch.randn(5, 2, 3, 3)
    if flow:
        old = FlowMatchEulerDiscreteScheduler(shift=3.0)
        ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 6), [2]))
        times = old.timesteps[[0, 2, 3, 4, 5]]
        assert torch.allclose(ours.scale_noise(x, times, noise), old.scale_noise(x, times, noise), atol=1e-5)
        assert torch.equal(ours.get_velocity(x, noise, times), noise - x)
        return
    old = DDIMScheduler(**BETAS)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 6), [2]))
    times = torch.tensor([0, 1, 500, 998, 999])
    assert torch.allclose(ours.add_noise(x, noise, times), old.add_noise(x, noise, times), atol=1e-6)
    assert torch.allclose(ours.get_velocity(x, noise, times), old.get_velocity(x, noise, times), atol=1e-6)
    with pytest.raises(ValueError, match="expected 0 to 999"):
        ours.add_noise(x, noise, torch.tensor([1000]))
    # Between two entries a level is between theirs, and still of unit variance.
    alpha, sigma = ours._table.at(torch.tensor([499.0, 499.5, 500.0]))
    assert alpha[0] > alpha[1] > alpha[2] and torch.allclose(alpha**2 + sigma**2, torch.ones(3))


def test_timesteps_and_sigmas_of_ones_own():
    old = DDIMScheduler(**BETAS)
    schedule = cases.schedule_of(old, 10)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(schedule, [4]))
    ours.set_timesteps(2)
    plan_times, plan_sigmas = ours.timesteps.tolist(), ours.sigmas.tolist()
    net, noise = cases.network(), torch.randn(3, 6)
    wanted = cases.sample(ours, net, noise)
    for arguments in ({"timesteps": plan_times}, {"sigmas": plan_sigmas}, {"sigmas": plan_sigmas[:-1]}, {}):
        ours.set_timesteps(**arguments)
        assert ours.timesteps.tolist() == plan_times
        assert torch.allclose(cases.sample(ours, net, noise), wanted, atol=1e-5)
    ours.set_timesteps(timesteps=[999, 500, 20])
    assert ours.timesteps.tolist() == [999, 500, 20] and len(ours.sigmas) == 4 and ours.num_inference_steps == 3
    for bad, match in (
        ({"timesteps": [100, 500]}, "not cleaner"),
        ({"timesteps": [500, 500]}, "not cleaner"),
        ({"timesteps": [1000]}, "expected 0 to 999"),
        ({"timesteps": []}, "one finite number"),
        ({"timesteps": [float("nan")]}, "one finite number"),
        ({"sigmas": [-1.0]}, "positive numbers"),
        ({"sigmas": [0.0]}, "positive numbers"),
        ({"sigmas": [100.0]}, "outside of the table"),
        ({"timesteps": [5], "sigmas": [1.0]}, "one of them"),
    ):
        with pytest.raises(ValueError, match=match):
            ours.set_timesteps(**bad)
    # A number of steps that the student does not know changes nothing.
    ours.set_timesteps(50)
    assert ours.timesteps.tolist() == plan_times


def test_a_pipeline_may_begin_in_the_middle():
    old = DDIMScheduler(**BETAS)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 12), [4, 8]))
    ours.set_timesteps(3)
    ours.set_begin_index(1)
    z, out = torch.randn(2, 6), torch.randn(2, 6)
    a = ours.step(out, ours.timesteps[1], z).prev_sample
    assert ours.step_index == 2
    ours.set_timesteps(3)
    assert torch.equal(ours.step(out, ours.timesteps[1], z, return_dict=False)[0], a)
    ours.set_timesteps(3)
    with pytest.raises(ValueError, match="no jump begins at timestep 7"):
        ours.step(out, 7, z)
    with pytest.raises(ValueError, match="deterministic"):
        ours.step(out, ours.timesteps[0], z, eta=0.5)


def test_the_timestep_says_which_jump_it_is():
    old = DDIMScheduler(**BETAS)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 12), [4, 8]))
    ours.set_timesteps(3)
    times = ours.timesteps
    z, out = torch.randn(2, 6), torch.randn(2, 6)
    alone = []
    for t in times:
        ours.set_timesteps(3)
        alone.append(ours.step(out, t, z).prev_sample)
    assert not torch.allclose(alone[0], alone[1]) and not torch.allclose(alone[1], alone[2])
    ours.set_timesteps(3)
    for k in (1, 0, 0, 2, 1, 2, 2):
        assert torch.equal(ours.step(out, times[k], z).prev_sample, alone[k]) and ours.step_index == k + 1
        assert torch.equal(ours.step(out, times[k].expand(2), z).prev_sample, alone[k])
        for bad in (float("nan"), torch.tensor(float("nan")), 7, torch.tensor(7), "a", None, torch.tensor([]), times[:2]):
            with pytest.raises(ValueError, match="no jump begins at timestep"):
                ours.step(out, bad, z)


def test_numbers_of_steps_that_are_none():
    old = DDIMScheduler(**BETAS)
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 12), [4, 8]))
    for scheduler in (ours, MergeScheduler()):
        for bad in (0, -1, "a", 2.5, float("nan")):
            with pytest.raises(ValueError, match=f"num_inference_steps is {bad!r}, expected a whole number"):
                scheduler.set_timesteps(bad)
        scheduler.set_timesteps(np.int64(3))
        assert len(scheduler.timesteps) == 3


def test_a_scheduler_stands_for_its_config():
    for old in (DDIMScheduler(**BETAS), FlowMatchEulerDiscreteScheduler(shift=3.0)):
        plan = cases.blocks_plan(cases.schedule_of(old, 12), [4, 8])
        ours, theirs = MergeScheduler.from_config(old, plan=plan), MergeScheduler.from_config(old.config, plan=plan)
        ours.set_timesteps()
        theirs.set_timesteps()
        assert torch.equal(ours.timesteps, theirs.timesteps) and torch.equal(ours.sigmas, theirs.sigmas)
        assert torch.equal(MergeScheduler.from_config(ours).timesteps, ours.timesteps)
    for bad in (3, [1], "a folder"):
        with pytest.raises(ValueError, match="expected the config of a scheduler"):
            MergeScheduler.from_config(bad)
    with pytest.raises(ValueError, match="plan is a int, expected a Plan or the path"):
        MergeScheduler.from_config(old.config, plan=3)
    plan.schedule = None
    with pytest.raises(ValueError, match="the plan holds no schedule"):
        MergeScheduler.from_config(old.config, plan=plan)


def test_plans_of_other_schedules_are_refused():
    old, other = DDIMScheduler(**BETAS), DDIMScheduler(clip_sample=False)
    schedule = cases.schedule_of(old, 8)
    plan = cases.blocks_plan(schedule, [4])
    with pytest.raises(ValueError, match="made for another schedule.*from_diffusers"):
        MergeScheduler.from_config(other.config, plan=plan)
    with pytest.raises(ValueError, match="EDM preconditioning"):
        MergeScheduler.from_config(EDMEulerScheduler().config, plan=plan)
    schedule.timesteps = None
    with pytest.raises(ValueError, match="no timesteps"):
        MergeScheduler.from_config(old.config, plan=plan)
    with pytest.raises(ValueError, match="needs the config"):
        MergeScheduler.from_config(None)


def test_clipping_belongs_to_single_steps():
    old = DDPMScheduler(clip_sample=True)
    schedule = cases.schedule_of(DDIMScheduler(), 8)
    assert MergeScheduler.from_config(old.config, schedule=schedule).config.clip_sample
    plan = cases.blocks_plan(schedule, [4])
    assert not MergeScheduler.from_config(old.config, plan=plan).config.clip_sample


def test_half_precision_states_stay_finite():
    old = DDIMScheduler()
    ours = MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 8), [4]))
    ours.set_timesteps(2)
    for dtype in (torch.float16, torch.bfloat16):
        z = torch.randn(2, 6).to(dtype)
        out = ours.step(z, ours.timesteps[0], z)
        assert out.prev_sample.dtype == dtype and torch.isfinite(out.prev_sample).all()


def test_without_a_plan_it_is_ddim_with_trailing_steps():
    ours = MergeScheduler(prediction_type="v_prediction")
    old = DDIMScheduler(prediction_type="v_prediction", timestep_spacing="trailing", clip_sample=False)
    for count in (1, 8, 1000):
        ours.set_timesteps(count)
        old.set_timesteps(count)
        assert ours.timesteps.tolist() == old.timesteps.tolist()
    with pytest.raises(ValueError, match="1 to 1000: this scheduler holds no plan"):
        ours.set_timesteps(0)
    assert len(ours) == 1000 and math.isfinite(float(ours.sigmas[0]))


VARIANTS = (
    {},
    {"_class_name": "EulerDiscreteScheduler", "use_karras_sigmas": True},
    {"_class_name": "EulerDiscreteScheduler", "timestep_spacing": "linspace"},
    {"_class_name": "DPMSolverMultistepScheduler"},
    {"_class_name": "DPMSolverMultistepScheduler", "use_karras_sigmas": True},
)


@pytest.mark.parametrize("name", [*NAMES, "flux1-dev", "flux1-schnell", "sd3"])
def test_plans_of_real_configs(name):
    """The planner's levels of a config are those of this scheduler, and stock schedulers repeat its samples."""
    if not (SHARED / "data/configs").is_dir():
        pytest.skip("set MERGEPLAN_SHARED to the folder with data/configs")
    from mergeplan import Schedule, strategy

    net, noise = cases.network(), torch.randn(4, 6, generator=torch.Generator().manual_seed(2))
    repeated = 0
    for change in VARIANTS if name in NAMES else VARIANTS[:1]:
        config = {**config_of(name), **change}
        for steps in (1, 4, 25):
            schedule = Schedule.from_diffusers(config, steps)
            plan = strategy("vanilla", schedule, student_steps=min(2, len(schedule)))
            ours = MergeScheduler.from_config(config, plan=plan, clip_sample=False)
            ours.set_timesteps()
            assert len(ours.timesteps) == min(2, len(schedule))
            a = cases.sample(ours, net, noise)
            assert torch.isfinite(a).all()
            try:
                stock, arguments = ours.to_stock()
            except ValueError as refusal:
                assert "stock" in str(refusal)
                continue
            stock.set_timesteps(**arguments)
            b = cases.sample(stock, net, noise)
            assert float((a - b).abs().max()) <= 1e-5 * max(1.0, float(a.abs().max())), (change, steps)
            repeated += 1
    assert repeated >= (8 if name in NAMES else 3)


def test_jumps_land_on_the_next_timestep_where_ddim_misses_it():
    """1000 timesteps in 7 trailing steps: DDIM moves by 142 of them each time, its next timestep is 143 away."""
    old = DDIMScheduler(timestep_spacing="trailing", clip_sample=False)
    ours = MergeScheduler.from_config(old.config, schedule=cases.schedule_of(old, 7))
    old.set_timesteps(7)
    assert ours.timesteps.tolist() == old.timesteps.tolist()
    z, says = torch.randn(2, 5, dtype=torch.float64), torch.randn(2, 5, dtype=torch.float64)
    t, following = ours.timesteps[0], ours.timesteps[1]
    landed = ours.step(says, t, z).prev_sample
    bars = old.alphas_cumprod.double()

    def jump(to):
        x0 = (z - (1 - bars[t]).sqrt() * says) / bars[t].sqrt()
        return bars[to].sqrt() * x0 + (1 - bars[to]).sqrt() * says

    assert torch.allclose(landed, jump(following), rtol=1e-5)
    assert torch.allclose(old.step(says, t, z).prev_sample, jump(t - 1000 // 7), rtol=1e-5)
    assert not torch.allclose(landed, jump(t - 1000 // 7), rtol=1e-3)
