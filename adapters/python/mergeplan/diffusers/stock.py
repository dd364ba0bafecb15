"""A scheduler that diffusers itself has, for students of people without this package."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from .tables import betas_of

if TYPE_CHECKING:
    from .scheduler import MergeScheduler


def stock_config(scheduler: MergeScheduler) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The config (what scheduler_config.json holds) and what its set_timesteps, or the pipeline's call, is given.

    Raises ValueError where no scheduler of diffusers makes the same samples.
    """
    times, alphas, sigmas = scheduler._plan or (scheduler.timesteps.tolist(), scheduler._alphas, scheduler._sigmas)
    if scheduler.config.clip_sample:
        raise ValueError("clip_sample is on, which the schedulers with custom timesteps do not do; switch it off")
    if scheduler.config.flow:
        if abs(sigmas[-1]) > 1e-7:
            raise ValueError(f"the last jump lands at sigma {sigmas[-1]:g}, stock flow schedulers land at 0")
        config = {
            "_class_name": "FlowMatchEulerDiscreteScheduler",
            "num_train_timesteps": scheduler.config.num_train_timesteps,
            "shift": 1.0,
            "use_dynamic_shifting": False,
        }
        if scheduler.config.invert_sigmas:
            config["invert_sigmas"] = True
        return config, {"sigmas": [float(s) for s in sigmas[:-1]]}
    if alphas[0] <= 1e-6 * sigmas[0]:
        raise ValueError(
            "the noisiest level has no signal: stock schedulers with custom timesteps put a little signal in its place "
            "and make other samples; begin at a level below it, or ship this scheduler"
        )
    first = scheduler._table.at(torch.tensor([0]))
    if sigmas[-1] <= 1e-7:
        final = "zero"
    elif math.isclose(sigmas[-1], float(first[1][0]), rel_tol=1e-4):
        final = "sigma_min"
    else:
        raise ValueError(f"the last jump lands at sigma {sigmas[-1]:g}, stock schedulers land clean or at timestep 0")
    keys = ("num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "trained_betas", "rescale_betas_zero_snr")
    config = {key: scheduler.config[key] for key in keys}
    if scheduler.config.snr_shift_scale != 1:
        config.update(trained_betas=betas_of(scheduler.alphas_cumprod).tolist(), rescale_betas_zero_snr=False)
    config.update(prediction_type=scheduler.config.prediction_type, final_sigmas_type=final, steps_offset=0)
    whole = all(t == int(t) for t in times)
    ratios = [s / a for a, s in zip(alphas, sigmas)][:-1]
    table = scheduler._table.at(torch.tensor(times, dtype=torch.int64 if whole else torch.float64))
    of_times = (table[1].double() / table[0].double()).tolist()
    if all(math.isclose(a, b, rel_tol=1e-5) for a, b in zip(ratios, of_times)):
        if whole:
            # Its first order is DDIM, in coordinates that keep the variance.
            config.update(_class_name="DPMSolverMultistepScheduler", solver_order=1, algorithm_type="dpmsolver++")
            return config, {"timesteps": [int(t) for t in times]}
        arguments = {"timesteps": [float(t) for t in times]}
    elif all(abs(scheduler._table.timestep_of(r) - t) < 1e-2 for r, t in zip(ratios, times)):
        arguments = {"sigmas": [*ratios, 0.0]}  # of which it finds these timesteps
    else:
        raise ValueError(
            f"the plan's levels {[round(r, 4) for r in ratios]} are not those of its timesteps {times} (rounded, as "
            "with Karras sigmas): no stock scheduler takes both; ship this one"
        )
    if final != "zero":
        raise ValueError(
            "the plan has fractional timesteps and does not land clean: no stock scheduler does both; ship this one"
        )
    # With "leading" the state begins as plain noise once it is scaled for the network.
    config.update(_class_name="EulerDiscreteScheduler", interpolation_type="linear", timestep_spacing="leading")
    return config, arguments
