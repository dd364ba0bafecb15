"""Merge plans in PyTorch training loops: README.md beside this file."""

from .calibrate import Calibration, calibrate
from .distiller import Batch, MergeDistiller, Round, call_network
from .moments import LatentMoments
from .records import MergeRecord
from .snapshots import Snapshots

__all__ = [
    "Batch",
    "Calibration",
    "LatentMoments",
    "MergeDistiller",
    "MergeRecord",
    "Round",
    "Snapshots",
    "calibrate",
    "call_network",
]
