"""Schedulers that people meet besides DDIM's: the jumps of a plan of single steps against the class's own steps."""

import json

import diffusers
import mergeplan
import mergeplan.diffusers
import numpy as np
import planner_cases
import pytest
import torch
from mergeplan.diffusers import MergeScheduler

STEPS = 7


def network(z, t, scale):
    """Some function of state and time, the same for both."""
    return torch.sin(3 * z) * 0.4 + 0.3 * z * torch.cos(torch.as_tensor(float(t)) / scale)


def ours(config, schedule, noise, scale):
    scheduler = MergeScheduler.from_config(config, schedule=schedule)
    scheduler.set_timesteps(schedule.steps)
    z = noise.clone()
    for t in scheduler.timesteps:
        z = scheduler.step(network(z, t, scale), t, z).prev_sample
    return z, scheduler


def theirs(scheduler, noise, scale, steps=STEPS, **options):
    scheduler.set_timesteps(steps, **options)
    z = noise.clone()
    for t in scheduler.timesteps:
        z = scheduler.step(network(z, t, scale), t, z).prev_sample
    return z


noise = torch.randn(3, 2, 5, 5, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


@pytest.mark.parametrize("options, more", [
    (dict(shift=3.0), {}),
    (dict(shift=3.0, invert_sigmas=True), {}),
    (dict(shift=1.0, use_dynamic_shifting=True, base_shift=0.95, max_shift=2.05, shift_terminal=0.1), dict(mu=1.3)),
    (dict(use_dynamic_shifting=True, time_shift_type="linear"), dict(mu=2.5)),
    (dict(use_karras_sigmas=True), {}),
    (dict(use_exponential_sigmas=True, shift=2.0), {}),
    (dict(use_beta_sigmas=True), {}),
], ids=str)  # fmt: skip
def test_flows_are_eulers_steps(options, more):
    if options.get("use_beta_sigmas"):
        pytest.importorskip("scipy")
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(**options)
    schedule = mergeplan.Schedule.from_diffusers(scheduler, STEPS, **more)
    assert schedule.prediction_type == (None if options.get("invert_sigmas") else "flow_prediction")
    want = theirs(scheduler, noise, 200.0, **more)
    got, merged = ours(scheduler.config, schedule, noise, 200.0)
    assert torch.allclose(merged.timesteps.double(), scheduler.timesteps.double(), atol=1e-3)
    assert torch.allclose(got, want, rtol=1e-5, atol=1e-5)
    stock, arguments = merged.to_stock()
    assert torch.allclose(theirs_with(stock, arguments), want, rtol=1e-5, atol=1e-5)


def theirs_with(scheduler, arguments):
    scheduler.set_timesteps(**arguments)
    z = noise.clone()
    for t in scheduler.timesteps:
        z = scheduler.step(network(z, t, 200.0), t, z).prev_sample
    return z


def test_inverted_flows_without_a_plan_and_with_sigmas():
    plain = MergeScheduler.from_config(diffusers.FlowMatchEulerDiscreteScheduler().config)
    turned = MergeScheduler.from_config(diffusers.FlowMatchEulerDiscreteScheduler(invert_sigmas=True).config)
    for arguments in (dict(num_inference_steps=4), dict(sigmas=[1.0, 0.7, 0.2])):
        plain.set_timesteps(**arguments)
        turned.set_timesteps(**arguments)
        assert torch.allclose(plain.timesteps.double(), 1000 - turned.timesteps.double())
        z, w = noise.clone(), noise.clone()
        for t, u in zip(plain.timesteps, turned.timesteps):
            z = plain.step(torch.sin(z), t, z).prev_sample
            w = turned.step(-torch.sin(w), u, w).prev_sample
        assert torch.allclose(z, w)
    assert torch.allclose(plain.get_velocity(z, noise, None), -turned.get_velocity(z, noise, None))
    times = torch.tensor([10, 400, 900])
    assert torch.allclose(plain.add_noise(z, noise, times), turned.add_noise(z, noise, 1000 - times))


@pytest.mark.parametrize("name", ["CogVideoXDDIMScheduler", "CogVideoXDPMScheduler"])
@pytest.mark.parametrize("options", [
    dict(snr_shift_scale=3.0),
    dict(snr_shift_scale=1.0, prediction_type="v_prediction"),
    dict(snr_shift_scale=3.0, rescale_betas_zero_snr=True, prediction_type="v_prediction"),
], ids=str)  # fmt: skip
def test_cogvideox_shifts_its_table(name, options):
    # clip_sample is an entry that these classes have and do not look at.
    options = {**options, "timestep_spacing": "trailing", "clip_sample": True, "clip_sample_range": 0.1}
    scheduler = diffusers.CogVideoXDDIMScheduler(**options)
    config = {**scheduler.config, "_class_name": name}
    schedule = mergeplan.Schedule.from_diffusers(config, 10)
    want = theirs(scheduler, noise, 200.0, steps=10)
    got, merged = ours(config, schedule, noise, 200.0)
    assert torch.allclose(got, want, rtol=1e-5, atol=1e-5)
    assert (merged.alphas_cumprod.double() - scheduler.alphas_cumprod.double()).abs().max() < 2e-6
    times = torch.tensor([0, 500, 999])
    x0 = torch.randn(noise.shape, dtype=torch.float64)
    assert torch.allclose(merged.add_noise(x0, noise, times), scheduler.add_noise(x0, noise, times), atol=1e-5)
    if not options.get("rescale_betas_zero_snr"):
        stock, arguments = merged.to_stock()
        stock.set_timesteps(**arguments)
        z = noise.clone()
        for t in stock.timesteps:
            z = stock.step(network(z, t, 200.0), t, z).prev_sample
        assert torch.allclose(z, got, atol=1e-4)


@pytest.mark.parametrize("name, options", [
    ("DPMSolverMultistepScheduler", dict(solver_order=1, final_sigmas_type="zero")),
    ("UniPCMultistepScheduler", dict(solver_order=1, final_sigmas_type="zero", disable_corrector=list(range(STEPS)))),
])  # fmt: skip
@pytest.mark.parametrize("shift", [1.0, 5.0])
def test_solvers_of_first_order_on_flows(name, options, shift):
    scheduler = getattr(diffusers, name)(
        use_flow_sigmas=True, flow_shift=shift, prediction_type="flow_prediction", lower_order_final=False, **options
    )
    schedule = mergeplan.Schedule.from_diffusers(scheduler, STEPS)
    want = theirs(scheduler, noise, 200.0)
    got, _ = ours(scheduler.config, schedule, noise, 200.0)
    assert torch.allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("config, words", [
    (dict(_class_name="EDMEulerScheduler", sigma_data=0.5), "EDM preconditioning"),
    (dict(_class_name="IPNDMScheduler", num_train_timesteps=1000, trained_betas=None), "no beta_schedule"),
    (dict(_class_name="SCMScheduler", num_train_timesteps=1000), "no beta_schedule"),
    (dict(_class_name="UniPCMultistepScheduler", use_flow_sigmas=True, prediction_type="epsilon", beta_schedule="linear"), "flow_prediction"),
    (dict(_class_name="HeunDiscreteScheduler", beta_schedule="exp"), "beta_schedule 'exp' is unknown"),
    (dict(_class_name="EulerDiscreteScheduler", timestep_type="continuous", prediction_type="v_prediction"), "log.sigma./4"),
])  # fmt: skip
def test_what_it_cannot_run_is_refused_with_the_reason(config, words):
    with pytest.raises(ValueError, match=words):
        MergeScheduler.from_config(config)


def test_options_replace_those_of_a_config(tmp_path):
    scheduler = diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True)
    largest = mergeplan.Schedule.from_diffusers(scheduler, 4)
    assert "mu=" in largest.notes[0] and "after the path" not in largest.notes[0]
    scheduler.save_pretrained(tmp_path)
    small = [mergeplan.Schedule.from_diffusers(form, 4, image_seq_len=256) for form in (scheduler, dict(scheduler.config, _class_name="FlowMatchEulerDiscreteScheduler"), tmp_path)]
    assert all(np.array_equal(s.sigma, small[0].sigma) for s in small) and not small[0].notes
    scheduler.set_timesteps(4, mu=0.5)
    flow = small[0].sigma * small[0].level_scale
    assert np.allclose(flow[::-1], scheduler.sigmas.numpy(), atol=1e-6)
    ddim = diffusers.DDIMScheduler()
    assert mergeplan.Schedule.from_diffusers(ddim, 4, timestep_spacing="trailing").timesteps[4] == 999
    for options, words in [(dict(mu=1.0), "mu"), (dict(timestep_spacing="wide"), "wide"), (dict(spacing=1), "unknown parameter")]:
        with pytest.raises(ValueError, match=words):
            mergeplan.Schedule.from_diffusers(ddim, 4, **options)
    with pytest.raises(TypeError, match="timestep_spacing: is a object"):
        mergeplan.Schedule.from_diffusers(ddim, 4, timestep_spacing=object())


def test_a_config_changed_by_hand_is_refused(tmp_path):
    base = diffusers.DDIMScheduler(timestep_spacing="trailing")
    plan = mergeplan.strategy("boot", base, teacher_steps=20, student_steps=4)
    MergeScheduler.from_config(base.config, plan=plan).save_pretrained(tmp_path)
    path = tmp_path / "scheduler_config.json"
    saved = json.loads(path.read_text())
    assert MergeScheduler.from_pretrained(tmp_path).config.jump_checksum == saved["jump_checksum"]

    def changed(**entries):
        path.write_text(json.dumps({**saved, **entries}))
        return MergeScheduler.from_pretrained(tmp_path)

    later = [saved["jump_timesteps"][0] - 1, *saved["jump_timesteps"][1:]]
    fewer = {key: saved[key][1:] for key in ("jump_timesteps", "jump_alphas", "jump_sigmas")}
    for entries in (dict(jump_timesteps=later), dict(prediction_type="v_prediction"), dict(beta_end=0.021), fewer,
                    dict(rescale_betas_zero_snr=True), dict(num_train_timesteps=1001)):  # fmt: skip
        with pytest.raises(ValueError, match="changed after it was made.*jump_checksum|made for another schedule|zero terminal SNR"):
            changed(**entries)
    for entries in (dict(clip_sample=True), dict(clip_sample=True, clip_sample_range=2.0)):
        with pytest.raises(ValueError, match="changed after it was made.*clipping"):
            changed(**entries)
    with pytest.raises(ValueError, match="has a jump_checksum and no jump_timesteps"):
        changed(jump_timesteps=None, jump_alphas=None, jump_sigmas=None)
    # What does not move the jumps may change, and who means the change takes the sum out.
    assert changed(steps_offset=1).config.steps_offset == 1
    assert changed(clip_sample=True, jump_checksum=None).config.clip_sample
    assert MergeScheduler.from_pretrained(tmp_path, clip_sample=True, jump_checksum=None).config.clip_sample
    assert changed(prediction_type="v_prediction", jump_checksum=None).config.prediction_type == "v_prediction"
    assert len(changed(**fewer, jump_checksum=None).timesteps) == 3
    # In code a change is meant.
    path.write_text(json.dumps(saved))
    again = MergeScheduler.from_pretrained(tmp_path, prediction_type="sample")
    again.save_pretrained(tmp_path)
    assert MergeScheduler.from_pretrained(tmp_path).config.prediction_type == "sample"
    other = mergeplan.strategy("boot", base, teacher_steps=20, student_steps=2)
    assert len(MergeScheduler.from_config(again.config, plan=other).timesteps) == 2


@pytest.mark.parametrize("name, options", [
    ("DDIMScheduler", dict(timestep_spacing="trailing", clip_sample=False)),
    ("EulerDiscreteScheduler", dict(use_karras_sigmas=True)),
    ("EulerDiscreteScheduler", dict(timestep_spacing="linspace")),
    ("DPMSolverMultistepScheduler", dict(final_sigmas_type="zero")),
    ("FlowMatchEulerDiscreteScheduler", dict(shift=3.0)),
    ("FlowMatchEulerDiscreteScheduler", dict(shift=3.0, invert_sigmas=True)),
], ids=str)  # fmt: skip
def test_what_the_command_exports_makes_the_plans_samples(tmp_path, name, options):
    """`mergeplan export --format diffusers`, with nothing but diffusers, against MergeScheduler."""
    old = getattr(diffusers, name)(**options)
    old.save_pretrained(tmp_path)
    config = tmp_path / "scheduler_config.json"
    planner_cases.run("plan", "--variances", "0.4,1.3", "-T", 12, "-N", 3, "-s", 1, "--schedule", config, "--json", "-o", tmp_path / "plan.toml")
    exported = planner_cases.run("export", tmp_path / "plan.toml", "--format", "diffusers")
    stock = getattr(diffusers, exported["scheduler"]["_class_name"]).from_config(exported["scheduler"])
    stock.set_timesteps(**{key: exported[key] for key in ("timesteps", "sigmas") if key in exported})
    merged = MergeScheduler.from_config(old, plan=tmp_path / "plan.toml")
    merged.set_timesteps(3)
    assert torch.allclose(stock.timesteps.double(), merged.timesteps.double(), atol=1e-2)
    z = noise.clone()
    w = noise * getattr(stock, "init_noise_sigma", 1.0)
    for t, u in zip(merged.timesteps, stock.timesteps):
        z = merged.step(network(z, t, 200.0), t, z).prev_sample
        seen = stock.scale_model_input(w, u) if hasattr(stock, "scale_model_input") else w
        w = stock.step(network(seen, t, 200.0), u, w).prev_sample
    assert torch.allclose(z, w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["DDIMScheduler", "EulerDiscreteScheduler"])
def test_zero_terminal_snr_with_epsilon_is_refused_whatever_the_sampler_puts_there(name):
    old = getattr(diffusers, name)(rescale_betas_zero_snr=True, timestep_spacing="trailing")
    schedule = mergeplan.Schedule.from_diffusers(old, 10)
    with pytest.raises(ValueError, match="zero terminal SNR.*v_prediction or sample"):
        MergeScheduler.from_config(old, schedule=schedule)
    assert MergeScheduler.from_config(old, schedule=schedule, prediction_type="v_prediction")


def test_wrong_arguments_are_named():
    old = diffusers.DDIMScheduler(timestep_spacing="trailing")
    plan = mergeplan.strategy("boot", old, teacher_steps=8, student_steps=2)
    ours = MergeScheduler.from_config(old, plan=plan)
    ours.set_timesteps(2)
    z, t = torch.randn(2, 3), ours.timesteps[0]
    for call, words in [
        (lambda: MergeScheduler.from_config(old, schedule="cosine"), "schedule is a str, expected a Schedule"),
        (lambda: MergeScheduler.from_config(old, plan=plan, clip_sample="x"), "clip_sample is 'x', expected True or False"),
        (lambda: MergeScheduler(clip_sample_range=-1), "clip_sample_range is -1, expected a positive number"),
        (lambda: MergeScheduler(num_train_timesteps=0), "num_train_timesteps is 0, expected a whole number, 1 to 1000000"),
        (lambda: MergeScheduler(beta_start=float("nan")), "beta_start is nan, expected a number above 0"),
        (lambda: MergeScheduler(trained_betas=[2.0] * 1000), r"trained_betas\[0\] is 2.0"),
        (lambda: MergeScheduler(snr_shift_scale=0), "snr_shift_scale is 0, expected a positive number"),
        (lambda: ours.set_timesteps(True), "num_inference_steps is True, expected a whole number"),
        (lambda: ours.set_timesteps(timesteps=3), "timesteps is 3, expected a list of numbers"),
        (lambda: ours.set_timesteps(sigmas="x"), "sigmas is 'x', expected a list of numbers"),
        (lambda: ours.set_begin_index(3), "begin_index is 3, expected a whole number, 0 to 2"),
        (lambda: ours.step(None, t, z), "model_output is a NoneType, expected a tensor"),
        (lambda: ours.step(z, t, z.numpy()), "sample is a ndarray, expected a tensor"),
        (lambda: ours.step(z, t, z.long()), "sample is of torch.int64, expected floating-point numbers"),
        (lambda: ours.step(torch.randn(2, 6), t, z), "model_output has the shape .2, 6., expected that of the sample, .2, 3."),
        (lambda: ours.add_noise(z, z, torch.tensor([1, 2, 3])), "timesteps are 3 for 2 samples, expected one"),
        (lambda: ours.add_noise(z.long(), z, torch.tensor([1])), "original_samples is of torch.int64"),
    ]:
        with pytest.raises((ValueError, TypeError), match=words):
            call()


@pytest.mark.parametrize("old, entry", [
    (diffusers.FlowMatchEulerDiscreteScheduler(stochastic_sampling=True), "stochastic_sampling"),
    (diffusers.DDIMScheduler(thresholding=True), "thresholding"),
], ids=str)  # fmt: skip
def test_what_is_not_taken_over_is_said(monkeypatch, old, entry):
    from mergeplan.diffusers import translate

    said = []
    monkeypatch.setattr(translate.logger, "warning", said.append)
    MergeScheduler.from_config(old)
    assert len(said) == 1 and said[0].startswith(f"{entry} of the old scheduler is not taken over")
