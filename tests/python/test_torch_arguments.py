"""Every public call of mergeplan.torch says of a wrong argument what it is, what was found and what is expected."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch_cases as cases

from mergeplan.torch import MergeDistiller, Snapshots

NAN = float("nan")
x0 = torch.randn(4, 5, dtype=torch.float64)


def make(**options):
    plan = options.pop("plan", None) or cases.make_plan(4, [[1, 2, 3, 4]], cases.schedule(4))
    return MergeDistiller(plan, **{"teacher": cases.Small(), "prediction_type": "sample", "updates": 2, **options})


def begun(**options):
    distiller = make(**options)
    distiller.advance()
    return distiller


def refused(words, call):
    with pytest.raises((ValueError, TypeError), match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options, words", [
    (dict(teacher=3), "teacher is a int, expected a torch.nn.Module"),
    (dict(student="unet"), "student is a str, expected a torch.nn.Module"),
    (dict(schedule="cosine"), "schedule is a str, expected a mergeplan.Schedule"),
    (dict(timesteps="x"), "timesteps: cannot be read as numbers"),
    (dict(timesteps=3), "1 timesteps for 5 levels"),
    (dict(timesteps=[0, NAN, 1, 2, 3]), "timestep 1 is not finite"),
    (dict(updates=True), "updates is True, expected a whole number, 1 or more"),
    (dict(accumulate=0), "accumulate is 0, expected a whole number"),
    (dict(init="x"), "init 'x' is unknown, expected one of child, teacher"),
    (dict(gamma=NAN), "gamma is nan, expected a positive number"),
    (dict(gamma="5"), "gamma is '5', expected a positive number"),
    (dict(gamma=np.True_), "gamma is .*True.*, expected a positive number"),
    (dict(gamma=True), "gamma is True, expected a positive number"),
    (dict(shared=None), "shared is None, expected True or False"),
    (dict(fit_updates=-1), "fit_updates is -1"),
    (dict(held_out=np.zeros((2, 5))), r"held_out are a ndarray, expected a tensor \[rows, ...\]; torch.from_numpy"),
    (dict(held_out=x0[:0]), "held_out have the shape"),
    (dict(held_out=x0.long()), "held_out have the shape .* of floating-point numbers"),
    (dict(held_out=x0 * NAN), "held_out holds numbers that are not finite"),
    (dict(held_out_condition=3), "held_out_condition is a int, expected a dict"),
    (dict(forward=3), "forward is a int, expected a function of .network, z, t, condition"),
    (dict(teacher_forward="f"), "teacher_forward is a str, expected a function"),
    (dict(memory="1 GB", folder="."), "memory .* is '1 GB', expected a whole number, 1 or more"),
    (dict(memory=0, folder="."), "memory .* is 0"),
    (dict(memory=1), "a limit of memory needs a folder"),
    (dict(folder=3), "folder is a int, expected a str"),
    (dict(folder="a\0b"), "folder is .*expected a folder for files.*null"),
    (dict(folder=""), "folder is '', expected a folder for files"),
    (dict(memory=1, folder=__file__), "folder is .*expected a folder for files, or a name .*File exists"),
    (dict(memory=1, folder="/proc/none"), "folder is '/proc/none', expected a folder for files"),
    (dict(seed=-1), "seed is -1"),
], ids=lambda x: str(x)[:30])  # fmt: skip
def test_making_one(options, words):
    refused(words, lambda: make(**options))


@pytest.mark.parametrize("samples, words", [
    (x0.numpy(), "samples are a ndarray"),
    (x0.tolist(), r"samples are a list, expected a tensor \[rows, ...\]; pass the tensor in it"),
    ((x0,), "samples are a tuple"),
    ({"latents": x0}, "samples are a dict"),
    (3, "samples are a int"),
    (x0.bool(), "samples have the shape"),
    (x0.to(torch.complex64), "samples have the shape"),
    (torch.tensor(1.0), "samples have the shape"),
], ids=lambda x: str(x)[:30].replace("\n", " "))  # fmt: skip
def test_samples(samples, words):
    refused(words, lambda: begun().batch(samples))
    refused(words, lambda: begun().batch(like=samples))
    refused(words, lambda: begun().measure(samples, tasks=begun().stage.tasks))
    refused(words.replace("samples", "noise"), lambda: make().sample_teacher(samples))


def test_calls_in_a_loop():
    distiller = begun()
    refused("samples and like=…, expected one of them", lambda: distiller.batch(x0, like=x0))
    refused("generator is a int, expected a torch.Generator", lambda: distiller.batch(x0, generator=3))
    batch = distiller.batch(x0)
    refused("pred is a NoneType, expected the student's output as a tensor", lambda: distiller.loss(None, batch))
    refused("pred is a SimpleNamespace.*; pass its .sample", lambda: distiller.loss(SimpleNamespace(sample=x0), batch))
    refused("batch is a int, expected what batch.. gave", lambda: distiller.loss(x0, 3))
    with pytest.raises(TypeError, match="rows"):
        distiller.batch(x0, rows=2)  # no argument, so the network's
    refused("block is 0, expected a whole number", lambda: distiller.measure(x0, block=0))
    refused("optimizer is a int, expected a torch.optim.Optimizer", lambda: make().advance(3))
    strange = torch.optim.Adam(torch.nn.Linear(2, 2).parameters())
    refused("optimizer is a Adam of none of the student's parameters", lambda: make().advance(strange))
    refused("optimizer is a str", lambda: next(make().rounds("adam")))
    refused("loader is a int, expected something to loop over", lambda: next(next(make().rounds()).over(3)))
    refused("module is a int, expected a torch.nn.Module", lambda: Snapshots(3))


@pytest.mark.parametrize("options, words", [
    (dict(samples=3), "samples is a int, expected a loader"),
    (dict(make_optimizer=3), "make_optimizer is a int, expected a function of .parameters."),
    (dict(make_optimizer=lambda parameters: None), "optimizer is a NoneType"),
    (dict(held_out=None), "held_out are a NoneType"),
    (dict(held_out=x0[0]), "held_out have the shape"),
    (dict(held_out=x0 * NAN), "held_out holds numbers that are not finite"),
    (dict(updates=3), "updates is 3, expected a whole number, 4 or more"),
    (dict(updates="4"), "updates is '4'"),
    (dict(lengths=[100]), "lengths is .100., expected numbers of steps from 2 to 4"),
    (dict(lengths=[1]), "lengths is 1, expected a whole number, 2 or more"),
    (dict(lengths=4), "lengths is a int, expected numbers of steps"),
    (dict(lengths=(n for n in (2, 9))), "lengths is .2, 9., expected numbers of steps from 2 to 4"),
    (dict(probe=0), "probe is 0, expected a positive number"),
    (dict(progress="x"), "progress is a str"),
    (dict(path=3), "path is a int"),
    (dict(path=""), "path is '', expected a file in a folder that is there"),
    (dict(path=b"/no/such/folder/measured.toml"), "path is '/no/such/folder/measured.toml', expected a file in a folder"),
    (dict(path="a\0b"), "expected a file in a folder that is there"),
    (dict(path="/no/such/folder/measured.toml"), "expected a file in a folder that is there"),
], ids=lambda x: str(x)[:30])  # fmt: skip
def test_calibrate_is_refused_before_its_work(options, words):
    def adam(parameters):
        return torch.optim.Adam(parameters, 1e-3)

    calls = []
    distiller = make(forward=lambda net, z, t, c: calls.append(1) or net(z, t))
    given = {"samples": [x0], "make_optimizer": adam, "held_out": x0, "updates": 4, **options}
    refused(words, lambda: distiller.calibrate(given.pop("samples"), given.pop("make_optimizer"), **given))
    assert not calls or "optimizer is a NoneType" in words


def test_a_flow_of_turned_sign_says_how():
    schedule = cases.schedule(4, "flow")
    schedule.prediction_type, schedule.notes = "", ["invert_sigmas: give its negative", "another note"]
    refused("invert_sigmas: give its negative", lambda: make(plan=cases.make_plan(4, [[1, 2, 3, 4]], schedule), prediction_type=None))


def test_samples_of_another_type_than_the_network():
    single = cases.Small(dtype=torch.float32)
    distiller = make(teacher=single)
    distiller.advance()
    words = "the teacher has parameters of torch.float32 and was asked about states of torch.float64 .*pass samples in float32"
    refused(words, lambda: distiller.batch(x0))
    refused(words, lambda: distiller.sample_teacher(x0))
    distiller.batch(x0.float())
    # A network that converts by itself is nobody's business, and other errors are passed on.
    easy = make(teacher=cases.Small(dtype=torch.float32), forward=lambda net, z, t, c: net(z.float(), t).to(z.dtype))
    easy.advance()
    easy.batch(x0)

    def broken(net, z, t, c):
        raise RuntimeError("out of luck")

    unlucky = make(teacher=cases.Small(dtype=torch.float32), forward=broken)
    unlucky.advance()
    with pytest.raises(RuntimeError, match="^out of luck$"):
        unlucky.batch(x0)
    alone = make(teacher=None, student=cases.Small(dtype=torch.float32))
    alone.advance()
    refused("the student has parameters of torch.float32 and was asked about states of torch.float64", lambda: alone.batch(x0))
