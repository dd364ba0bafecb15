"""MergeScheduler: runs a distilled student in any diffusers pipeline."""

from __future__ import annotations

import hashlib
import json
import math
import operator
import os
from dataclasses import dataclass
from typing import Any, Sequence

import torch
from diffusers.configuration_utils import ConfigMixin, register_to_config
from diffusers.schedulers.scheduling_utils import SchedulerMixin
from diffusers.utils import BaseOutput, logging

from . import checks
from .stock import stock_config
from .tables import BetaTable, FlowTable, make_betas, shifted_betas
from .translate import jumps_of, understood

logger = logging.get_logger(__name__)

PREDICTIONS = ("epsilon", "sample", "v_prediction", "flow")
# Levels of a plan against those of the config, in radians of atan(sigma/alpha). Between two entries of a table samplers
# interpolate in different ways.
_SAME = 5e-3
# What jumps mean rests on these entries of the config.
_MEANING = (
    "num_train_timesteps", "beta_start", "beta_end", "beta_schedule", "trained_betas", "rescale_betas_zero_snr",
    "snr_shift_scale", "prediction_type", "flow", "invert_sigmas", "clip_sample", "clip_sample_range", "jump_timesteps",
    "jump_alphas", "jump_sigmas",
)  # fmt: skip


@dataclass
class MergeSchedulerOutput(BaseOutput):
    """`prev_sample`: the state where the jump lands; `pred_original_sample`: what the network says about x0."""

    prev_sample: torch.Tensor
    pred_original_sample: torch.Tensor | None = None


class MergeScheduler(SchedulerMixin, ConfigMixin):
    """The N jumps of a merge plan as a diffusers scheduler: deterministic, every call of the network lands where the
    student was trained to land.

    Make it from the scheduler of the teacher: `MergeScheduler.from_config(old.config, plan=plan)`. The config keeps the
    jumps, so that a saved pipeline needs no plan. States are those of the network: variance preserving for tables of
    betas (also where the old scheduler worked with sigmas), (1 - s) x0 + s noise for flow matching.

    Raises ValueError for epsilon with zero terminal SNR, for a plan of another schedule, for classes that are neither, and
    for a saved config whose jumps, or what they rest on, were changed by hand (`jump_checksum`).
    """

    # A pipeline looks the class up in the module of this name, which must also hold SchedulerMixin.
    __module__ = "mergeplan.diffusers"
    order = 1

    @register_to_config
    def __init__(
        self,
        num_train_timesteps: int = 1000,
        beta_start: float = 0.0001,
        beta_end: float = 0.02,
        beta_schedule: str = "linear",
        trained_betas: Sequence[float] | None = None,
        rescale_betas_zero_snr: bool = False,
        set_alpha_to_one: bool = True,
        prediction_type: str = "epsilon",
        flow: bool = False,
        clip_sample: bool = False,
        clip_sample_range: float = 1.0,
        steps_offset: int = 0,
        use_flow_sigmas: bool = False,
        invert_sigmas: bool = False,
        snr_shift_scale: float = 1.0,
        jump_timesteps: Sequence[float] | None = None,
        jump_alphas: Sequence[float] | None = None,
        jump_sigmas: Sequence[float] | None = None,
        jump_checksum: str | None = None,
    ):
        if prediction_type == "flow_prediction":
            prediction_type = "flow"
        if prediction_type not in PREDICTIONS:
            raise ValueError(f"prediction_type {prediction_type!r} is unknown, expected one of {', '.join(PREDICTIONS)}")
        if trained_betas is not None:  # a list in the config, whatever it was given as
            trained_betas = checks.numbers("trained_betas", trained_betas)
            self.register_to_config(trained_betas=trained_betas)
        checks.entries(num_train_timesteps, beta_start, beta_end, trained_betas)
        checks.truth("flow", flow)
        checks.truth("invert_sigmas", invert_sigmas)
        checks.truth("rescale_betas_zero_snr", rescale_betas_zero_snr)
        checks.truth("clip_sample", clip_sample)
        checks.positive("snr_shift_scale", snr_shift_scale)
        checks.positive("clip_sample_range", clip_sample_range)
        if flow:
            self._table: BetaTable | FlowTable = FlowTable(num_train_timesteps, invert_sigmas)
            self._final = (1.0, 0.0)
        else:
            betas = make_betas(
                num_train_timesteps, beta_start, beta_end, beta_schedule, trained_betas,
                rescale_betas_zero_snr and snr_shift_scale == 1,
            )  # fmt: skip
            if snr_shift_scale != 1:
                betas = shifted_betas(betas, snr_shift_scale, rescale_betas_zero_snr)
            table = BetaTable(betas)
            self._table = table
            self.betas, self.alphas_cumprod = betas, table.alphas_cumprod
            self._final = (1.0, 0.0) if set_alpha_to_one else (float(table.alpha[0]), float(table.sigma[0]))
        self.init_noise_sigma = 1.0
        self.num_inference_steps: int | None = None
        self._step_index: int | None = None
        self._begin_index: int | None = None
        self._told: set[Any] = set()
        self._plan: tuple[list[float], list[float], list[float]] | None = None
        if jump_timesteps is not None:
            jumps = checks.jumps(jump_timesteps, jump_alphas, jump_sigmas, num_train_timesteps)
            self._check(jumps[1], jumps[2])
            self._same_schedule(*jumps)
            self.register_to_config(jump_timesteps=jumps[0], jump_alphas=jumps[1], jump_sigmas=jumps[2])
            self._unchanged(jump_checksum)
            self._plan = jumps
        elif jump_checksum is not None:
            raise ValueError(
                "the config was changed after it was made: it has a jump_checksum and no jump_timesteps. Make it anew from the "
                "plan, or take jump_checksum out too to mean a scheduler of all single steps"
            )
        self._set(*(self._plan or self._all_levels()), device=None)

    # Making one.

    @classmethod
    def from_config(cls, config=None, return_unused_kwargs: bool = False, *, plan=None, schedule=None, **kwargs):
        """From the config of the teacher's scheduler (or its own, saved), or that scheduler itself.

        `plan`: a Plan with its schedule (its N blocks are the jumps), or the path of a plan.toml; `schedule` alone: a
        Schedule, all single steps. Other arguments replace entries of the config.

        `clip_sample` is kept for plans of single steps only: jumps are trained without it. Pass `clip_sample=True` to
        have it all the same.
        """
        if config is None:
            raise ValueError("from_config needs the config of a scheduler: from_config(old.config, plan=plan)")
        if isinstance(config, SchedulerMixin):
            config = {**config.config, "_class_name": type(config).__name__}
        try:
            config = dict(config)
        except (TypeError, ValueError):
            raise ValueError(
                f"config is a {type(config).__name__}, expected the config of a scheduler (a dict) or the scheduler; a folder "
                "is read by from_pretrained"
            ) from None
        if plan is not None or schedule is not None:
            if isinstance(plan, (str, os.PathLike)):
                from .. import Plan

                plan = Plan.from_toml(os.fspath(plan))
            if plan is not None and not (hasattr(plan, "blocks") and hasattr(plan, "teacher_steps")):
                raise ValueError(f"plan is a {type(plan).__name__}, expected a Plan or the path of a plan.toml")
            if schedule is None and getattr(plan, "schedule", None) is None:
                raise ValueError("the plan holds no schedule: pass schedule=Schedule.from_diffusers(scheduler, steps) too")
            if schedule is not None and not (hasattr(schedule, "alpha") and hasattr(schedule, "sigma")):
                raise ValueError(f"schedule is a {type(schedule).__name__}, expected a Schedule (Schedule.from_diffusers)")
            config = {**understood(config, set(cls._get_init_keys(cls)), cls.__name__), **kwargs}
            config.update(jumps_of(config, plan, schedule if schedule is not None else plan.schedule))
            if plan is not None and len(config["jump_timesteps"]) < int(plan.teacher_steps):
                if config.get("clip_sample") and "clip_sample" not in kwargs:
                    logger.info("clip_sample is switched off: jumps are trained without it")
                    config["clip_sample"] = False
            kwargs = {}
        elif config and config.get("_class_name") != cls.__name__ and "jump_timesteps" not in config:
            config = {**understood(config, set(cls._get_init_keys(cls)), cls.__name__), **kwargs}
            kwargs = {}
        if set(kwargs) & set(_MEANING):  # changed here, not in a file
            config.pop("jump_checksum", None)
        return super().from_config(config, return_unused_kwargs=return_unused_kwargs, **kwargs)

    def _unchanged(self, checksum: str | None) -> None:
        """ValueError where the config's jumps, or what they rest on, are not those that were written with `checksum`."""
        entries = [checks.plain(self.config[key]) for key in _MEANING]
        found = hashlib.sha256(json.dumps(entries, default=str).encode()).hexdigest()[:16]
        if checksum not in (None, found):
            raise ValueError(
                f"the config was changed after it was made: its jump_checksum is {checksum!r}, expected {found!r} for its jumps, "
                "betas, prediction_type and clipping. Make it anew from the plan, give the change to from_pretrained or from_config "
                "(prediction_type=…), or take jump_checksum out to mean the change"
            )
        self.register_to_config(jump_checksum=found)

    def _check(self, alphas: Sequence[float], sigmas: Sequence[float]) -> None:
        for k, (a, s) in enumerate(zip(alphas, sigmas)):
            if not (math.isfinite(a) and math.isfinite(s) and a >= 0 and s >= 0 and a + s > 0):
                raise ValueError(f"level {k} of the jumps has alpha {a} and sigma {s}, expected finite numbers, not negative")
            if k and not a * sigmas[k - 1] > alphas[k - 1] * s:
                raise ValueError(
                    f"level {k} of the jumps (alpha {a:g}, sigma {s:g}) is not cleaner than the one before it (alpha "
                    f"{alphas[k - 1]:g}, sigma {sigmas[k - 1]:g})"
                )
        self._some_signal(alphas[0], sigmas[0])

    def _some_signal(self, alpha: float, sigma: float) -> None:
        if self.config.prediction_type == "epsilon" and alpha <= 1e-6 * sigma:
            raise ValueError(
                "the noisiest level has no signal (zero terminal SNR) and the network predicts epsilon: nothing follows "
                "about x0 there, samples would be NaN or black. Use a network that predicts v_prediction or sample, or "
                "the schedule without rescale_betas_zero_snr, or timestep_spacing='leading'"
            )

    def _same_schedule(self, times: list[float], alphas: list[float], sigmas: list[float]) -> None:
        kind = torch.float64 if self.config.flow or any(t != int(t) for t in times) else torch.int64
        alpha, sigma = self._table.at(torch.tensor(times, dtype=kind))
        self._some_signal(float(alpha[0]), float(sigma[0]))  # where samplers put a little in its place (Euler), too
        for k, (a, s) in enumerate(zip(alpha.tolist(), sigma.tolist())):
            if abs(math.atan2(s, a) - math.atan2(sigmas[k], alphas[k])) > _SAME:
                raise ValueError(
                    f"the plan was made for another schedule: at timestep {times[k]:g} it has sigma/alpha "
                    f"{sigmas[k] / max(alphas[k], 1e-12):g}, this config {s / max(a, 1e-12):g}; make the plan from this "
                    "scheduler (Schedule.from_diffusers)"
                )

    def _all_levels(self) -> tuple[list[float], list[float], list[float]]:
        """Without a plan: every timestep."""
        first = 1 if self.config.flow else 0
        times = torch.arange(self.config.num_train_timesteps - 1 + first, first - 1, -1)
        if self.config.flow and self.config.invert_sigmas:
            times = self.config.num_train_timesteps - times
        alpha, sigma = self._table.at(times)
        alphas, sigmas = [*alpha.tolist(), self._final[0]], [*sigma.tolist(), self._final[1]]
        if len(alphas) > 2 and alphas[-1] * sigmas[-2] <= alphas[-2] * sigmas[-1]:
            # The last step lands where it begins.
            times, alphas, sigmas = times[:-1], alphas[:-1], sigmas[:-1]
        return times.double().tolist(), alphas, sigmas

    # What pipelines use.

    def __len__(self) -> int:
        return self.config.num_train_timesteps

    @property
    def step_index(self) -> int | None:
        """The jump that comes next; None before the first."""
        return self._step_index

    @property
    def begin_index(self) -> int | None:
        """The jump to begin with, where a pipeline begins in the middle."""
        return self._begin_index

    def set_begin_index(self, begin_index: int = 0) -> None:
        """For pipelines that begin in the middle (image to image)."""
        self._begin_index = checks.whole("begin_index", begin_index, 0, len(self._times))

    def set_timesteps(
        self,
        num_inference_steps: int | None = None,
        device: str | torch.device | None = None,
        timesteps: Sequence[float] | None = None,
        sigmas: Sequence[float] | None = None,
        mu: float | None = None,
    ) -> None:
        """The plan's N jumps. Another `num_inference_steps` changes nothing, since the student knows only these, and is
        said once; ValueError for what is no whole number from 1.

        `timesteps`: jumps of your own, from the noisiest, by the network's timesteps; `sigmas`: the same by sigma / alpha
        (k-diffusion's sigmas; of a flow its s), a last 0 may be there or not. The last jump lands where the plan's does.
        `mu` (dynamic shifting) is in the plan's levels already.
        """
        if timesteps is not None and sigmas is not None:
            raise ValueError("timesteps and sigmas are given, expected one of them")
        if timesteps is None and sigmas is None:
            num_inference_steps = self._count(num_inference_steps)
        if timesteps is not None:
            self._set(*self._custom(checks.numbers("timesteps", timesteps)), device=device)
        elif sigmas is not None:
            self._set(*self._from_sigmas(checks.numbers("sigmas", sigmas)), device=device)
        elif self._plan is None:
            self._set(*self._spaced(num_inference_steps), device=device)
        else:
            n = len(self._plan[0])
            if num_inference_steps not in (None, n) and num_inference_steps not in self._told:
                self._told.add(num_inference_steps)
                logger.warning(
                    f"{num_inference_steps} steps are asked for: the student makes {n}, the jumps of its plan; pass "
                    "timesteps=… or sigmas=… for others"
                )
            self._set(*self._plan, device=device)

    def _count(self, count) -> int | None:
        try:
            whole = None if count is None else 0 if isinstance(count, bool) else operator.index(count)
        except TypeError:
            whole = 0
        if whole is not None and whole < 1:
            most = "" if self._plan else f" to {self.config.num_train_timesteps}: this scheduler holds no plan"
            raise ValueError(f"num_inference_steps is {count!r}, expected a whole number, 1{most or ' or more'}")
        return whole

    def _landing(self) -> tuple[float, float]:
        return (self._plan[1][-1], self._plan[2][-1]) if self._plan else self._final

    def _custom(self, times: list[float]) -> tuple[list[float], list[float], list[float]]:
        if not times or any(not math.isfinite(t) for t in times):
            raise ValueError(f"timesteps {times}, expected one finite number or more")
        kind = torch.float64 if self.config.flow or any(t != int(t) for t in times) else torch.int64
        alpha, sigma = self._table.at(torch.tensor(times, dtype=kind))
        alphas, sigmas = alpha.double().tolist(), sigma.double().tolist()
        if self._plan:  # the plan's own levels are exact
            known = dict(zip(self._plan[0], zip(self._plan[1], self._plan[2])))
            for k, t in enumerate(times):
                if t in known:
                    alphas[k], sigmas[k] = known[t]
        alphas.append(self._landing()[0])
        sigmas.append(self._landing()[1])
        self._check(alphas, sigmas)
        return times, alphas, sigmas

    def _from_sigmas(self, given: list[float]) -> tuple[list[float], list[float], list[float]]:
        if given and given[-1] == 0:
            given = given[:-1]
        if not given or any(not math.isfinite(s) or s <= 0 for s in given):
            raise ValueError(f"sigmas {given}, expected positive numbers, from the noisiest, one or more")
        times = [self._table.timestep_of(s) for s in given]
        if self.config.flow:
            alphas, sigmas = [1 - s for s in given], list(given)
        else:
            alphas = [1 / math.hypot(1, s) for s in given]
            sigmas = [s / math.hypot(1, s) for s in given]
        alphas.append(self._landing()[0])
        sigmas.append(self._landing()[1])
        self._check(alphas, sigmas)
        return times, alphas, sigmas

    def _spaced(self, count: int | None) -> tuple[list[float], list[float], list[float]]:
        """Without a plan: `count` equal parts, from the noisiest timestep (what diffusers calls trailing)."""
        total = self.config.num_train_timesteps
        if count is None or not 1 <= count <= total:
            raise ValueError(f"num_inference_steps is {count}, expected 1 to {total}: this scheduler holds no plan")
        if self.config.flow:
            return self._custom([self._table.timestep_of(1 - k / count) for k in range(count)])
        return self._custom([float(round(total - k * total / count)) - 1 for k in range(count)])

    def _set(self, times, alphas, sigmas, device) -> None:
        self._check(alphas, sigmas)
        whole = not self.config.flow and all(t == int(t) for t in times)
        self.timesteps = torch.tensor(times, dtype=torch.int64 if whole else torch.float32, device=device)
        self._alphas, self._sigmas = list(alphas), list(sigmas)
        self._times = [float(t) for t in self.timesteps.tolist()]
        # What k-diffusion calls sigmas, N+1; of a flow its s.
        self.sigmas = torch.tensor(
            [s if self.config.flow else (s / a if a > 0 else math.inf) for a, s in zip(alphas, sigmas)], dtype=torch.float32
        )
        self.num_inference_steps = len(times)
        self._step_index = self._begin_index = None

    def scale_model_input(self, sample: torch.Tensor, timestep=None) -> torch.Tensor:
        """States are what the network sees."""
        return sample

    def index_for_timestep(self, timestep) -> int:
        """Which jump begins at this timestep, or at all of these. ValueError where none does."""
        return self._index_near(timestep, 0)

    def _index_near(self, timestep, expected: int) -> int:
        """The jump that begins nearest to this timestep; of two as near `expected`, else the first."""
        try:
            given = torch.as_tensor(timestep).detach().double().flatten().tolist()
        except (TypeError, ValueError, RuntimeError):
            given = []
        if not all(math.isfinite(t) for t in given):
            given = []
        # Some are closer to each other than what a timestep may lose on its way (flows with a large shift in bfloat16).
        order = [expected, *range(len(self._times))]
        off = {at: max((abs(t - self._times[at]) for t in given), default=math.inf) for at in order}
        nearest = min(order, key=off.__getitem__)
        if off[nearest] <= 1e-3 * max(1.0, abs(self._times[nearest])):
            return nearest
        shown = f"{given[0]:g}" if given and len(set(given)) == 1 else repr(timestep)
        raise ValueError(
            f"no jump begins at timestep {shown}, expected one of {self._times}; call step() with what set_timesteps() "
            "left in .timesteps"
        )

    def step(
        self,
        model_output: torch.Tensor,
        timestep,
        sample: torch.Tensor,
        return_dict: bool = True,
        generator: torch.Generator | None = None,
        eta: float = 0.0,
        **_unused,
    ) -> MergeSchedulerOutput | tuple:
        """One jump: from the state at `timestep` to where the jump that begins there lands, in whatever order they are
        asked for. Deterministic; `generator` is not used. ValueError where no jump begins at `timestep`."""
        checks.states("sample", sample)
        checks.states("model_output", model_output, sample)
        if eta:
            raise ValueError(f"eta is {eta}, expected 0: jumps are deterministic")
        expected = self._step_index
        if expected is None or expected >= len(self._times):
            expected = self._begin_index or 0
        k = self._index_near(timestep, min(expected, len(self._times) - 1))
        prev, x0 = self._jump(model_output, sample, k)
        self._step_index = k + 1
        if not return_dict:
            return (prev, x0)
        return MergeSchedulerOutput(prev_sample=prev, pred_original_sample=x0)

    def _jump(self, output: torch.Tensor, sample: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
        kind = torch.float64 if sample.dtype == torch.float64 else torch.float32
        z, f = sample.to(kind), output.to(kind)
        a, s, to_a, to_s = self._alphas[k], self._sigmas[k], self._alphas[k + 1], self._sigmas[k + 1]
        prediction = self.config.prediction_type
        if prediction == "epsilon":
            x0, eps = (z - s * f) / a, f
        elif prediction == "sample":
            x0, eps = f, (z - a * f) / s
        elif prediction == "v_prediction":
            n = a * a + s * s
            x0, eps = (a * z - s * f) / n, (a * f + s * z) / n
        else:
            n = a + s
            f = -f if self.config.invert_sigmas else f
            x0, eps = (z - s * f) / n, (z + a * f) / n
        if self.config.clip_sample:
            x0 = x0.clamp(-self.config.clip_sample_range, self.config.clip_sample_range)
        prev = to_a * x0 + to_s * eps
        return prev.to(sample.dtype), x0.to(sample.dtype)

    def _levels_of(self, like: torch.Tensor, timesteps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        times = torch.as_tensor(timesteps).to(like.device).reshape(-1)
        checks.per_row(times, like)
        alpha, sigma = self._table.at(times)
        shape = [-1] + [1] * (like.dim() - 1)
        return alpha.to(like).view(shape), sigma.to(like).view(shape)

    def add_noise(self, original_samples: torch.Tensor, noise: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
        """alpha x0 + sigma noise at any timestep of the training, one for every sample."""
        checks.states("original_samples", original_samples)
        checks.states("noise", noise)  # of one row for several samples, too
        alpha, sigma = self._levels_of(original_samples, timesteps)
        return alpha * original_samples + sigma * noise

    def scale_noise(self, sample: torch.Tensor, timestep: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """add_noise under the name that flow pipelines use."""
        return self.add_noise(sample, noise, timestep)

    def get_velocity(self, sample: torch.Tensor, noise: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
        """What a v_prediction (or flow) network should say about a sample and its noise."""
        if self.config.flow:
            return sample - noise if self.config.invert_sigmas else noise - sample
        alpha, sigma = self._levels_of(sample, timesteps)
        return alpha * noise - sigma * sample

    # For those without this package.

    def to_stock(self):
        """A scheduler of diffusers itself that makes the same samples, and what its set_timesteps (or the pipeline's
        call) must be given: `scheduler, arguments = ours.to_stock(); pipe(**arguments)`.

        DPMSolverMultistepScheduler of first order or EulerDiscreteScheduler with custom timesteps,
        FlowMatchEulerDiscreteScheduler with custom sigmas. Raises
        ValueError where none can: a level without signal, clip_sample, a landing that is neither clean nor timestep 0.
        """
        config, arguments = self.to_stock_config()
        import diffusers

        return getattr(diffusers, config["_class_name"]).from_config(config), arguments

    def to_stock_config(self) -> tuple[dict[str, Any], dict[str, list[float]]]:
        """The config of `to_stock` (what scheduler_config.json holds) and the arguments."""
        return stock_config(self)

    def stock_json(self) -> str:
        """The config of `to_stock` as text."""
        return json.dumps(self.to_stock_config()[0], indent=2, sort_keys=True) + "\n"
