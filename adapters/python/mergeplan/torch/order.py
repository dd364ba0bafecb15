"""In which order the merges of a plan are trained, from which weights, against what: known before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass, field

INITS = ("child", "teacher", "jump", "child-jump")
TEACHER = -1  # in place of a snapshot


@dataclass(frozen=True)
class Link:
    """One frozen map from the level `origin` to the level `to`: weights, and the level where its wrapper lands."""

    origin: int
    to: int
    snapshot: int  # or TEACHER, which takes single steps
    landing: int


@dataclass(frozen=True)
class Task:
    """One merge [first, last]: the jump from level `last`, the wrapper landing at `landing`, against `target`."""

    first: int
    last: int
    landing: int
    target: tuple[Link, ...]

    @property
    def name(self) -> str:
        """For people."""
        return f"merge [{self.first}, {self.last}]"


@dataclass(frozen=True)
class Stage:
    """Merges that one network learns together: those of a round that start from the same weights."""

    round: int  # 0: the fit to single steps
    start: int  # snapshot
    result: int  # snapshot
    tasks: tuple[Task, ...]


@dataclass
class Order:
    """All stages, and the links of the finished student."""

    stages: list[Stage] = field(default_factory=list)
    student: list[Link] = field(default_factory=list)  # from the noisiest block
    keeps_first: bool = False  # snapshot 0 stands for the teacher, so it stays

    def needed_after(self, stage: int) -> set[int]:
        """Snapshots that something still asks for once the stages 0..stage are done (-1: before the first)."""
        ids = {link.snapshot for link in self.student}
        for later in self.stages[stage + 1 :]:
            ids.add(later.start)
            ids.update(link.snapshot for task in later.tasks for link in task.target)
        ids.discard(TEACHER)
        if self.keeps_first:
            ids.add(0)
        made = {0} | {s.result for s in self.stages[: stage + 1]}
        return ids & made


def _range(child) -> tuple[int, int]:
    first = getattr(child, "first", None)
    if first is not None:
        return int(first), int(child.last)
    first, last = child
    return int(first), int(last)


def make_order(plan, init: str, shared: bool = True, fit: bool = False) -> Order:
    """Stages of a plan (its `merges`, `blocks`, `teacher_steps`), the same as those of the C++ executor.

    A start is two choices: the weights (of the single steps, or of the noisiest child) and the level where the wrapper
    lands (the next one, or the end of the jump): adapters/network/README.md has the table.
    """
    if init not in INITS:
        raise ValueError(f"init {init!r} is unknown, expected one of {', '.join(INITS)}")
    steps = int(plan.teacher_steps)
    whole, from_child = init in ("jump", "child-jump"), init in ("child", "child-jump")
    order = Order()
    base = 0  # the weights that stand for the teacher's
    if fit:
        tasks = tuple(Task(t, t, t - 1, (Link(t, t - 1, TEACHER, t - 1),)) for t in range(1, steps + 1))
        order.stages.append(Stage(0, 0, 1, tasks))
        base = 1
    trained: dict[tuple[int, int], Link] = {}

    def link(part: tuple[int, int]) -> Link:
        first, last = part
        return Link(last, last - 1, TEACHER, last - 1) if first == last else trained[part]

    merges = sorted(plan.merges, key=lambda m: (int(m.round), int(m.first)))
    while merges:
        head = merges[0]
        group: list = []
        start = None
        for merge in merges:
            if int(merge.round) != int(head.round) or (group and not shared):
                break
            noisiest = _range(list(merge.children)[-1])
            own = base if not from_child or noisiest[0] == noisiest[1] else trained[noisiest].snapshot
            if start is None:
                start = own
            if own == start:
                group.append(merge)
        result = len(order.stages) + 1
        tasks = []
        for merge in group:
            first, last = int(merge.first), int(merge.last)
            landing = first - 1 if whole else last - 1
            target = tuple(link(_range(child)) for child in reversed(list(merge.children)))
            tasks.append(Task(first, last, landing, target))
        order.stages.append(Stage(int(head.round), start, result, tuple(tasks)))
        for task in tasks:
            trained[task.first, task.last] = Link(task.last, task.first - 1, result, task.landing)
        merges = [merge for merge in merges if merge not in group]
    for block in reversed(list(plan.blocks)):
        order.student.append(link(_range(block)))
    return order
