"""How a network is called, and what is expected of its answer."""

from __future__ import annotations

import torch
from torch import nn


def call_network(network: nn.Module, z: torch.Tensor, t: torch.Tensor, condition: dict) -> torch.Tensor:
    """`network(z, t, **condition)`; of an output with a field `sample`, or a tuple, the sample."""
    out = network(z, t, **condition)
    if isinstance(out, torch.Tensor):
        return out
    return out.sample if hasattr(out, "sample") else out[0]


def input_type(module: nn.Module) -> torch.dtype:
    for parameter in module.parameters():
        if parameter.is_floating_point():
            return parameter.dtype
    return torch.float32


def checked(out: torch.Tensor, z: torch.Tensor, who: str) -> torch.Tensor:
    if out.shape != z.shape:
        raise ValueError(
            f"the {who}'s output has the shape {tuple(out.shape)} for states {tuple(z.shape)}, expected the same "
            "(a network that also predicts variances: pass forward=lambda net, z, t, c: net(z, t, **c).sample[:, :C])"
        )
    return out
