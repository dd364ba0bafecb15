"""MergeDistiller: a merge plan inside a training loop that exists already."""

from __future__ import annotations

import copy
import time
from typing import Any, Callable, Iterator, Sequence

import torch
from torch import nn

from . import checks
from .batches import Batch, Pattern, mix
from .checks import whole
from .distributed import rank_and_world, unwrap
from .evaluation import errors, walk
from .levels import Levels, check_word
from .networks import asked, begins_like, call_network, input_type
from .order import INITS, TEACHER, Order, Stage, Task, make_order
from .programs import Move, Segment, moves_of
from .records import Curve, MergeRecord
from .rounds import Round
from .snapshots import Snapshots
from .state import load_state, state_of

_PATTERNS = 64  # of rows that are kept


class MergeDistiller:
    """Distils `teacher` into `student` by a merge plan, in a loop of your own.

    Every batch holds rows of the merges that are trained now. `batch(x0)` noises the samples to the merges' levels and
    asks teacher and frozen jumps for the targets; the loop does what it always did: calls the student at `(z, t)`,
    takes `loss(pred, batch)`, steps its optimizer.

        distiller = MergeDistiller(plan, teacher=unet, prediction_type="epsilon", updates=2000)
        student = distiller.student
        for round in distiller.rounds(optimizer):
            for x0 in round.over(loader):
                batch = distiller.batch(x0)
                distiller.loss(student(batch.z, batch.t).sample, batch).backward()
                optimizer.step(); optimizer.zero_grad()

    Parameters
    ----------
    plan : Plan
        Merges, blocks, and (unless given here) schedule and start.
    teacher : nn.Module or None
        Called as `teacher(z, t, **condition)`; frozen and put into evaluation mode. None: the student's own first
        weights, which costs no second network (LoRA: the base model).
    student : nn.Module or None
        None: a copy of the teacher. One of your own must hold the teacher's weights already, which nothing copies
        (ValueError where the training begins with others), or be another network, with `fit_updates`. It may be wrapped
        (DDP, torch.compile, accelerate, fully_shard) before or after. Parameters that do not ask for gradients are
        left alone: with adapters only these are trained, kept and saved, and whether the base is the teacher's is not
        looked at.
    prediction_type : "epsilon", "sample", "v_prediction" or "flow"
        What both networks say; from the schedule where it says so.
    updates : int
        Updates per merge group (the plan's `iterations` where it has them).
    accumulate : int
        Calls of `batch` that make one update.
    init : str
        Where a merge starts; the plan's. For networks "child-jump" or "jump" (adapters/network/README.md).
    loss, weighting, gamma
        In what the squared error of a jump is measured: z, x0, epsilon, v; uniform, snr, truncated-snr, min-snr-gamma.
    shared : bool
        One network for all merges of a round that start from the same weights; False: one training after the other.
    fit_updates : int
        Updates that first fit the student to the teacher's single steps, for a student of another kind.
    held_out : Tensor or None
        Samples on which every merge is measured before and after.
    forward : callable
        `forward(network, z, t, condition) -> Tensor`, for networks that are called in another way. The same for both;
        `teacher_forward` for the teacher alone (guidance, for example).
    memory, folder
        Bytes that frozen weights may take; others lie in files of this folder.
    seed : int
        Of all noise. Rows are named by seed, stage, batch and process, so that a run that is taken up draws the same.
    """

    def __init__(
        self,
        plan,
        teacher: nn.Module | None = None,
        student: nn.Module | None = None,
        *,
        prediction_type: str | None = None,
        schedule=None,
        timesteps: Sequence[float] | None = None,
        updates: int | None = None,
        accumulate: int = 1,
        init: str | None = None,
        loss: str = "z",
        weighting: str = "uniform",
        gamma: float = 5.0,
        shared: bool = True,
        fit_updates: int = 0,
        held_out: torch.Tensor | None = None,
        held_out_condition: dict | None = None,
        forward: Callable[..., torch.Tensor] | None = None,
        teacher_forward: Callable[..., torch.Tensor] | None = None,
        memory: int | None = None,
        folder: str | None = None,
        seed: int = 0,
    ):
        if teacher is None and student is None:
            raise ValueError("neither teacher nor student is given, expected one of them or both")
        for what, module in (("teacher", teacher), ("student", student)):
            if module is not None:
                checks.network(what, module)
        if student is None:
            student = copy.deepcopy(unwrap(teacher)).requires_grad_(True)
        if not all(hasattr(plan, part) for part in ("merges", "blocks", "teacher_steps")):
            raise ValueError(f"plan is a {type(plan).__name__}, expected a Plan (Plan.from_toml(path) reads a file)")
        self.plan = plan
        schedule = schedule if schedule is not None else getattr(plan, "schedule", None)
        if schedule is None:
            raise ValueError("the plan holds no schedule: pass schedule=Schedule.from_diffusers(...)")
        self.levels = Levels(schedule, prediction_type, timesteps)
        if self.levels.steps != int(plan.teacher_steps):
            raise ValueError(
                f"the plan has {plan.teacher_steps} teacher steps, the schedule {self.levels.steps}, expected the same"
            )
        if self.levels.data_scale != 1 and (self.levels.prediction != "sample" or forward is None):
            raise ValueError(
                "the schedule is that of a network with EDM preconditioning: pass forward=… that gives the preconditioned "
                "x0 estimate for states in their own units, and prediction_type='sample'"
            )
        if init is not None:
            check_word("init", init, INITS)
        self.init = init or getattr(plan, "init", None) or "child-jump"
        if getattr(plan, "init", None) in INITS and self.init != plan.init:
            raise ValueError(
                f"the plan was made for the start {plan.init!r}, not {self.init!r}: a plan holds for its own start only"
            )
        updates = updates if updates is not None else getattr(plan, "iterations", None)
        updates = whole("updates", updates, 1)
        accumulate = whole("accumulate", accumulate, 1)
        fit_updates = whole("fit_updates", fit_updates, 0)
        seed = whole("seed", seed, 0)
        gamma = checks.positive("gamma", gamma)
        if not isinstance(shared, bool):
            raise TypeError(f"shared is {shared!r}, expected True or False")
        for what, call in (("forward", forward), ("teacher_forward", teacher_forward)):
            if call is not None:
                checks.function(what, call, "of (network, z, t, condition)")
        if held_out is not None:
            checks.finite("held_out", checks.tensor("held_out", held_out))
        self.student, self.teacher = student, teacher
        self.network = unwrap(student)
        if teacher is not None:
            if unwrap(teacher) is self.network:
                raise ValueError("teacher and student are one network; leave the teacher out, or pass a copy")
            if not fit_updates:
                begins_like(self.network, unwrap(teacher), values=False)
            unwrap(teacher).eval().requires_grad_(False)
        if not any(p.requires_grad for p in self.network.parameters()):
            raise ValueError("no parameter of the student asks for gradients: there is nothing to train")
        self.forward = forward or call_network
        self._teacher_forward = teacher_forward or self.forward
        self._updates, self._accumulate, self._fit_updates = updates, accumulate, fit_updates
        self._loss = (loss, weighting, gamma)
        self._shared, self.seed = shared, seed
        self._schedule, self._timesteps, self._gamma = schedule, timesteps, gamma
        self.order: Order = make_order(plan, self.init, shared, fit_updates > 0)
        self.order.keeps_first = teacher is None
        if teacher is None and fit_updates:
            raise ValueError("fit_updates is given without a teacher: there is nothing else that the student could be fitted to")
        # What does not fit is found here, not in the last round.
        for stage in self.order.stages:
            for task in stage.tasks:
                self._factor(stage, task)
                for _, origin, to in moves_of(task.target):
                    self.levels.landing(origin, to)
        self.snapshots = Snapshots(self.network, memory, folder)
        self.held_out, self._held_out_condition = held_out, checks.conditions("held_out_condition", held_out_condition)
        self.records: list[MergeRecord] = []
        self.stage_index = -1  # before the first
        self.batches = self._rows = 0
        self._curve = Curve(accumulate)
        self._initial: list[float] = []
        self.moves: list[list[Move]] = []
        self._patterns: dict[Any, tuple[Pattern, list[Segment]]] = {}
        self._last: Pattern | None = None
        self._seconds, self._since = 0.0, time.monotonic()
        self.teacher_calls = 0

    # Where the training stands.

    @property
    def stage(self) -> Stage:
        """What is trained now."""
        if not 0 <= self.stage_index < len(self.order.stages):
            raise RuntimeError(
                "nothing is being trained: " + ("all merges are" if self.finished else "call advance(), or loop over rounds()")
            )
        return self.order.stages[self.stage_index]

    @property
    def finished(self) -> bool:
        """All merges trained."""
        return self.stage_index >= len(self.order.stages)

    def updates_of(self, stage: Stage) -> int:
        """Updates of a stage."""
        return self._fit_updates if stage.round == 0 else self._updates

    @property
    def updates(self) -> int:
        """Updates of this stage that are done."""
        return self.batches // self._accumulate

    @property
    def updates_left(self) -> int:
        """Updates of this stage that are to do."""
        return 0 if self.finished else self.updates_of(self.stage) - self.updates

    @property
    def updates_total(self) -> int:
        """Of all stages."""
        return sum(self.updates_of(stage) for stage in self.order.stages)

    @property
    def stage_done(self) -> bool:
        """All updates of this stage made."""
        return self.finished or self.batches >= self.updates_of(self.stage) * self._accumulate

    def rounds(self, *optimizers) -> Iterator[Round]:
        """The stages that are left. Each begins with the student at its start, and the optimizers' moments dropped."""
        while self.advance(*optimizers):
            here = self.stage_index
            yield Round(self)
            if self.stage_index == here and not self.stage_done:
                raise RuntimeError(
                    f"the loop left stage {here + 1} of {len(self.order.stages)} with {self.updates_left} updates to do; "
                    "loop over the round until it is done"
                )

    def advance(self, *optimizers) -> bool:
        """For loops that are not yours (Lightning): call it before every batch. Goes on to the next stage where this
        one is done; False when all are."""
        checks.optimizers(optimizers, self.network)
        if self.stage_index >= 0 and not self.stage_done:
            self._prepare()
            return True
        if self.finished:
            return False
        if self.stage_index < 0:
            self.check_start()
            self.snapshots.put(0)
        else:
            self._finish_stage()
        self.stage_index += 1
        self.batches = self._rows = 0
        self.moves, self._patterns = [], {}
        if self.finished:
            return False
        self.snapshots.load(self.stage.start)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
            optimizer.state.clear()
        self._curve = Curve(self._accumulate)
        self._prepare()
        self._initial = self._measure_tasks()
        self._seconds, self._since = 0.0, time.monotonic()
        return True

    def check_start(self) -> None:
        """ValueError where the student should hold the teacher's weights and does not."""
        if self.teacher is not None and not self._fit_updates:
            begins_like(self.network, unwrap(self.teacher))

    def _prepare(self) -> None:
        if not self.moves:
            self.moves = [moves_of(task.target) for task in self.stage.tasks]

    def _finish_stage(self) -> None:
        stage = self.stage
        seconds = self._seconds + time.monotonic() - self._since
        final = self._measure_tasks()
        curve = self._curve.values()
        for k, task in enumerate(stage.tasks if stage.round else ()):
            record = MergeRecord(task.first, task.last, stage.round, task.landing, self.updates, seconds / len(stage.tasks))
            record.curve = curve
            if final:
                record.initial_loss, record.final_loss = self._initial[k], final[k]
            self.records.append(record)
        self.snapshots.put(stage.result)
        self.snapshots.keep_only(self.order.needed_after(self.stage_index))

    # Batches.

    def batch(
        self,
        x0: torch.Tensor | None = None,
        generator: torch.Generator | None = None,
        *,
        like: torch.Tensor | None = None,
        **condition,
    ) -> Batch:
        """The next batch: `z`, `t`, `target`, `weight`, rows in the order of `x0`.

        `x0`: [B, ..], clean samples in the network's own units. Left out, inputs are rollouts of the teacher (`like`
        says shape, type and device of B samples; no data is needed). Conditions (`encoder_hidden_states=…`) go to
        teacher and frozen jumps; give the student the same. `generator` replaces the distiller's own noise.

        Raises RuntimeError when the stage has no updates left, and for targets that are not finite (on an accelerator,
        where looking costs a wait, that is found with the losses, every 256 updates and when a stage ends).
        """
        if self.stage_done:
            raise RuntimeError("this stage has no updates left; call advance(), or loop over rounds()")
        self._prepare()
        samples = x0 if x0 is not None else like
        if samples is None:
            raise ValueError("batch() needs samples, or like=… for rollouts of the teacher")
        if x0 is not None and like is not None:
            raise ValueError("batch() is given samples and like=…, expected one of them: rollouts need no samples")
        checks.tensor("samples", samples)
        if generator is not None and not isinstance(generator, torch.Generator):
            raise TypeError(f"generator is a {type(generator).__name__}, expected a torch.Generator")
        kind = torch.float64 if samples.dtype == torch.float64 else torch.float32
        shell = samples.to(kind)
        pattern, segments = self._pattern(shell)
        noise = self._noise(shell, generator)
        if x0 is not None:
            z = torch.addcmul(noise * pattern.sigma, shell, pattern.alpha)
        else:
            T = self.levels.steps
            size = (self.levels.alpha[T] ** 2 + self.levels.sigma[T] ** 2) ** 0.5
            program = pattern.to_inputs(self, segments, shell)
            z = program.run(noise * size, self.call, condition)
            self.teacher_calls += program.teacher_calls
        end = pattern.target.run(z, self.call, condition)
        self.teacher_calls += pattern.target.teacher_calls
        at = pattern.rows
        target = (end - z * at.state) / at.output
        if target.device.type == "cpu" and not bool(target.isfinite().all()):
            self._not_finite(samples, z)
        self.batches += 1
        self._rows += len(samples)
        self._last = pattern
        seen = z if at.scale is None else z * at.scale
        return Batch(seen.to(samples.dtype), at.time, target, pattern.weight)

    def loss(self, pred: torch.Tensor, batch: Sequence[torch.Tensor], reduction: str = "mean") -> torch.Tensor:
        """The loss of a batch: sum over merges of the mean over their rows of weight * (pred - target)^2; "mean" over
        the dimensions of a sample, as training scripts have it, or their "sum", as the C++ runtime has it."""
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise TypeError(f"batch is a {type(batch).__name__}, expected what batch() gave")
        target, weight = batch[-2], batch[-1]
        if not isinstance(pred, torch.Tensor):
            do = "; pass its .sample" if hasattr(pred, "sample") else ""
            raise TypeError(f"pred is a {type(pred).__name__}, expected the student's output as a tensor{do}")
        if pred.shape != target.shape:
            raise ValueError(
                f"the student's output has the shape {tuple(pred.shape)}, expected {tuple(target.shape)}"
            )
        error = (pred.to(target.dtype) - target).square() * weight
        if reduction == "mean":
            value = error.mean()
        elif reduction == "sum":
            value = error.flatten(1).sum(1).mean()
        else:
            raise ValueError(f"reduction {reduction!r} is unknown, expected 'mean' or 'sum'")
        if value.device.type == "cpu" and not bool(value.detach().isfinite()):
            self._curve.not_finite(value.detach(), self.updates)
        self._curve.add(value.detach())
        return value

    def _not_finite(self, samples: torch.Tensor, z: torch.Tensor) -> None:
        rows = samples.isfinite().flatten(1).all(1)
        if not bool(rows.all()):
            raise ValueError(f"row {int(rows.int().argmin())} of the samples holds numbers that are not finite")
        raise RuntimeError(
            f"stage {self.stage_index + 1}, update {self.updates + 1}: the target is not finite for finite samples: "
            "teacher or frozen jumps overflow (in half precision: use bfloat16 or float32)"
        )

    def _noise(self, like: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
        if generator is None:
            generator = torch.Generator(like.device)
            rank, _ = rank_and_world()
            generator.manual_seed(mix(self.seed, self.stage_index, self.batches, rank))
        # A generator of the CPU serves samples on any device.
        device = generator.device
        return torch.randn(like.shape, generator=generator, device=device, dtype=like.dtype).to(like.device)

    def _pattern(self, like: torch.Tensor) -> tuple[Pattern, list[Segment]]:
        """Rows are shared out evenly among the tasks, side by side; over many batches every task gets the same."""
        count, tasks = len(like), len(self.stage.tasks)
        rank, world = rank_and_world()
        if count < tasks:
            turn = (self._rows * world + rank * count) % tasks
        else:
            turn = (self.batches * world + rank) % tasks
        key = (turn, count, like.dim(), like.device, like.dtype)
        if key not in self._patterns:
            segments: list[Segment] = []
            parts = min(count, tasks)
            for p in range(parts):
                begin, end = p * count // parts, (p + 1) * count // parts
                segments.append(((turn + p) % tasks, begin, end))
            if len(self._patterns) >= _PATTERNS:
                self._patterns.pop(next(iter(self._patterns)))
            self._patterns[key] = (Pattern(self, segments, like), segments)
        return self._patterns[key]

    def _factor(self, stage: Stage, task: Task) -> float:
        space, weighting, gamma = ("v", "uniform", 5.0) if stage.round == 0 else self._loss
        return self.levels.loss_factor(space, weighting, gamma, task.last, task.landing)

    def weight_of(self, stage: Stage, k: int) -> float:
        """Of the squared error of the network's output: with it the loss is the sum over tasks of their mean error in
        the state where the wrapper lands (of a fit the mean over all levels)."""
        task = stage.tasks[k]
        landing = self.levels.landing(task.last, task.landing)
        return self._factor(stage, task) * landing.output**2 * (len(stage.tasks) if stage.round else 1)

    def call(self, network: int, z: torch.Tensor, t: torch.Tensor, condition: dict) -> torch.Tensor:
        dtype = input_type(self.network) if z.dtype == torch.float32 else z.dtype
        z = z.to(dtype)
        if network == TEACHER and self.teacher is not None:
            with torch.no_grad():
                return asked(self._teacher_forward, self.teacher, z, t, condition, "teacher")
        number = 0 if network == TEACHER else network
        forward = self._teacher_forward if network == TEACHER else self.forward
        with self.snapshots.used(number):
            return asked(forward, self.inner(), z, t, condition, "student")

    def inner(self) -> nn.Module:
        # A frozen jump goes past DDP, whose forward pass belongs to training.
        student = self.student
        return student.module if isinstance(student, nn.parallel.DistributedDataParallel) else student

    # Measuring.

    @torch.no_grad()
    def measure(self, x0: torch.Tensor, tasks: Sequence[Task] | None = None, block: int = 64, **condition) -> list[float]:
        """E |student(z) - target|^2 of the tasks of this stage on fixed noise: summed over the dimensions of a sample,
        in the schedule's coordinates, without weights (the C++ runtime's `own`)."""
        chosen = self.stage.tasks if tasks is None else tasks
        return [float(self.errors(x0, task, block, **condition).mean()) for task in chosen]

    @torch.no_grad()
    def errors(self, x0: torch.Tensor, task: Task, block: int = 64, **condition) -> torch.Tensor:
        """|student(z) - target|^2 of every row of `x0`, [rows] in float64 on the CPU, as `measure` has it."""
        return errors(self, checks.tensor("samples", x0), task, whole("block", block, 1), condition)

    def _measure_tasks(self) -> list[float]:
        if self.held_out is None or self.stage.round == 0:
            return []
        return self.measure(self.held_out, **self._held_out_condition)

    @torch.no_grad()
    def sample(self, noise: torch.Tensor, **condition) -> torch.Tensor:
        """What the student makes of noise [B, ..] of unit variance, jump by jump, in the network's own units."""
        if not self.finished:
            raise RuntimeError("sample() needs the finished student; loop over rounds() first")
        checks.tensor("noise", noise)
        return walk(self, noise, [m for link in self.order.student for m in moves_of([link])], condition)

    @torch.no_grad()
    def sample_teacher(self, noise: torch.Tensor, **condition) -> torch.Tensor:
        """The same of the teacher, step by step."""
        checks.tensor("noise", noise)
        return walk(self, noise, [(TEACHER, t, t - 1) for t in range(self.levels.steps, 0, -1)], condition)

    def load_jump(self, k: int) -> int:
        """Gives the student the weights of its k-th jump, from the noisiest, and returns the level where that begins:
        for students whose jumps are several networks (`one_network` is False), to save each."""
        if not self.finished:
            raise RuntimeError("the jumps are not trained yet; loop over rounds() first")
        if not 0 <= k < len(self.order.student):
            raise IndexError(f"jump {k}: the student makes {len(self.order.student)} jumps, numbered from 0")
        link = self.order.student[k]
        if link.snapshot == TEACHER:
            raise RuntimeError(f"jump {k} is a single step of the teacher, which has its own weights")
        self.snapshots.load(link.snapshot)
        return link.origin

    @property
    def one_network(self) -> bool:
        """Are all jumps of the student one network's? Then a pipeline can run it."""
        return len({link.snapshot for link in self.order.student} - {TEACHER}) <= 1

    def calibrate(self, samples, make_optimizer, **options):
        """Short pilot merges that measure what the linear model cannot know: see `calibrate` beside this class. Before
        the training begins; the student is as it was afterwards."""
        from .calibrate import calibrate

        return calibrate(self, samples, make_optimizer, **options)

    # Saving.

    def state_dict(self) -> dict[str, Any]:
        """Where the training stands: position, frozen weights, records. The student's own weights and the optimizer
        are the loop's to save, as ever. Loaded into a distiller made in the same way, the training goes on exactly."""
        return state_of(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes a training up. ValueError where the state is of another question or another teacher (whose parameters are
        known by names, shapes and some of their values), or damaged; nothing is changed then."""
        load_state(self, state)

    def __repr__(self) -> str:
        where = "finished" if self.finished else f"stage {self.stage_index + 1} of {len(self.order.stages)}"
        return f"MergeDistiller(T={self.levels.steps}, merges={len(list(self.plan.merges))}, {where})"
