"""How a network is called, and what is expected of its answer."""

from __future__ import annotations

import hashlib
from typing import Any, Callable

import torch
from torch import nn

from .distributed import is_sharded


def call_network(network: nn.Module, z: torch.Tensor, t: torch.Tensor, condition: dict) -> torch.Tensor:
    """`network(z, t, **condition)`; of an output with a field or key `sample`, or a tuple, the sample."""
    out = network(z, t, **condition)
    if isinstance(out, torch.Tensor):
        return out
    if isinstance(out, dict) and "sample" in out:
        return out["sample"]
    if isinstance(out, dict) or not (hasattr(out, "sample") or isinstance(out, (tuple, list)) and out):
        keys = f" with the keys {sorted(map(str, out))}" if isinstance(out, dict) else ""
        raise ValueError(
            f"the network gives a {type(out).__name__}{keys}, expected a tensor, a tuple of one, or a field or key sample; "
            "pass forward=lambda net, z, t, c: ... that picks the tensor"
        )
    return out.sample if hasattr(out, "sample") else out[0]


def input_type(module: nn.Module) -> torch.dtype:
    for parameter in module.parameters():
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.float32


def asked(
    forward: Callable[..., torch.Tensor], network: nn.Module, z: torch.Tensor, t: torch.Tensor, condition: dict, who: str
) -> torch.Tensor:
    """`forward(network, z, t, condition)`, looked at. ValueError where the network does not take states of this type."""
    try:
        out = forward(network, z, t, condition)
    except RuntimeError as error:
        own = input_type(network)
        if own == z.dtype or "type" not in str(error):  # torch has many words for it, all with this one
            raise
        raise ValueError(
            f"the {who} has parameters of {own} and was asked about states of {z.dtype} ({str(error).splitlines()[0]}), expected "
            f"one type: states are float64 for samples in float64, else of the student's type; pass samples in float32, or "
            f"convert the {who} (.to({z.dtype}))"
        ) from error
    return checked(out, z, who)


def checked(out: torch.Tensor, z: torch.Tensor, who: str) -> torch.Tensor:
    if not isinstance(out, torch.Tensor):
        raise ValueError(f"the {who}'s output is a {type(out).__name__}, expected a tensor; forward=... must give one")
    if out.shape != z.shape:
        raise ValueError(
            f"the {who}'s output has the shape {tuple(out.shape)} for states {tuple(z.shape)}, expected the same "
            "(a network that also predicts variances: pass forward=lambda net, z, t, c: net(z, t, **c).sample[:, :C])"
        )
    return out


def begins_like(student: nn.Module, teacher: nn.Module, values: bool = True) -> None:
    """ValueError where the student is not the teacher's network, parameter by parameter, and (with `values`) where it
    holds other weights: single steps of the plan are the teacher's, so training begins from them. A student with frozen
    parts is taken for the teacher with adapters, whose names are not the teacher's."""
    own, base = dict(student.named_parameters()), dict(teacher.named_parameters())
    other = {name for name in own.keys() | base.keys() if name not in own or name not in base or own[name].shape != base[name].shape}
    if other and any(not p.requires_grad for p in own.values()):
        return
    if other:
        raise ValueError(
            f"the student is another network than the teacher ({min(other)} is not the same in both) and cannot begin with "
            "its weights: pass fit_updates=N, updates that first fit it to the teacher's single steps"
        )
    if not values:
        return
    for name, parameter in own.items():
        if not _equal(parameter, base[name]):
            raise ValueError(
                f"the student begins with other weights than the teacher ({name} differs) and nothing copies them: "
                "student.load_state_dict(teacher.state_dict()) first, leave the student out (a copy of the teacher), or pass "
                "fit_updates=N, updates that first fit it to the teacher's single steps"
            )


@torch.no_grad()
def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """But for rounding to the other's type."""
    a, b = (t.full_tensor() if hasattr(t, "full_tensor") else t for t in (a, b))
    if a.is_meta or b.is_meta:
        return True
    b = b.to(a.device)
    return torch.equal(a, b.to(a.dtype)) or torch.equal(a.to(b.dtype), b)


_SAMPLED = 32  # entries of every parameter


@torch.no_grad()
def fingerprint(module: nn.Module) -> dict[str, Any]:
    """What tells a network from others for little: the names, shapes and types of its parameters, and some of their values (at
    equal distances, bit by bit, so that the device does not matter; of sharded networks none)."""
    shapes, values = hashlib.sha256(), hashlib.sha256()
    whole = not is_sharded(module)
    count = 0
    for name, parameter in module.named_parameters():
        count += 1
        shapes.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}\n".encode())
        if not whole or parameter.is_meta or parameter.layout != torch.strided or parameter.numel() == 0:
            continue
        step = -(-parameter.numel() // _SAMPLED)
        some = parameter.detach().reshape(-1)[::step].cpu().contiguous()
        values.update(some.view(torch.uint8).numpy().tobytes())
    return {"number": count, "names and shapes": shapes.hexdigest()[:16], "values": values.hexdigest()[:16] if whole else None}
