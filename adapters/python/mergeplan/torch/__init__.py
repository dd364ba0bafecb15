"""Merge plans in PyTorch training loops: README.md beside this file."""

from .distiller import Batch, MergeDistiller, Round, call_network
from .records import MergeRecord
from .snapshots import Snapshots

__all__ = ["Batch", "MergeDistiller", "MergeRecord", "Round", "Snapshots", "call_network"]
