"""The noise levels of a plan as a network meets them: times, sizes, the DDIM wrapper, weights of the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Sequence

import numpy as np

PREDICTIONS = ("epsilon", "sample", "v_prediction", "flow")
LOSS_SPACES = ("z", "x0", "epsilon", "v")
WEIGHTINGS = ("uniform", "snr", "truncated-snr", "min-snr-gamma")
# Below this ratio of signal to noise an epsilon says nothing about x0.
_NO_SIGNAL = 1e-6


def check_word(what: str, word: str, words: Sequence[str]) -> str:
    """`word`, or a ValueError that lists what there is."""
    if word not in words:
        raise ValueError(f"{what} {word!r} is unknown, expected one of {', '.join(words)}")
    return word


def read_prediction(word: str | None, notes: Sequence[str] = ()) -> str:
    """A prediction type as diffusers writes it: `flow_prediction` is `flow`."""
    if not word:
        turned = [f" ({note})" for note in notes if note.startswith("invert_sigmas")]
        raise ValueError(
            "prediction_type: the schedule does not say what the network predicts; pass one of "
            + ", ".join(PREDICTIONS) + "".join(turned)
        )  # fmt: skip
    return check_word("prediction_type", {"flow_prediction": "flow"}.get(word, word), PREDICTIONS)


@dataclass(frozen=True)
class Landing:
    """z_to = state * z_from + output * F, F being what the network says about z_from (coordinates of the schedule)."""

    state: float
    output: float


class Levels:
    """Levels 0 (clean) .. T (noisy). States live in the schedule's coordinates, z = alpha x0 + sigma eps; a network
    sees `scale[t] * z`, which is the state as its own scheduler has it.

    Raises ValueError for arrays that are no schedule, or a schedule without timesteps.
    """

    def __init__(self, schedule, prediction_type: str | None = None, timesteps: Sequence[float] | None = None):
        self.prediction = read_prediction(
            prediction_type or getattr(schedule, "prediction_type", None), getattr(schedule, "notes", ())
        )
        if not (hasattr(schedule, "alpha") and hasattr(schedule, "sigma")):
            raise ValueError(f"schedule is a {type(schedule).__name__}, expected a mergeplan.Schedule")
        self.alpha = np.asarray(schedule.alpha, dtype=np.float64)
        self.sigma = np.asarray(schedule.sigma, dtype=np.float64)
        if self.alpha.ndim != 1 or self.alpha.shape != self.sigma.shape or len(self.alpha) < 2:
            raise ValueError(
                f"the schedule has alpha of shape {self.alpha.shape} and sigma of shape {self.sigma.shape}, "
                "expected T+1 numbers each"
            )
        self.data_scale = float(getattr(schedule, "data_scale", None) or 1.0)
        self.scale = self._scale(schedule)
        told = timesteps if timesteps is not None else getattr(schedule, "timesteps", None)
        try:
            told = np.asarray([] if told is None else told, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"timesteps: cannot be read as numbers ({error})") from None
        if told.shape != self.alpha.shape:
            raise ValueError(
                f"the schedule has {told.size} timesteps for {len(self.alpha)} levels: a network must be told its noise "
                "level; use Schedule.from_diffusers, or pass timesteps=[...] with T+1 entries (entry 0 is not used)"
            )
        if not np.isfinite(told[1:]).all():
            raise ValueError(f"timestep {1 + int(np.argmin(np.isfinite(told[1:])))} is not finite")
        self.timesteps = told
        # Tables count in whole numbers, flows do not.
        self.integer_time = bool((told[1:] == np.round(told[1:])).all())

    @property
    def steps(self) -> int:
        """T."""
        return len(self.alpha) - 1

    def _scale(self, schedule) -> np.ndarray:
        """What a network sees over the state here. Networks of a table of betas see states of unit variance, those of
        samplers that count in sigmas too (`scale_model_input`), whatever coordinates the sampler itself works in."""
        if self.prediction == "flow":  # alpha + sigma is 1 in a flow's own coordinates
            return 1 / (self.alpha + self.sigma)
        if self.data_scale != 1:  # EDM: the caller's `forward` has states in their own units
            return np.asarray(schedule.level_scale, dtype=np.float64)
        return np.ones_like(self.alpha)

    def determinant(self, a: int, b: int) -> float:
        """D(a, b) = alpha_a sigma_b - alpha_b sigma_a, positive for a < b."""
        return float(self.alpha[a] * self.sigma[b] - self.alpha[b] * self.sigma[a])

    def _mix(self, level: int) -> tuple[float, float]:
        """F = a eps + b x0."""
        if self.prediction == "epsilon":
            return 1.0, 0.0
        if self.prediction == "sample":
            return 0.0, self.data_scale
        if self.prediction == "flow":
            return 1.0, -self.data_scale
        ratio = 1.0 / self.data_scale
        a, s = self.alpha[level] * ratio, self.sigma[level]
        norm = math.hypot(a, s)
        return a / norm, -s / norm / ratio

    def landing(self, origin: int, to: int) -> Landing:
        """The DDIM wrapper at level `origin` that lands at the cleaner level `to`.

        Raises ValueError for epsilon at a level without signal.
        """
        a, b = self._mix(origin)
        alpha, sigma = float(self.alpha[origin]), float(self.sigma[origin])
        whole = alpha * a - sigma * b
        if not abs(whole) > _NO_SIGNAL * sigma:
            raise ValueError(
                f"level {origin} has alpha {alpha:g} and sigma {sigma:g} (zero terminal SNR): a network that predicts "
                f"{self.prediction} says nothing about x0 there, and its samples would be NaN or black. Use a network "
                "that predicts v_prediction or sample, or a schedule whose noisiest level keeps some signal "
                "(rescale_betas_zero_snr=False, or timestep_spacing='leading')"
            )
        return Landing(
            state=float(self.alpha[to] * a - self.sigma[to] * b) / whole,
            output=-self.determinant(to, origin) / whole,
        )

    def loss_factor(self, space: str, weighting: str, gamma: float, origin: int, to: int) -> float:
        """What |z^ - z*|^2 at the landing level is multiplied with: adapters/network/loss.h has the table.

        Raises ValueError where that is 0 or not finite.
        """
        check_word("loss", space, LOSS_SPACES)
        check_word("weighting", weighting, WEIGHTINGS)
        if weighting == "min-snr-gamma" and not (gamma > 0 and math.isfinite(gamma)):
            raise ValueError(f"min-snr-gamma: gamma is {gamma}, expected a positive number")
        alpha, sigma = float(self.alpha[origin]), float(self.sigma[origin])
        whole = self.determinant(to, origin)
        snr, x0 = (alpha / sigma) ** 2, (sigma / whole) ** 2
        if weighting == "uniform":
            factor = {
                "z": 1.0,
                "x0": x0,
                "epsilon": (alpha / whole) ** 2,
                "v": ((alpha**2 + sigma**2) / whole) ** 2,
            }[space]
        else:
            factor = {"snr": snr, "truncated-snr": max(snr, 1.0), "min-snr-gamma": min(snr, gamma)}[weighting]
            if space != "z":
                factor *= x0
        if not (factor > 0 and math.isfinite(factor)):
            raise ValueError(
                f"the loss in {space} with weighting {weighting} has the factor {factor} at level {origin} "
                f"(alpha {alpha:g}, sigma {sigma:g}), expected a positive number; use x0 or v, with uniform or "
                "truncated-snr"
            )
        return factor
