"""Every public call says of a wrong argument what it is, what was found and what is expected, on one line."""

import errno
import pathlib
import subprocess
import sys

import mergeplan
import numpy as np
import pytest
from mergeplan import Plan, Schedule, Spectrum

NAN = float("nan")
DDIM = {"_class_name": "DDIMScheduler", "num_train_timesteps": 1000}
data = np.random.default_rng(0).normal(size=(50, 2, 3))


def refused(kind, words, call):
    with pytest.raises(kind, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options, kind, words", [
    (dict(threads=-1), ValueError, r"threads: is -1, expected 0 \(all there are\) or more"),
    (dict(threads=1.5), TypeError, r"threads: is a float \(1.5\), expected a whole number"),
    (dict(threads=10**12), ValueError, "threads: is 1000000000000, expected a whole number from"),
    (dict(teacher_steps="8"), TypeError, r"teacher_steps: is a str \('8'\), expected a whole number"),
    (dict(threads=np.True_), TypeError, "threads: is a (numpy.)?bool_?.*, expected a whole number"),
    (dict(gap=np.False_), TypeError, "gap: is a (numpy.)?bool_?.*, expected a number"),
    (dict(train_time=np.True_), TypeError, "train_time: is a .*, expected a number"),
    (dict(foo=1), TypeError, "^plan.. has no argument 'foo'; expected one of spectrum, schedule, teacher_steps, .*progress$"),
    (dict(iteration=1), TypeError, "^plan.. has no argument 'iteration'; did you mean 'iterations'.$"),
    (dict(teacher_steps=True), TypeError, r"teacher_steps: is a bool \(True\)"),
    (dict(teacher_steps=None), ValueError, "teacher_steps .* is missing, expected a number"),
    (dict(teacher_steps=0), ValueError, "teacher steps are 0, expected a number from 1"),
    (dict(student_steps=None), TypeError, "student_steps: is None, expected a whole number"),
    (dict(student_steps=2.0), TypeError, r"student_steps: is a float \(2.0\)"),
    (dict(train_time="1"), TypeError, r"train_time: is a str \('1'\), expected a number"),
    (dict(train_time=NAN), ValueError, "train_time is nan, expected a positive, finite number"),
    (dict(train_time=None, lr=NAN, iterations=3), ValueError, "lr is nan, expected a positive, finite number"),
    (dict(train_time=None, lr=0.1, iterations=2.5), TypeError, "iterations: is a float"),
    (dict(train_time=None, lr=0.1, iterations=2**70), ValueError,
     "iterations: is 1180591620717411303424, expected a whole number from 1 to 9223372036854775807"),
    (dict(train_time=None, lr=0.1, iterations=0), ValueError, "iterations: is 0, expected a whole number from 1 to 9"),
    (dict(train_time=None, lr=0.1, iterations=-3), ValueError, "iterations: is -3, expected a whole number from 1 to 9"),
    (dict(train_time=None, lr=0.1, iterations=2, batch=0), ValueError, "batch: is 0, expected a whole number, 1 or more"),
    (dict(batch=-5), ValueError, "batch: is -5, expected a whole number, 1 or more"),
    (dict(spectrum=["1", "2"]), ValueError, "cannot be read as numbers .<U1 values, which are text"),
    (dict(spectrum=[True]), ValueError, "cannot be read as numbers .bool values, which are no numbers but True and False"),
    (dict(train_time=None, lr=0.1, iterations=2, feature_norm=0), ValueError, "feature_norm is 0"),
    (dict(gap=None), TypeError, "gap: is None, expected a number"),
    (dict(time_limit=NAN), ValueError, "time_limit is nan"),
    (dict(time_limit="3 s"), TypeError, "time_limit: is a str"),
    (dict(init=3), TypeError, r"init: is a int \(3\), expected a str"),
    (dict(space="trees"), ValueError, 'space: unknown word "trees", expected one of nary, binary'),
    (dict(weights=[0, 0]), ValueError, "weights: are all 0, expected one for every variance and at least one above 0"),
    (dict(weights=[]), ValueError, "weights: are none"),
    (dict(weights=[NAN, 1]), ValueError, "weight 1 is nan, expected a finite number"),
    (dict(weights=[1, 1, 1]), ValueError, "weights: 3 given for 2 variances"),
    (dict(weights=np.array([1, 1j])), ValueError, "weights: cannot be read as numbers .*complex"),
    (dict(max_merges=-1), ValueError, "max_merges: is -1, expected 0"),
    (dict(max_rounds=-2), ValueError, "max_rounds: is -2, expected 0"),
    (dict(max_rounds="2"), TypeError, "max_rounds: is a str"),
    (dict(spectrum=None), ValueError, "spectrum: cannot be read as numbers .None."),
    (dict(spectrum=[]), ValueError, "variances: there are none, expected one or more"),
    (dict(spectrum=np.array([1 + 1j])), ValueError, "complex"),
    (dict(spectrum=pathlib.Path("x.toml")), ValueError, "is the path \"x.toml\", expected a Spectrum or numbers"),
    (dict(schedule=None), ValueError, "scheduler: is a NoneType, expected a diffusers scheduler"),
    (dict(schedule=[1, 2]), ValueError, "scheduler: is a list"),
    (dict(progress=1.0), TypeError, "progress: is a float"),
    (dict(progress=3), TypeError, "progress: is a int, expected True, a class like tqdm.tqdm, or a function"),
], ids=lambda x: str(x)[:40])  # fmt: skip
def test_plan(options, kind, words):
    given = {"spectrum": [0.5, 1.5], "schedule": "cosine", "teacher_steps": 8, "train_time": 1.0, **options}
    refused(kind, words, lambda: mergeplan.plan(given.pop("spectrum"), given.pop("schedule"), **given))


@pytest.mark.parametrize("options, kind, words", [
    (dict(name="best"), ValueError, 'strategy: unknown word "best", expected vanilla'),
    (dict(name=None), TypeError, "name: is None, expected a str"),
    (dict(student_steps=9), ValueError, "9 student steps from 8 teacher steps: expected 1 <="),
    (dict(teacher_steps=7), ValueError, "teacher_steps: is 7, but the schedule has 8"),
    (dict(feature_norm=2.0), ValueError, "no effect without a spectrum"),
    (dict(spectrum=[1.0], lr=0.1, iterations=0), ValueError, "iterations: is 0, expected a whole number from 1 to 9"),
    (dict(gap=1), TypeError, "^strategy.. has no argument 'gap'; expected one of name, schedule"),
    (dict(train_time=1.0), ValueError, "no effect without a spectrum"),
    (dict(spectrum=[1.0]), ValueError, "no budget"),
], ids=lambda x: str(x)[:40])  # fmt: skip
def test_strategy(options, kind, words):
    given = {"name": "boot", "schedule": Schedule("cosine", 8), **options}
    refused(kind, words, lambda: mergeplan.strategy(given.pop("name"), given.pop("schedule"), **given))


def test_schedules(tmp_path):
    refused(TypeError, "spec: is a int .5., expected a str or a path", lambda: Schedule(5, 3))
    refused(TypeError, "steps: is a float", lambda: Schedule("cosine", 2.5))
    refused(ValueError, "is missing, expected a number", lambda: Schedule("cosine"))
    refused(TypeError, "steps: is None, expected a whole number", lambda: Schedule.from_diffusers(DDIM, None))
    refused(ValueError, "scheduler: is a NoneType", lambda: Schedule.from_diffusers(None, 3))
    refused(ValueError, "alpha: cannot be read as numbers", lambda: Schedule.from_arrays("ab", [1]))
    for times, words in [([0, NAN], "timesteps: that of level 1 is nan, expected a finite number"), ([0], "timesteps: has 1 values, expected 2"),
                         (["a", "b"], "timesteps: cannot be read as numbers"), ([[0, 1]], "timesteps: has 2 axes")]:  # fmt: skip
        refused(ValueError, words, lambda: Schedule.from_arrays([1, 0.5], [0, 0.5], times))
    for entry, words in [(dict(beta_start=-1), '"beta_start" is -1, expected a number above 0'), (dict(steps_offset=900), "use fewer steps or another offset"),
                         (dict(foo=1), 'unknown key "foo"')]:  # fmt: skip
        refused(ValueError, words, lambda: Schedule.from_diffusers({**DDIM, **entry}, 10))
    refused(ValueError, 'unknown class "MyScheduler".*a file with the arrays alpha and sigma',
            lambda: Schedule.from_diffusers({**DDIM, "_class_name": "MyScheduler"}, 10))  # fmt: skip
    (tmp_path / "scheduler_config.json").write_text('{"_class_name": "DDIMScheduler"}')
    assert Schedule(tmp_path, 5) == Schedule(str(tmp_path), 5)


@pytest.mark.parametrize("options, kind, words", [
    (dict(basis="best"), ValueError, 'basis: unknown word "best"'),
    (dict(basis=3), TypeError, "basis: is a int"),
    (dict(scale=5), TypeError, "scale: is a int .5., expected a str"),
    (dict(scale="1:0"), ValueError, "does not rise from LOW to HIGH"),
    (dict(confidence=NAN), ValueError, "confidence is nan; expected a number between 0 and 1"),
    (dict(off_diagonal=-1), ValueError, "off_diagonal: is -1, expected a share from 0 to 1"),
    (dict(off_diagonal=NAN), ValueError, "off_diagonal: is nan"),
    (dict(threads=-1), ValueError, "threads: is -1"),
    (dict(bootstrap=10**9), ValueError, "bootstrap: is 1000000000, expected 0 or 2 to 100000"),
    (dict(seed=-1), ValueError, "seed: is -1, expected a whole number from 0"),
    (dict(foo=2), TypeError, "^Spectrum.from_latents.. has no argument 'foo'; expected one of latents, basis, scale"),
    (dict(direction=2), TypeError, "^Spectrum.from_latents.. has no argument 'direction'; did you mean 'directions'.$"),
    (dict(seed=np.True_), TypeError, "seed: is a .*, expected a whole number"),
    (dict(skip_nonfinite=2), TypeError, "skip_nonfinite: is a int .2., expected True or False"),
    (dict(second_pass="x"), TypeError, "second_pass: is a str"),
    (dict(progress=3), TypeError, "progress: is a int .3., expected a function"),
    (dict(name=None), TypeError, "name: is None, expected a str"),
    (dict(directions=0), ValueError, "directions: is 0, expected a whole number from 1 to 4096"),
    (dict(directions=5000), ValueError, "directions: is 5000, expected a whole number from 1 to 4096"),
    (dict(directions=2.0), TypeError, "directions: is a float"),
    (dict(directions=3, basis="pca"), ValueError, 'directions: gives .*basis="pca".*leave one of them out'),
    (dict(diagonal_only=1), TypeError, "diagonal_only: is a int"),
    (dict(diagonal_only=True, basis="dct"), ValueError, "basis: dct needs the covariance, which diagonal_only=True leaves out"),
    (dict(diagonal_only=True, shrink="oas"), ValueError, "shrink and bootstrap need the covariance"),
    (dict(diagonal_only=True, bootstrap=9), ValueError, "shrink and bootstrap need the covariance"),
], ids=lambda x: str(x)[:40])  # fmt: skip
def test_from_latents(options, kind, words):
    refused(kind, words, lambda: Spectrum.from_latents(data, **options))


def test_numpys_true_and_false_are_those():
    assert Spectrum.from_latents(data, diagonal_only=np.True_).covariance is None
    assert Spectrum.from_latents(data, diagonal_only=np.False_).covariance is not None


@pytest.mark.parametrize("latents, words", [
    (None, "latents: is a NoneType"),
    ({"latents": data}, "latents: is a dict with the keys .'latents'.*pass the array under its key"),
    (data + 1j, "latents: holds complex128 values, expected float16"),
    (np.array(["a", "b"]), "latents: holds <U1 values"),
    (np.array([object()] * 3), "latents: holds object values"),
    (data.astype(np.longdouble), "latents: holds float128 values"),
    (np.zeros(4, dtype=[("a", float)]), "latents: holds"),
    ([[1, 2], [3]], "latents: cannot be read as an array .*expected samples of one shape"),
    (np.full((5, 2), NAN), "take such samples out, or pass skip_nonfinite=True$"),
], ids=lambda x: str(x)[:20].replace("\n", " "))  # fmt: skip
def test_latents(latents, words):
    refused(ValueError, words, lambda: Spectrum.from_latents(latents))


def test_files(tmp_path):
    spectrum = Spectrum.from_latents(data)
    plan = mergeplan.plan([1.0, 2.0], "cosine", teacher_steps=3, train_time=1.0)
    for call in (Spectrum.from_file, spectrum.to_file, Plan.from_toml, plan.to_toml):
        refused(TypeError, "path: is a int .3., expected a str, bytes or os.PathLike", lambda: call(3))
        refused(TypeError, "path: is None", lambda: call(None))
        refused(ValueError, "path: is empty", lambda: call(""))
        for name in ("x\0.toml", b"x\0.toml", f"{tmp_path}/\0"):
            refused(ValueError, "path: has a NUL character in it, expected the name of a file", lambda: call(name))
        refused(ValueError, "No such file", lambda: call(tmp_path / "no" / "file.toml"))
        refused(ValueError, "is a folder, expected a file", lambda: call(tmp_path))
    refused(TypeError, "basis: is None, expected a str", lambda: spectrum.in_basis(None))
    refused(ValueError, 'basis "x" is not in this spectrum; it has', lambda: spectrum.in_basis("x"))
    refused(ValueError, "variances: has 2 axes", lambda: Spectrum(data[0]))


def test_calls_that_do_not_fit(tmp_path):
    """In one line, of every public function: nanobind lists the whole signature and the types of everything."""
    spectrum, schedule = Spectrum([1.0, 2.0]), Schedule("cosine", 3)
    plan = mergeplan.plan(spectrum, schedule, train_time=1.0)
    for words, call in [
        ("^plan.. missing a required argument: 'spectrum'$", lambda: mergeplan.plan()),
        ("^plan.. missing a required argument: 'schedule'$", lambda: mergeplan.plan([1.0])),
        ("^plan.. too many positional arguments$", lambda: mergeplan.plan([1.0], schedule, 3)),
        ("^plan.. multiple values for argument 'spectrum'$", lambda: mergeplan.plan([1.0], schedule, spectrum=[1.0])),
        ("^strategy.. missing a required argument: 'schedule'$", lambda: mergeplan.strategy("boot")),
        ("^Spectrum.. missing a required argument: 'variances'$", lambda: Spectrum()),
        ("^Spectrum.. has no argument 'foo'; expected one of variances$", lambda: Spectrum([1.0], foo=1)),
        ("^Spectrum.. too many positional arguments$", lambda: Spectrum([1.0], 2)),
        ("^Spectrum.. multiple values for argument 'variances'$", lambda: Spectrum([1.0], variances=[1.0])),
        ("^Schedule.. has no argument 'step'; did you mean 'steps'.$", lambda: Schedule("cosine", step=3)),
        ("^Schedule.. missing a required argument: 'spec'$", lambda: Schedule(steps=3)),
        ("^Spectrum.from_file.. missing a required argument: 'path'$", lambda: Spectrum.from_file()),
        ("^Spectrum.from_moments.. has no argument 'foo'", lambda: Spectrum.from_moments({}, foo=1)),
        ("^Spectrum.in_basis.. has no argument 'name'; expected one of basis$", lambda: spectrum.in_basis(name="pca")),
        ("^Spectrum.to_file.. too many positional arguments$", lambda: spectrum.to_file("a", "b")),
        ("^Spectrum.merge.. ", lambda: spectrum.merge(foo=1)),
        ("^Schedule.from_arrays.. has no argument 'times'; did you mean 'timesteps'.$",
         lambda: Schedule.from_arrays([1], [1], times=3)),
        ("^Schedule.from_diffusers.. missing a required argument: 'steps'$", lambda: Schedule.from_diffusers(DDIM)),
        ("^Plan.from_toml.. has no argument 'file'; expected one of path$", lambda: Plan.from_toml(file="x")),
        ("^Plan.to_toml.. missing a required argument: 'path'$", lambda: plan.to_toml()),
        ("^Plan.to_json.. too many positional arguments$", lambda: plan.to_json(3)),
        ("^Plan.to_json.. was given int, expected .self.$", lambda: Plan.to_json(3)),
    ]:  # fmt: skip
        refused(TypeError, words, call)
    # What the functions themselves raise, and what callbacks do, is passed on.

    def broken(seconds, objective, bound):
        raise TypeError("mine: incompatible function arguments")

    class Samples:
        def __iter__(self):
            raise TypeError("plan(): incompatible function arguments of somebody else")

    with pytest.raises(TypeError, match="of somebody else"):
        Spectrum.from_latents(Samples())
    assert Schedule(spec="cosine", steps=3) == schedule and Schedule(steps=3, spec="cosine") == schedule
    assert (Spectrum(variances=[1.0]).variances == [1.0]).all()
    assert mergeplan.plan.__doc__ and mergeplan.plan.__name__ == "plan" and Plan.to_toml.__doc__
    assert spectrum.merge.__name__ == "merge"


def test_files_that_are_no_more_room_for(tmp_path):
    """OSError as of any file, not MemoryError: the disk is full, or the process has too many files open."""
    plan = mergeplan.plan([1.0, 2.0], "cosine", teacher_steps=3, train_time=1.0)
    if pathlib.Path("/dev/full").exists():
        with pytest.raises(OSError, match="/dev/full: writing failed: No space left on device") as caught:
            plan.to_toml("/dev/full")
        assert caught.value.errno == errno.ENOSPC
    plan.to_toml(tmp_path / "plan.toml")
    code = (
        "import resource, sys, mergeplan, mergeplan._glue, os\n"
        "used = len(os.listdir('/proc/self/fd')) - 1\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (used, used))\n"
        "try:\n    mergeplan.Plan.from_toml(sys.argv[1])\n"
        "except OSError as error:\n    print(error.errno, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "plan.toml"], capture_output=True, text=True)
    assert done.stdout.startswith(f"{errno.EMFILE} [Errno {errno.EMFILE}] ") and "Too many open files" in done.stdout, done


def test_files_that_are_taken_for_each_other(tmp_path):
    plan = mergeplan.plan([1.0, 2.0], "cosine", teacher_steps=3, train_time=1.0)
    plan.to_toml(tmp_path / "plan.toml")
    Spectrum.from_latents(data).to_file(tmp_path / "spectrum.toml")
    refused(ValueError, "plan.toml: is a plan, expected a spectrum", lambda: Spectrum.from_file(tmp_path / "plan.toml"))
    refused(ValueError, "spectrum.toml: is a spectrum, expected a plan", lambda: Plan.from_toml(tmp_path / "spectrum.toml"))
