"""Distilled students in diffusers pipelines: README.md beside this file.

A saved pipeline names this module; import it before `DiffusionPipeline.from_pretrained`.
"""

# A pipeline that is loaded again looks for the base class in the module of the scheduler.
from diffusers.schedulers.scheduling_utils import SchedulerMixin

from .scheduler import MergeScheduler, MergeSchedulerOutput

__all__ = ["MergeScheduler", "MergeSchedulerOutput", "SchedulerMixin"]
