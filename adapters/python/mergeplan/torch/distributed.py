"""What wrappers do to a network and to its tensors: DDP, FSDP2, torch.compile, accelerate."""

from __future__ import annotations

import torch
from torch import nn


def unwrap(module: nn.Module) -> nn.Module:
    """The network inside DistributedDataParallel and torch.compile."""
    while True:
        if isinstance(module, nn.parallel.DistributedDataParallel):
            module = module.module
        elif hasattr(module, "_orig_mod"):
            module = module._orig_mod
        else:
            return module


def rank_and_world() -> tuple[int, int]:
    """(0, 1) where no process group has been made."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _dtensor():
    if not torch.distributed.is_available():
        return ()
    try:
        from torch.distributed.tensor import DTensor
    except ImportError:  # before torch 2.5
        from torch.distributed._tensor import DTensor
    return DTensor


def is_sharded(module: nn.Module) -> bool:
    """Does FSDP2 (fully_shard) hold it in parts?"""
    kind = _dtensor()
    return bool(kind) and any(isinstance(p, kind) for p in module.parameters())


def local(tensor: torch.Tensor) -> torch.Tensor:
    """This process's part of a tensor."""
    kind = _dtensor()
    return tensor.to_local() if kind and isinstance(tensor, kind) else tensor


def reshard(module: nn.Module) -> None:
    """Lets go of the whole parameters that FSDP2 gathered and still holds (the root's stay after a forward pass): they
    would outlive a change of the shards."""
    for part in module.modules():
        if hasattr(part, "reshard") and hasattr(part, "unshard"):
            part.reshard()
