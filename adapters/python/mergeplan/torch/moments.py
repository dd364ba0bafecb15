"""Moments of latents where they lie: on any device, over any number of processes."""

from __future__ import annotations

import math
import operator

import torch

_CHUNK = 1 << 23  # numbers that are widened to float64 at once


class LatentMoments:
    """Mean, central moments up to the fourth and the covariance of latents, summed on their device in float64.

    For latents that are on a GPU already, or that several processes see a part of each:

        moments = mergeplan.torch.LatentMoments()
        for x, _ in loader:
            moments.update(vae.encode(x.cuda()).latent_dist.mode())
        moments.all_reduce()                                     # where there are several processes
        spectrum = mergeplan.Spectrum.from_moments(moments)

    covariance=False keeps the moments of single dimensions only: d numbers instead of d^2. Batches are centred on their own
    mean and joined by the pairwise formulas of Chan, Golub and LeVeque and of Pebay, so a large common offset costs no digits.
    """

    def __init__(self, covariance: bool = True):
        self.covariance = bool(covariance)
        self.count = 0
        self.shape: tuple[int, ...] | None = None
        self.mean = self.m2 = self.m3 = self.m4 = self.comoment = None

    def update(self, latents: torch.Tensor) -> None:
        """Adds a batch of shape (n, ...), any real dtype. ValueError where a value is not finite, or too large for its fourth
        power, and where the shape of a sample is not that of the first batch; nothing is added then."""
        if not isinstance(latents, torch.Tensor):
            raise TypeError(f"latents: is a {type(latents).__name__}, expected a torch.Tensor")
        if latents.ndim < 2 or latents.numel() == 0 and latents.shape[0] > 0:
            raise ValueError(f"latents: has the shape {tuple(latents.shape)}, expected (n, ...) with at least one number a sample")
        if latents.is_complex():
            raise ValueError(f"latents: is of {latents.dtype}, expected real numbers")
        if latents.layout != torch.strided or latents.is_meta:
            raise ValueError(f"latents: is {latents.layout} on {latents.device}, expected a dense tensor with numbers in it")
        shape = tuple(latents.shape[1:])
        if self.shape is not None and shape != self.shape:
            raise ValueError(f"latents: has samples of shape {shape}, expected {self.shape} as in the first batch")
        if latents.shape[0] == 0:
            return
        rows = latents.detach().flatten(1)
        if rows.device.type == "mps":  # has no float64
            rows = rows.cpu()
        part = LatentMoments(self.covariance)
        for chunk in rows.split(max(1, _CHUNK // rows.shape[1])):
            part._join(*_moments(chunk.double(), self.covariance))
        part._refuse_broken("latents: hold a value that is")
        part.shape = shape
        self._add(part, "latents: with those that were added before they are")

    def merge(self, other: "LatentMoments") -> None:
        """Adds the samples behind `other`, which must be others than those behind this one."""
        if not isinstance(other, LatentMoments):
            raise TypeError(f"other: is a {type(other).__name__}, expected LatentMoments")
        if other is self:
            raise ValueError("other: is this one itself, expected the moments of other samples")
        if other.covariance != self.covariance:
            raise ValueError(f"other: has covariance={other.covariance}, expected {self.covariance} as this one")
        if other.count == 0:
            return
        if self.shape is not None and other.shape != self.shape:
            raise ValueError(f"other: is of samples of shape {other.shape}, expected {self.shape}")
        self._add(other, "other: with the samples of this one they are")

    def all_reduce(self, group=None) -> None:
        """Of every process of a torch.distributed group: afterwards each has the moments of all samples, equal bit by bit.

        A DistributedSampler repeats samples where their number is not a multiple of the processes'; those are then counted twice
        (drop_last=True leaves them out instead). A process without samples takes part."""
        distributed = torch.distributed
        if not (distributed.is_available() and distributed.is_initialized()):
            raise RuntimeError("all_reduce: there is no process group; call torch.distributed.init_process_group first")
        world = distributed.get_world_size(group)
        told = [None] * world
        distributed.all_gather_object(told, (self.count, self.shape, self.covariance), group=group)
        shapes = {shape for count, shape, _ in told if count > 0}
        if len(shapes) > 1 or len({covariance for _, _, covariance in told}) > 1:
            raise ValueError(f"all_reduce: the processes have (samples, shape, covariance) {told}, expected one shape and one kind")
        if not shapes:
            return
        (shape,) = shapes
        d = math.prod(shape)
        device = self._device(group)
        sizes = [d] * 4 + ([d * d] if self.covariance else [])
        mine = torch.zeros(sum(sizes), dtype=torch.float64, device=device)
        if self.count:
            parts = [self.mean, self.m2, self.m3, self.m4] + ([self.comoment] if self.covariance else [])
            mine.copy_(torch.cat([part.to(device).flatten() for part in parts]))
        total = LatentMoments(self.covariance)
        total.shape = shape
        for rank in range(world):  # one after the other: d^2 numbers of all of them need not lie here at once
            if told[rank][0] == 0:
                continue
            sent = mine.clone() if rank == distributed.get_rank(group) else torch.empty_like(mine)
            source = distributed.get_global_rank(group, rank) if group is not None else rank
            distributed.broadcast(sent, src=source, group=group)
            split = list(sent.split(sizes))
            comoment = split[4].view(d, d) if self.covariance else None
            total._join(told[rank][0], split[0], split[1], split[2], split[3], comoment)
        self.load_state_dict(total.state_dict())

    def state_dict(self) -> dict:
        """Everything, for a checkpoint; tensors stay on their device."""
        names = ("covariance", "count", "shape", "mean", "m2", "m3", "m4", "comoment")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: dict) -> None:
        """Takes up what state_dict gave. ValueError where the state is no such thing; nothing is changed then."""
        expected = set(self.state_dict())
        if not isinstance(state, dict) or set(state) != expected:
            found = sorted(map(str, state)) if isinstance(state, dict) else f"a {type(state).__name__}"
            raise ValueError(f"state: has the names {found}, expected {sorted(expected)}")
        covariance, count, shape = _checked_head(state)
        tensors = _checked_tensors(state, covariance, shape)
        self.covariance, self.count, self.shape = covariance, count, shape
        self.mean, self.m2, self.m3, self.m4, self.comoment = tensors

    def __repr__(self) -> str:
        return f"<LatentMoments of {self.count} samples of shape {self.shape}>"

    def _device(self, group) -> torch.device:
        backend = torch.distributed.get_backend(group)
        if backend == "nccl":
            return torch.device("cuda", torch.cuda.current_device())
        return torch.device("cpu")

    def _add(self, part: "LatentMoments", what: str) -> None:
        """Both together, or ValueError and this one as it was."""
        total = LatentMoments(self.covariance)
        total._take(self)
        total._join(part.count, part.mean, part.m2, part.m3, part.m4, part.comoment)
        total._refuse_broken(what)
        total.shape = part.shape
        self._take(total)

    def _take(self, other: "LatentMoments") -> None:
        for name, value in other.state_dict().items():
            setattr(self, name, value)

    def _refuse_broken(self, what: str) -> None:
        for words, sums in (
            ("not finite, or too large to be squared", self.mean + self.m2),
            ("too large for its fourth power", self.m3 + self.m4),
        ):
            broken = ~torch.isfinite(sums)
            if bool(broken.any()):
                raise ValueError(f"{what} {words}, in dimension {int(broken.nonzero()[0])}")

    def _join(self, count, mean, m2, m3, m4, comoment) -> None:
        if self.count == 0:
            self.count, self.mean, self.m2, self.m3, self.m4, self.comoment = count, mean, m2, m3, m4, comoment
            return
        mean, m2, m3, m4 = (x.to(self.mean.device) for x in (mean, m2, m3, m4))
        a, n = self.count, self.count + count
        fa, fb = a / n, count / n
        delta = mean - self.mean
        square = delta * delta
        # Fourth before third before second: each needs the old lower ones. New tensors each time: what a checkpoint or another
        # object holds does not change.
        self.m4 = (
            self.m4
            + m4
            + square * square * (a * fb * (fa * fa - fa * fb + fb * fb))
            + 6 * square * (fa * fa * m2 + fb * fb * self.m2)
            + 4 * delta * (fa * m3 - fb * self.m3)
        )
        self.m3 = self.m3 + m3 + square * delta * (a * fb * (fa - fb)) + 3 * delta * (fa * m2 - fb * self.m2)
        self.m2 = self.m2 + m2 + square * (a * fb)
        self.mean = self.mean + delta * fb
        if comoment is not None:
            comoment = comoment.to(self.mean.device)
            self.comoment = torch.addr(self.comoment + comoment, delta, delta, alpha=a * fb)
        self.count = n


def _checked_head(state: dict) -> tuple[bool, int, tuple[int, ...] | None]:
    """(covariance, count, shape) of a state; shape is None where there are no samples yet."""
    covariance, count, shape = state["covariance"], state["count"], state["shape"]
    if not isinstance(covariance, bool):
        raise ValueError(f"state: covariance is {covariance!r}, expected True or False")
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise ValueError(f"state: count is {count!r}, expected a whole number, 0 or more")
    if count == 0:
        return covariance, 0, None
    try:
        shape = tuple(operator.index(axis) for axis in shape)
    except TypeError:
        shape = ()
    if not shape or min(shape) < 1:
        raise ValueError(f"state: shape is {state['shape']!r}, expected the axes of a sample, each 1 or more")
    return covariance, count, shape


def _checked_tensors(state: dict, covariance: bool, shape: tuple[int, ...] | None) -> list[torch.Tensor | None]:
    """mean, m2, m3, m4, comoment of a state; those that it has not are None."""
    d = math.prod(shape) if shape else 0
    out = []
    for name in ("mean", "m2", "m3", "m4", "comoment"):
        value = state[name]
        if not shape or (name == "comoment" and not covariance):
            if value is not None:
                raise ValueError(f"state: {name} is a {type(value).__name__}, expected None in a state without it")
            out.append(None)
            continue
        axes = (d, d) if name == "comoment" else (d,)
        usable = isinstance(value, torch.Tensor) and value.dtype == torch.float64 and value.shape == axes
        if not usable or value.layout != torch.strided or value.is_meta:
            kind = f"{value.layout} {value.dtype} on {value.device} of shape {tuple(value.shape)}" if isinstance(value, torch.Tensor) else ""
            raise ValueError(f"state: {name} is a {type(value).__name__} {kind}, expected a dense float64 tensor of shape {axes}")
        if not bool(value.isfinite().all()) or (name in ("m2", "m4") and bool((value < 0).any())):
            more = ", none below 0" if name in ("m2", "m4") else ""
            raise ValueError(f"state: {name} holds numbers that cannot be, expected finite ones{more}")
        out.append(value)
    return out


def _moments(x: torch.Tensor, covariance: bool):
    """Of float64 rows (n, d): the first sample is taken off before the mean is, which is exact where it matters."""
    shift = x[0]
    x = x - shift
    mean = x.mean(0)
    x = x - mean
    square = x * x
    comoment = x.T @ x if covariance else None
    m2 = square.sum(0)
    if covariance:  # the same numbers in both
        comoment.diagonal().copy_(m2)
    return len(x), mean + shift, m2, (square * x).sum(0), (square * square).sum(0), comoment
