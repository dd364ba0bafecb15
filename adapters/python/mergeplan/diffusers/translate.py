"""What the config of another scheduler, and a plan, mean as entries of MergeScheduler's config."""

from __future__ import annotations

import inspect
from typing import Any, Mapping

from diffusers.utils import logging

from .tables import is_flow

logger = logging.get_logger(__name__)

# These have the entry clip_sample and do not look at it.
_NEVER_CLIP = ("CogVideoXDDIMScheduler", "CogVideoXDPMScheduler")


def _say_dropped(config: Mapping[str, Any], entry: str) -> None:
    if config.get(entry):
        logger.warning(f"{entry} of the old scheduler is not taken over: jumps are deterministic and trained without it")


def understood(config: Mapping[str, Any], keys: set[str], own: str) -> dict[str, Any]:
    """The entries `keys` of another class's config, with that class's defaults written out; `own` is the name of this class.

    ValueError where that class steps in a way that jumps are not trained for."""
    name = config.get("_class_name", "")
    if "sigma_data" in config or "EDM" in str(name):
        raise ValueError(
            f"{name or 'this scheduler'} scales inputs and outputs of its network by sigma (EDM preconditioning), which MergeScheduler "
            "does not; run the student with mergeplan's own sampler (MergeDistiller.sample)"
        )
    out = {key: config[key] for key in keys & set(config) if key not in ("self", "jump_checksum")}
    if is_flow(config):
        _say_dropped(config, "stochastic_sampling")
        out.update(flow=True, prediction_type="flow", use_flow_sigmas=True, clip_sample=False)
        out.setdefault("num_train_timesteps", 1000)
        return out
    import diffusers

    known = getattr(diffusers, str(name), None)
    if known is not None and name != own:
        for key, parameter in inspect.signature(known.__init__).parameters.items():
            if key in keys and key not in out and parameter.default is not parameter.empty:
                out[key] = parameter.default
    if name != own and "beta_schedule" not in out and out.get("trained_betas") is None:
        raise ValueError(
            f"{name or 'the scheduler'} is no sampler on a table of betas (its config has no beta_schedule) and no flow, which MergeScheduler "
            "needs to know; give it the config that the network was trained with (DDPMScheduler, FlowMatchEulerDiscreteScheduler)"
        )
    if config.get("timestep_type") == "continuous" and out.get("prediction_type") == "v_prediction":
        raise ValueError(
            f"{name or 'the scheduler'} has timestep_type 'continuous', which tells the network log(sigma)/4 in the place of "
            "a timestep of its table; run the student with mergeplan's own sampler (MergeDistiller.sample)"
        )
    if config.get("use_flow_sigmas"):
        raise ValueError(
            f"{name or 'the scheduler'} has use_flow_sigmas with prediction_type {out.get('prediction_type')!r}, expected "
            "'flow_prediction': flow sigmas belong to networks that predict the flow"
        )
    if "set_alpha_to_one" not in out:
        # Where a class's last step lands: sigma_min where it says so, else a clean level.
        out["set_alpha_to_one"] = config.get("final_sigmas_type", "zero") != "sigma_min"
    _say_dropped(config, "thresholding")
    if name in _NEVER_CLIP:
        out["clip_sample"] = False
    if config.get("prediction_type") == "original_sample":
        out["prediction_type"] = "sample"
    return out


def jumps_of(config: dict[str, Any], plan, schedule) -> dict[str, Any]:
    """The entries jump_* of a plan (None: all single steps of the schedule), for a scheduler with this config."""
    alpha = [float(v) for v in schedule.alpha]
    sigma = [float(v) for v in schedule.sigma]
    # What the network sees: a flow's own coordinates, else those of plans, which keep the variance (also where the
    # old scheduler worked with sigmas).
    scale = [1 / (a + s) if config.get("flow") else 1.0 for a, s in zip(alpha, sigma)]
    times = getattr(schedule, "timesteps", None)
    if times is None or len(times) != len(alpha):
        raise ValueError(
            "the schedule of the plan has no timesteps; make the plan with Schedule.from_diffusers(scheduler, steps), or pass "
            "schedule= that (plan files do not keep timesteps)"
        )
    if plan is None:
        borders = list(range(len(alpha) - 1, -1, -1))
    else:
        if int(plan.teacher_steps) != len(alpha) - 1:
            raise ValueError(
                f"the plan has {plan.teacher_steps} teacher steps, its schedule {len(alpha) - 1}, expected the same"
            )
        borders = [int(_last(block)) for block in reversed(list(plan.blocks))] + [0]
    jumps = {
        "jump_timesteps": [float(times[j]) for j in borders[:-1]],
        "jump_alphas": [alpha[j] * scale[j] for j in borders],
        "jump_sigmas": [sigma[j] * scale[j] for j in borders],
    }
    told = getattr(schedule, "prediction_type", None)
    if told and "prediction_type" not in config:
        config["prediction_type"] = told
    return jumps


def _last(block) -> int:
    last = getattr(block, "last", None)
    return int(last) if last is not None else int(block[1])
