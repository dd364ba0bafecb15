"""mergeplan: which steps of a diffusion model to merge, in which order, when it is distilled.

    spectrum = mergeplan.Spectrum.from_latents(latents)              # (n, ...) array, iterable or DataLoader
    schedule = mergeplan.Schedule.from_diffusers(scheduler, steps=50)
    plan = mergeplan.plan(spectrum, schedule, lr=0.005, iterations=320)
    plan.rounds, plan.objective, plan.lower_bound

`mergeplan.torch` trains along a plan, `mergeplan.diffusers` samples with what was trained.
"""

from . import _calls, _core
from ._core import LeadingDirections, Merge, Plan, Schedule, Spectrum, __version__

plan = _calls.short(_core.plan, "plan")
strategy = _calls.short(_core.strategy, "strategy")
_calls.shorten(Plan, Schedule, Spectrum)

__all__ = ["LeadingDirections", "Merge", "Plan", "Schedule", "Spectrum", "__version__", "plan", "strategy"]
