"""Schedules: names, configs as objects, dicts and files, arrays."""

import json
import pickle
import types

import mergeplan
import numpy as np
import pytest
from planner_cases import close, run

CONFIG = {
    "_class_name": "DDIMScheduler", "beta_end": 0.012, "beta_schedule": "scaled_linear", "beta_start": 0.00085,
    "num_train_timesteps": 1000, "prediction_type": "v_prediction", "set_alpha_to_one": True, "steps_offset": 1,
    "timestep_spacing": "leading",
}


@pytest.mark.parametrize("name", ["cosine", "ddpm-linear", "ddpm-scaled-linear", "ddpm-cosine", "sigmoid", "flow:shift=3", "edm:rho=5"])
def test_names_equal_the_commands(name):
    schedule = mergeplan.Schedule(name, 9)
    theirs = run("plan", "--variances", "0.5", "-T", 9, "--schedule", name, "-s", 1, "--json")
    close(schedule.alpha, theirs["alpha"])
    close(schedule.sigma, theirs["sigma"])
    assert (len(schedule), schedule.steps, schedule.alpha.shape, schedule.data_scale) == (9, 9, (10,), theirs["data_scale"])


def test_configs_in_every_form(tmp_path):
    path = tmp_path / "scheduler_config.json"
    path.write_text(json.dumps(CONFIG))
    from_file = mergeplan.Schedule(str(path), 10)
    config = {key: value for key, value in CONFIG.items() if key != "_class_name"}
    DDIMScheduler = type("DDIMScheduler", (), {"config": config})
    for form in (CONFIG, DDIMScheduler(), path, str(path), tmp_path, types.MappingProxyType(CONFIG)):
        schedule = mergeplan.Schedule.from_diffusers(form, 10)
        assert np.array_equal(schedule.alpha, from_file.alpha) and np.array_equal(schedule.sigma, from_file.sigma)
        assert np.array_equal(schedule.timesteps[1:], from_file.timesteps[1:])
        assert schedule.timesteps[10] == 901 and schedule.timesteps[1] == 1 and np.isnan(schedule.timesteps[0])
        assert (schedule.prediction_type, schedule.name) == ("v_prediction", "DDIMScheduler")
        assert schedule.variance_preserving
    betas = np.linspace(0.001, 0.02, 50)
    one = mergeplan.Schedule.from_diffusers({**CONFIG, "trained_betas": betas, "num_train_timesteps": 50}, 5)
    two = mergeplan.Schedule.from_diffusers({**CONFIG, "trained_betas": betas.tolist(), "num_train_timesteps": 50}, 5)
    assert one == two


def test_pickle_and_equality():
    for schedule in (mergeplan.Schedule("edm", 6), mergeplan.Schedule.from_diffusers(CONFIG, 6)):
        again = pickle.loads(pickle.dumps(schedule))
        assert again == schedule and hash(again) == hash(schedule)
        assert (again.spec, again.notes, again.data_scale) == (schedule.spec, schedule.notes, schedule.data_scale)
    assert mergeplan.Schedule("cosine", 6) != mergeplan.Schedule("cosine", 7)
    assert mergeplan.Schedule("cosine", 6) != 3


def test_arrays():
    schedule = mergeplan.Schedule.from_arrays([1, 0.8, 0.1], np.float32([0, 0.6, 0.9]), timesteps=[0, 10, 999])
    assert schedule.steps == 2 and schedule.timesteps[2] == 999
    plan = mergeplan.plan([0.5], schedule, train_time=1)
    assert plan.teacher_steps == 2 and plan.schedule == schedule
    with pytest.raises(ValueError, match="teacher_steps"):
        mergeplan.plan([0.5], schedule, teacher_steps=3, train_time=1)
    for alpha, sigma in [([1, 0.8], [0, 0.6, 1]), ([1, float("nan")], [0, 1]), ([0.1, 1], [1, 0.1]), ([], []), ([1], [0])]:
        with pytest.raises(ValueError):
            mergeplan.Schedule.from_arrays(alpha, sigma)
    with pytest.raises(ValueError, match="timesteps"):
        mergeplan.Schedule.from_arrays([1, 0.5], [0, 0.5], timesteps=[1])


@pytest.mark.parametrize("form, words", [
    ({"_class_name": "NoScheduler"}, "NoScheduler"),
    ({**CONFIG, "beta_schedule": "wavy"}, "wavy"),
    ({**CONFIG, "trained_betas": object()}, "JSON"),
    (7, "expected a diffusers scheduler"),
    ("/no/such/file", "no/such/file"),
    ({}, "_class_name"),
])
def test_bad_configs(form, words):
    with pytest.raises(ValueError, match=words):
        mergeplan.Schedule.from_diffusers(form, 10)


@pytest.mark.parametrize("steps", [0, -1, 10**6])
def test_bad_steps(steps):
    with pytest.raises(ValueError, match="steps"):
        mergeplan.Schedule("cosine", steps)
    with pytest.raises(ValueError, match="steps"):
        mergeplan.Schedule.from_diffusers(CONFIG, steps)


def test_a_scheduler_goes_straight_into_plan():
    plan = mergeplan.plan([0.5, 1.5], CONFIG, teacher_steps=10, train_time=1, student_steps=2)
    assert plan.schedule.timesteps[10] == 901
    assert plan.timesteps.tolist() == [plan.schedule.timesteps[t] for t in plan.levels[:-1]]
    level = [plan.schedule.sigma[t] / plan.schedule.alpha[t] for t in plan.levels]
    close(plan.sigmas, level)
    with pytest.raises(ValueError, match="teacher_steps"):
        mergeplan.plan([0.5], CONFIG, train_time=1)
    with pytest.raises(ValueError, match="timesteps"):
        mergeplan.plan([0.5], "cosine", teacher_steps=4, train_time=1).timesteps
    with pytest.raises(ValueError, match="pure noise"):
        mergeplan.plan([0.5], "cosine", teacher_steps=4, train_time=1).sigmas
