"""Plans, schedules and small networks for the tests of the torch glue, and a slow twin of its targets."""

import math
import random
from types import SimpleNamespace

import torch

PREDICTIONS = ("epsilon", "sample", "v_prediction", "flow")
INITS = ("child", "teacher", "jump", "child-jump")


def schedule(steps, kind="cosine"):
    """A schedule as mergeplan.Schedule has it: coordinates of plans, T+1 entries, index 0 clean."""
    nan = [float("nan")]
    if kind == "flow":
        s = [t / steps for t in range(steps + 1)]
        n = [math.hypot(1 - x, x) for x in s]
        return SimpleNamespace(
            alpha=[(1 - x) / m for x, m in zip(s, n)],
            sigma=[x / m for x, m in zip(s, n)],
            level_scale=n,
            data_scale=1.0,
            timesteps=nan + [1000 * x for x in s[1:]],
            prediction_type="flow_prediction",
        )
    angles = [math.pi / 2 * 0.97 * t / steps for t in range(steps + 1)]
    return SimpleNamespace(
        alpha=[math.cos(a) for a in angles],
        sigma=[math.sin(a) for a in angles],
        level_scale=[1.0] * (steps + 1),
        data_scale=1.0,
        timesteps=nan + [float(round(999 * t / steps)) for t in range(1, steps + 1)],
        prediction_type="",
    )


def make_plan(steps, trees, schedule, init="child-jump"):
    """`trees`: one nested list a block, from the clean end; a number is a step, a list a merge of its entries."""
    merges = []

    def visit(node):
        if isinstance(node, int):
            return (node, node), 0
        children = [visit(child) for child in node]
        first, last = children[0][0][0], children[-1][0][1]
        level = 1 + max(r for _, r in children)
        merges.append(SimpleNamespace(first=first, last=last, round=level, children=[list(c) for c, _ in children]))
        return (first, last), level

    blocks = [list(visit(tree)[0]) for tree in trees]
    return SimpleNamespace(teacher_steps=steps, merges=merges, blocks=blocks, init=init, schedule=schedule)


def boot(steps):
    """From the noisy end, one step at a time."""
    tree = steps
    for t in range(steps - 1, 0, -1):
        tree = [t, tree]
    return tree


def progressive(steps):
    """By halving."""
    nodes = list(range(1, steps + 1))
    while len(nodes) > 1:
        nodes = [nodes[k : k + 2] if k + 1 < len(nodes) else nodes[k] for k in range(0, len(nodes), 2)]
    return nodes[0]


def random_tree(first, last, rng):
    """Any tree over first..last."""
    if first == last:
        return first
    count = rng.randint(2, min(4, last - first + 1))
    cuts = sorted(rng.sample(range(first + 1, last + 1), count - 1))
    return [random_tree(a, b - 1, rng) for a, b in zip([first, *cuts], [*cuts, last + 1])]


class Small(torch.nn.Module):
    """A network of vectors that depends on its time."""

    def __init__(self, size=5, hidden=16, dtype=torch.float64, dropout=0.0, condition=0):
        super().__init__()
        self.a = torch.nn.Linear(size + 1 + condition, hidden, dtype=dtype)
        self.b = torch.nn.Linear(hidden, size, dtype=dtype)
        self.drop = torch.nn.Dropout(dropout)

    def forward(self, z, t, extra=None):
        parts = [z, (t[:, None] / 1000).to(z.dtype)] + ([] if extra is None else [extra])
        return self.b(self.drop(torch.tanh(self.a(torch.cat(parts, 1)))))


class Twin:
    """Jumps one row at a time, by x0 and noise: no formulas shared with the package."""

    def __init__(self, schedule, prediction):
        self.s, self.prediction = schedule, prediction

    def say(self, net, z, level, **condition):
        """(x0, eps) of one state [1, d] in the schedule's coordinates."""
        scale = self.s.level_scale[level]
        out = net(z * scale, torch.tensor([self.s.timesteps[level]]), **condition)
        a, s = self.s.alpha[level], self.s.sigma[level]
        if self.prediction == "epsilon":
            return (z - s * out) / a, out
        if self.prediction == "sample":
            return out, (z - a * out) / s
        if self.prediction == "v_prediction":
            x0 = (a * z - s * out) / (a * a + s * s)
            return x0, (z - a * x0) / s
        # flow: out = eps - x0 and z = a x0 + s eps
        x0 = (z - s * out) / (a + s)
        return x0, x0 + out

    def jump(self, net, z, level, to, **condition):
        x0, eps = self.say(net, z, level, **condition)
        return self.s.alpha[to] * x0 + self.s.sigma[to] * eps

    def output_for(self, z, level, to, end):
        """What a network would have to say at z for its wrapper to land at `end`: a straight line through two tries."""
        zero, one = torch.zeros_like(z), torch.ones_like(z)
        at_zero = self.jump(lambda *_: zero, z, level, to)
        at_one = self.jump(lambda *_: one, z, level, to)
        return (end - at_zero) / (at_one - at_zero)


def train(distiller, student, data, rate=1e-2, batch=12, stop=None, optimizer=None, sgd=False):
    """A plain loop. `stop`: batches after which it ends early."""
    make = torch.optim.SGD if sgd else torch.optim.Adam
    optimizer = optimizer or make([p for p in student.parameters() if p.requires_grad], rate)
    drawn = 0
    for round in distiller.rounds(optimizer):
        for _ in round:
            if stop is not None and drawn >= stop:
                return optimizer
            drawn += 1
            begin = (distiller.batches * batch) % (len(data) - batch + 1)
            got = distiller.batch(data[begin : begin + batch])
            distiller.loss(student(got.z, got.t), got).backward()
            optimizer.step()
            optimizer.zero_grad()
    return optimizer


def seeded_random(seed):
    """random.Random, so that a failing case can be run again."""
    return random.Random(seed)
