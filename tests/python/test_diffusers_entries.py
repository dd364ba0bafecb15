"""What MergeScheduler makes of the entries of a config, and of the timesteps that a pipeline hands back."""

import json

import numpy as np
import pytest
import torch

import diffusers_cases as cases
from diffusers import DDIMScheduler, FlowMatchEulerDiscreteScheduler
from mergeplan.diffusers import MergeScheduler

BETAS = {"beta_schedule": "scaled_linear", "beta_start": 0.00085, "beta_end": 0.012, "clip_sample": False}


@pytest.mark.parametrize("shift", [1.0, 3.0, 30.0, 300.0])
def test_timesteps_that_are_close_together_keep_their_jumps(shift):
    """A large shift puts most of a flow's timesteps within a thousandth of each other."""
    old = FlowMatchEulerDiscreteScheduler(shift=shift)
    ours = MergeScheduler.from_config(old.config, schedule=cases.schedule_of(old, 50))
    ours.set_timesteps(50)
    times, z = ours.timesteps, torch.randn(2, 6)
    distances = (times[:-1] - times[1:]) / times[:-1]
    assert float(distances.min()) < 1e-3 or shift < 30
    for order in (range(50), reversed(range(50)), (7, 7, 3, 40, 0, 49)):
        ours.set_timesteps(50)
        for k in order:
            ours.step(z, times[k], z)
            assert ours.step_index == k + 1 and ours.index_for_timestep(times[k]) == k
            assert ours.index_for_timestep(float(times[k])) == k
            assert ours.index_for_timestep(times[k].double() * (1 + 1e-8)) == k


def test_a_timestep_between_two_is_the_expected_one():
    ours = MergeScheduler(num_train_timesteps=1000)
    ours.set_timesteps(timesteps=[999.0, 998.5, 998.0, 20.0])
    between = 998.75  # within a thousandth of three
    assert [ours._index_near(between, expected) for expected in (0, 1, 2, 3)] == [0, 1, 0, 0]
    assert ours._index_near(998.6, 0) == 1 and ours._index_near(torch.tensor([998.9, 998.6]), 1) == 1
    for bad in (torch.tensor([998.9, float("nan")]), torch.tensor([float("nan"), 998.9]), 990.0, 21.0):
        with pytest.raises(ValueError, match="no jump begins at timestep"):
            ours.index_for_timestep(bad)


def saved(scheduler, folder):
    scheduler.save_pretrained(folder)
    return json.loads((folder / "scheduler_config.json").read_text())


def test_the_checksum_is_of_numbers_not_of_how_they_are_written(tmp_path):
    old = DDIMScheduler(**BETAS)
    plan = cases.blocks_plan(cases.schedule_of(old, 10), [4])
    ours = MergeScheduler.from_config(old.config, plan=plan)
    config = saved(ours, tmp_path)
    same = {
        "num_train_timesteps": 1000, "clip_sample_range": 1, "snr_shift_scale": 1,
        "jump_timesteps": [int(t) if t == int(t) else t for t in config["jump_timesteps"]],
    }  # fmt: skip
    (tmp_path / "scheduler_config.json").write_text(json.dumps({**config, **same}))
    again = MergeScheduler.from_pretrained(tmp_path)
    assert again.config.jump_checksum == ours.config.jump_checksum == config["jump_checksum"]
    keys = [key for key in config if key.startswith("jump_") and key != "jump_checksum"]
    for make in (tuple, np.array, lambda x: torch.tensor(x, dtype=torch.float64)):
        other = MergeScheduler.from_config({**config, **{key: make(config[key]) for key in keys}})
        assert other.config.jump_checksum == config["jump_checksum"]
        assert all(isinstance(other.config[key], list) for key in keys)
        assert saved(other, tmp_path)["jump_timesteps"] == config["jump_timesteps"]
    for change in ({"clip_sample_range": 1.5}, {"rescale_betas_zero_snr": True}, {"beta_start": 0.000851}):
        with pytest.raises(ValueError, match="was changed after it was made|another schedule"):
            MergeScheduler.from_config({**config, **change})


@pytest.mark.parametrize("make", [list, tuple, np.array, torch.tensor, lambda x: torch.tensor(x, dtype=torch.float64)])
def test_trained_betas_of_any_kind_are_saved_as_a_list(make, tmp_path):
    betas = torch.linspace(1e-4, 0.02, 50, dtype=torch.float64).tolist()
    old = DDIMScheduler(num_train_timesteps=50, trained_betas=betas, clip_sample=False)
    plan = cases.blocks_plan(cases.schedule_of(old, 10), [4])
    ours = MergeScheduler.from_config({**old.config, "trained_betas": make(betas)}, plan=plan)
    assert isinstance(ours.config.trained_betas, list)
    config = saved(ours, tmp_path)
    assert config["trained_betas"] == pytest.approx(betas, rel=1e-6)
    again = MergeScheduler.from_pretrained(tmp_path)
    assert again.config.jump_checksum == ours.config.jump_checksum
    again.set_timesteps()
    ours.set_timesteps()
    net, noise = cases.network(), torch.randn(2, 6)
    assert torch.equal(cases.sample(again, net, noise), cases.sample(ours, net, noise))


@pytest.mark.parametrize("change, words", [
    ({"jump_timesteps": ["999", 300]}, "jump_timesteps is .*expected a list of numbers"),
    ({"jump_timesteps": [True, False]}, "jump_timesteps is .*expected a list of numbers .True is a bool"),
    ({"jump_timesteps": "99"}, "jump_timesteps is '99', expected a list of numbers"),
    ({"jump_timesteps": 7}, "jump_timesteps is 7, expected a list of numbers"),
    ({"jump_timesteps": [1001.0, 300.0]}, r"jump_timesteps\[0\] is 1001, expected 0 to num_train_timesteps = 1000"),
    ({"jump_timesteps": [900.0, -1.0]}, r"jump_timesteps\[1\] is -1, expected 0 to"),
    ({"jump_timesteps": [float("nan"), 1.0]}, r"jump_timesteps\[0\] is nan, expected 0 to"),
    ({"jump_timesteps": [float("inf"), 1.0]}, r"jump_timesteps\[0\] is inf, expected 0 to"),
    ({"jump_alphas": [True, 1, 1]}, "jump_alphas is .*expected a list of numbers"),
    ({"jump_sigmas": None}, "0 jump_sigmas, expected N, N"),
    ({"jump_sigmas": ["a", "b", "c"]}, "jump_sigmas is .*expected a list of numbers"),
    ({"trained_betas": [True] * 1000}, "trained_betas is .*expected a list of numbers"),
    ({"trained_betas": ["0.1"] * 1000}, "trained_betas is .*expected a list of numbers"),
    ({"trained_betas": [2.0] * 1000}, r"trained_betas\[0\] is 2.0, expected a number above 0"),
    ({"flow": "no"}, "flow is 'no', expected True or False"),
    ({"flow": 1}, "flow is 1, expected True or False"),
    ({"invert_sigmas": "false"}, "invert_sigmas is 'false', expected True or False"),
    ({"clip_sample": 0}, "clip_sample is 0, expected True or False"),
    ({"rescale_betas_zero_snr": "no"}, "rescale_betas_zero_snr is 'no', expected True or False"),
    ({"snr_shift_scale": "3"}, "snr_shift_scale is '3', expected a positive number"),
    ({"snr_shift_scale": True}, "snr_shift_scale is True, expected a positive number"),
    ({"snr_shift_scale": 0}, "snr_shift_scale is 0, expected a positive number"),
    ({"clip_sample_range": float("nan")}, "clip_sample_range is nan, expected a positive number"),
    ({"clip_sample_range": None}, "clip_sample_range is None, expected a positive number"),
], ids=lambda x: str(x)[:40])  # fmt: skip
def test_entries_that_cannot_be_are_named(change, words):
    old = DDIMScheduler(**BETAS)
    config = dict(MergeScheduler.from_config(old.config, plan=cases.blocks_plan(cases.schedule_of(old, 10), [4])).config)
    config.pop("jump_checksum")
    config.pop("_use_default_values")  # not in files
    with pytest.raises(ValueError, match=words):
        MergeScheduler.from_config({**config, **change})


def test_timesteps_of_ones_own_are_numbers():
    ours = MergeScheduler()
    for bad in (["900"], [True], "900", 900, [None]):
        with pytest.raises(ValueError, match="timesteps is .*expected a list of numbers"):
            ours.set_timesteps(timesteps=bad)
    ours.set_timesteps(timesteps=torch.tensor([900, 100]))
    assert ours.timesteps.tolist() == [900, 100]
