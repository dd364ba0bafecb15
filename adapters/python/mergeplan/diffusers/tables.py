"""alpha and sigma at any timestep of a scheduler config: tables made of betas, and flows."""

from __future__ import annotations

import math
from typing import Any, Mapping

import torch

FLOW_CLASSES = (
    "FlowMatchEulerDiscreteScheduler", "FlowMatchHeunDiscreteScheduler", "FlowMatchLCMScheduler", "LTXEulerAncestralRFScheduler",
)  # fmt: skip
BETA_SCHEDULES = ("linear", "scaled_linear", "squaredcos_cap_v2", "sigmoid")


def is_flow(config: Mapping[str, Any]) -> bool:
    """Flow matching, by its class, by what the network predicts, or by its options (a scheduler that was made in code has
    no class name in its config)."""
    if config.get("_class_name") in FLOW_CLASSES or config.get("prediction_type") in ("flow", "flow_prediction"):
        return True
    return "shift" in config and "beta_schedule" not in config


def make_betas(
    count: int, start: float, end: float, schedule: str, trained: list[float] | None, zero_snr: bool
) -> torch.Tensor:
    """The betas of a config [count], float32 like the library's own."""
    if trained is not None:
        betas = torch.tensor(list(trained), dtype=torch.float32)
        if betas.dim() != 1 or len(betas) != count:
            raise ValueError(f"trained_betas has {len(betas)} entries, expected num_train_timesteps = {count}")
    elif schedule == "linear":
        betas = torch.linspace(start, end, count, dtype=torch.float32)
    elif schedule == "scaled_linear":
        betas = torch.linspace(start**0.5, end**0.5, count, dtype=torch.float32).square()
    elif schedule == "sigmoid":
        betas = torch.sigmoid(torch.linspace(-6, 6, count)) * (end - start) + start
    elif schedule == "squaredcos_cap_v2":

        def bar(k: int) -> float:
            return math.cos((k / count + 0.008) / 1.008 * math.pi / 2) ** 2

        betas = torch.tensor([min(1 - bar(k + 1) / bar(k), 0.999) for k in range(count)], dtype=torch.float32)
    else:
        raise ValueError(f"beta_schedule {schedule!r} is unknown, expected one of {', '.join(BETA_SCHEDULES)}")
    if not zero_snr:
        return betas
    return betas_of(zero_terminal_snr(torch.cumprod(1.0 - betas, 0)))


def zero_terminal_snr(bars: torch.Tensor) -> torch.Tensor:
    """Shifts and stretches the roots of alpha-bar [count] so that the last one is 0 and the first one stays."""
    roots = bars.sqrt()
    first, last = roots[0].clone(), roots[-1].clone()
    return ((roots - last) * (first / (first - last))).square()


def betas_of(bars: torch.Tensor) -> torch.Tensor:
    """The betas [count] whose alpha-bar this is."""
    return 1 - torch.cat([bars[:1], bars[1:] / bars[:-1]])


def shifted_betas(betas: torch.Tensor, scale: float, zero_snr: bool) -> torch.Tensor:
    """Betas [count] whose alpha-bar has its signal-to-noise ratio divided by `scale`, then zero terminal SNR (CogVideoX)."""
    bars = torch.cumprod(1.0 - betas.double(), 0)
    bars = bars / (scale + (1 - scale) * bars)
    return betas_of(zero_terminal_snr(bars) if zero_snr else bars).float()


class BetaTable:
    """The levels of a table: alpha, sigma at whole timesteps as in the table, between them by k-diffusion's sigma (linear,
    as the samplers that take fractions have it)."""

    def __init__(self, betas: torch.Tensor):
        self.alphas_cumprod = torch.cumprod(1.0 - betas, 0)
        self.alpha, self.sigma = self.alphas_cumprod.sqrt(), (1 - self.alphas_cumprod).sqrt()

    def __len__(self) -> int:
        return len(self.alphas_cumprod)

    def at(self, timesteps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """alpha, sigma of every timestep. ValueError outside of the table."""
        last = len(self) - 1
        if timesteps.is_floating_point():  # what is found by a logarithm may miss the ends by rounding
            ends = ((timesteps > last) & (timesteps < last + 1e-3)) | ((timesteps < 0) & (timesteps > -1e-3))
            timesteps = torch.where(ends, timesteps.clamp(0, last), timesteps)
        if timesteps.numel() and not (float(timesteps.min()) >= 0 and float(timesteps.max()) <= last):
            raise ValueError(
                f"timesteps from {float(timesteps.min()):g} to {float(timesteps.max()):g}, expected 0 to {last}"
            )
        alpha, sigma = self.alpha.to(timesteps.device), self.sigma.to(timesteps.device)
        low = timesteps.floor().long() if timesteps.is_floating_point() else timesteps.long()
        if not timesteps.is_floating_point() or bool((low == timesteps).all()):
            return alpha[low], sigma[low]
        high = (low + 1).clamp(max=last)
        share = (timesteps - low).to(alpha.dtype)
        ratio = torch.lerp(sigma[low] / alpha[low], sigma[high] / alpha[high], share)
        between_alpha = (1 + ratio.square()).rsqrt()
        # Beside a level without signal the ratio is infinite: there the angle decides.
        angle = torch.lerp(torch.atan2(sigma[low], alpha[low]), torch.atan2(sigma[high], alpha[high]), share)
        finite = ratio.isfinite()
        whole = low == timesteps
        out_alpha = torch.where(finite, between_alpha, angle.cos())
        out_sigma = torch.where(finite, ratio * between_alpha, angle.sin())
        return torch.where(whole, alpha[low], out_alpha), torch.where(whole, sigma[low], out_sigma)

    def timestep_of(self, ratio: float) -> float:
        """The timestep of a level by its sigma/alpha: the entry itself, else between two by log sigma/alpha, as
        samplers that are given sigmas look them up. ValueError outside of the table by more than 1 %."""
        table = (self.sigma.double() / self.alpha.double()).tolist()
        low, high = table[0], table[-1]
        if not (low * 0.99 <= ratio <= high * 1.01):
            raise ValueError(f"sigma {ratio:g} is outside of the table, expected {low:g} to {high:g}")
        ratio = min(max(ratio, low), high)
        k = 0
        while k < len(table) - 2 and table[k + 1] <= ratio:
            k += 1
        for entry in (k, k + 1):
            if math.isclose(table[entry], ratio, rel_tol=1e-5):
                return float(entry)
        if not math.isfinite(table[k + 1]):
            return k + (math.atan(ratio) - math.atan(table[k])) / (math.pi / 2 - math.atan(table[k]))
        return k + (math.log(ratio) - math.log(table[k])) / (math.log(table[k + 1]) - math.log(table[k]))


class FlowTable:
    """z = (1 - s) x0 + s noise at timestep s * count, or (1 - s) * count where `inverted`."""

    def __init__(self, count: int, inverted: bool = False):
        self._count, self._inverted = count, inverted

    def __len__(self) -> int:
        return self._count

    def at(self, timesteps: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """alpha, sigma of every timestep. ValueError outside of 0..count."""
        sigma = (timesteps.to(torch.float32) if not timesteps.is_floating_point() else timesteps) / self._count
        if sigma.numel() and not (float(sigma.min()) >= 0 and float(sigma.max()) <= 1):
            raise ValueError(
                f"timesteps from {float(timesteps.min()):g} to {float(timesteps.max()):g}, expected 0 to {self._count}"
            )
        return (sigma, 1 - sigma) if self._inverted else (1 - sigma, sigma)

    def timestep_of(self, sigma: float) -> float:
        """The timestep of s."""
        if not 0 < sigma <= 1:
            raise ValueError(f"sigma {sigma:g} is no level of a flow, expected more than 0, up to 1")
        return (1 - sigma if self._inverted else sigma) * self._count
