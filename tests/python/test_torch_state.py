"""mergeplan.torch: training that is stopped and taken up, frozen weights, adapters."""

import copy
import io
import os

import pytest
import torch

import torch_cases as cases
from mergeplan.torch import MergeDistiller, Snapshots

SIZE = 5


def parts(seed=0, init="child-jump", memory=None, folder=None, **options):
    """A plan whose second round has merges with two different starts, so that stages, shared networks and kept weights
    all occur; N = 2."""
    torch.manual_seed(seed)
    schedule = cases.schedule(9)
    plan = cases.make_plan(9, [[[1, 2], [3, 4], 5], [6, [7, [8, 9]]]], schedule, init)
    teacher = cases.Small(SIZE)
    distiller = MergeDistiller(
        plan, teacher, prediction_type="v_prediction", updates=3, accumulate=2, memory=memory, folder=folder,
        held_out=torch.linspace(-1, 1, 40, dtype=torch.float64).view(8, SIZE), **options,
    )
    return distiller, torch.randn(64, SIZE, dtype=torch.float64)


def through_a_file(state):
    held = io.BytesIO()
    torch.save(state, held)
    return torch.load(io.BytesIO(held.getvalue()), weights_only=True)


@pytest.mark.parametrize("init", cases.INITS)
def test_stopped_after_any_batch_it_ends_the_same(init):
    whole, data = parts(init=init)
    cases.train(whole, whole.student, data)
    batches = sum(whole.updates_of(s) for s in whole.order.stages) * 2
    for stop in range(0, batches + 1, 3):
        first, data = parts(init=init)
        optimizer = cases.train(first, first.student, data, stop=stop)
        saved = through_a_file([first.state_dict(), first.student.state_dict(), optimizer.state_dict()])
        second, data = parts(init=init)
        again = torch.optim.Adam(second.student.parameters(), 1e-2)
        second.student.load_state_dict(saved[1])
        second.load_state_dict(saved[0])
        again.load_state_dict(saved[2])
        cases.train(second, second.student, data, optimizer=again)
        assert second.finished
        for a, b in zip(whole.student.parameters(), second.student.parameters()):
            assert torch.equal(a, b)
        plain = [{**r.to_dict(), "seconds": 0} for r in second.records]
        assert plain == [{**r.to_dict(), "seconds": 0} for r in whole.records]
        noise = torch.ones(2, SIZE, dtype=torch.float64)
        assert torch.equal(whole.sample(noise), second.sample(noise))


def test_states_that_do_not_fit_change_nothing():
    distiller, data = parts()
    cases.train(distiller, distiller.student, data, stop=9)
    state = distiller.state_dict()
    other, data = parts()
    cases.train(other, other.student, data, stop=9, rate=5e-2)  # elsewhere by now
    before = copy.deepcopy(other.state_dict())

    def refused(match, change):
        bad = copy.deepcopy(state)
        change(bad)
        with pytest.raises(ValueError, match=match):
            other.load_state_dict(bad)
        after = other.state_dict()
        assert all(after[k] == before[k] for k in ("stage", "batches", "records", "curve"))
        assert all(torch.equal(v, after["snapshots"][n][k]) for n, s in before["snapshots"].items() for k, v in s.items())

    refused("format None", lambda s: s.pop("format"))
    refused("another training: updates is 4", lambda s: s["question"].update(updates=4))
    refused("another training: merges", lambda s: s["question"].update(merges=[]))
    for key in ("stage", "batches", "rows", "teacher_calls", "seconds", "initial", "curve", "records", "snapshots"):
        refused(f"damaged: {key} is missing$", lambda s: s.pop(key))
    refused("damaged: stage 99", lambda s: s.update(stage=99))
    refused("damaged: snapshots", lambda s: s.update(snapshots={}))
    refused("damaged: a record has the unknown keys .'nonsense'", lambda s: s["records"].append({"nonsense": 1}))
    refused("damaged: first of a record is missing", lambda s: s["records"][0].pop("first"))
    refused("damaged: a record is a int", lambda s: s["records"].append(3))
    refused("damaged: it has 0 records, expected 3, one for every merge", lambda s: s.update(records=[]))
    refused("damaged: it has 4 records, expected 3", lambda s: s["records"].append(s["records"][0]))
    refused("damaged: it has 3 records, expected 0", lambda s: s.update(stage=0, batches=0))
    refused("it has 0 losses in initial|0 losses in initial, expected", lambda s: s.update(initial=[]))
    refused("losses in initial, expected", lambda s: s["initial"].append(1.0))
    for key in ("curve", "initial", "records"):
        refused(f"damaged: {key} is a str, expected a list", lambda s: s.update({key: "12"}))
        refused(f"damaged: {key} is a dict, expected a list", lambda s: s.update({key: {}}))
    refused("damaged: its question is a list", lambda s: s.update(question=[]))
    for key in ("stage", "batches", "rows", "teacher_calls"):
        for value in (-2, 1.5, "7", None, float("nan")):
            refused(f"damaged.*{key} is", lambda s: s.update({key: value}))
    refused("damaged: batches is 7, expected 6", lambda s: s.update(batches=7))
    refused("damaged: rows is 0", lambda s: s.update(rows=0))
    refused("damaged: seconds is nan", lambda s: s.update(seconds=float("nan")))
    refused("damaged", lambda s: s.update(snapshots=[]))
    first = lambda s: next(iter(s["snapshots"].values()))
    refused("a.weight holds numbers that are not finite", lambda s: first(s)["a.weight"].view(-1)[3].fill_(float("nan")))
    refused("a.weight is of torch.int64", lambda s: first(s).update({"a.weight": first(s)["a.weight"].long()}))
    refused("a.weight is a list", lambda s: first(s).update({"a.weight": [1.0]}))
    refused("is a list, expected a dict of tensors", lambda s: s["snapshots"].update({next(iter(s["snapshots"])): [1]}))
    refused("another student", lambda s: next(iter(s["snapshots"].values())).update({"a.weight": torch.zeros(1)}))
    with pytest.raises(ValueError, match="format 'list'"):
        other.load_state_dict([])


def test_a_state_without_held_out_is_taken_up_without_it():
    """Losses at the start belong to a stage that is measured."""
    torch.manual_seed(0)
    plan, teacher = cases.make_plan(4, [[1, [2, 3, 4]]], cases.schedule(4)), cases.Small(SIZE)
    held_out, data = torch.ones(3, SIZE, dtype=torch.float64), torch.randn(32, SIZE, dtype=torch.float64)

    def make(held_out):
        return MergeDistiller(plan, teacher, prediction_type="sample", updates=2, held_out=held_out)

    without, measured = make(None), make(held_out)
    for one in (without, measured):
        cases.train(one, one.student, data, stop=3)
    make(None).load_state_dict(measured.state_dict())
    make(None).load_state_dict(without.state_dict())
    with pytest.raises(ValueError, match="0 losses in initial, expected 1.*leave held_out out"):
        make(held_out).load_state_dict(without.state_dict())
    # Before the first stage and behind the last nothing is measured.
    make(held_out).load_state_dict(make(None).state_dict())
    cases.train(without, without.student, data)
    again = make(held_out)
    again.load_state_dict(without.state_dict())
    assert again.finished and len(again.records) == 2


def test_another_teacher_is_refused():
    plan, data = cases.make_plan(4, [[1, [2, 3, 4]]], cases.schedule(4)), torch.randn(32, SIZE, dtype=torch.float64)
    teacher = cases.Small(SIZE)

    def make(teacher, student=None):
        return MergeDistiller(plan, teacher, student, prediction_type="sample", updates=2)

    first = make(teacher)
    cases.train(first, first.student, data, stop=1)
    state = through_a_file(first.state_dict())
    make(copy.deepcopy(teacher)).load_state_dict(state)
    make(torch.nn.Sequential(teacher)[0]).load_state_dict(state)
    tuned = copy.deepcopy(teacher)
    with torch.no_grad():
        tuned.b.weight.mul_(1 + 1e-6)
    for bad, words in (
        (tuned, "of its teacher's parameters the values are"),
        (cases.Small(SIZE), "the values are"),
        (copy.deepcopy(teacher).float(), "the names and shapes are"),
        (cases.Small(SIZE, hidden=3), "the names and shapes are"),
        (torch.nn.Sequential(cases.Small(SIZE), torch.nn.Linear(SIZE, SIZE)), "the number are 4, of this one's 6"),
    ):
        with pytest.raises(ValueError, match=f"another training.*{words}.*the teacher that the training began with"):
            make(bad).load_state_dict(state)
    with pytest.raises(ValueError, match="another training: this one has no teacher beside the student"):
        make(None, copy.deepcopy(teacher).requires_grad_(True)).load_state_dict(state)
    alone = make(None, copy.deepcopy(teacher).requires_grad_(True))
    with pytest.raises(ValueError, match="another training: the state's training has no teacher"):
        make(teacher).load_state_dict(alone.state_dict())
    with pytest.raises(ValueError, match="damaged: teacher is a list"):
        make(teacher).load_state_dict({**state, "teacher": []})
    # Written before teachers were kept.
    make(teacher).load_state_dict({key: value for key, value in state.items() if key != "teacher"})


def test_only_what_is_needed_is_kept():
    distiller, data = parts(shared=False)
    most = 0
    optimizer = torch.optim.SGD(distiller.student.parameters(), 1e-3)
    for stage in distiller.rounds(optimizer):
        needed = distiller.order.needed_after(distiller.stage_index - 1)
        assert set(distiller.snapshots.numbers) == needed
        most = max(most, len(needed))
        for x0 in stage.over(data.split(8)):
            batch = distiller.batch(x0)
            distiller.loss(distiller.student(batch.z, batch.t), batch).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert set(distiller.snapshots.numbers) == {link.snapshot for link in distiller.order.student}
    assert 2 <= most < len(distiller.order.stages)
    with pytest.raises(KeyError, match="dropped"):
        distiller.snapshots.get(0)


def test_spilled_to_files_the_numbers_are_the_same(tmp_path):
    folder = str(tmp_path / "with a space")
    plain, data = parts(shared=False)
    cases.train(plain, plain.student, data)
    one = sum(p.nbytes for p in plain.student.parameters())
    spilling, data = parts(shared=False, memory=one, folder=folder)
    cases.train(spilling, spilling.student, data)
    assert spilling.snapshots.spilled >= 1 and spilling.snapshots.bytes_in_memory() <= one
    for a, b in zip(plain.student.parameters(), spilling.student.parameters()):
        assert torch.equal(a, b)
    kept = {os.path.basename(spilling.snapshots.path(n)) for n in spilling.snapshots.numbers}
    assert os.listdir(folder)
    assert set(os.listdir(folder)) <= kept
    state = spilling.state_dict()
    assert set(state["snapshots"]) == {str(n) for n in spilling.snapshots.numbers}


def test_a_damaged_snapshot_file_is_an_error(tmp_path):
    net = cases.Small(SIZE)
    snapshots = Snapshots(net, memory=1, folder=str(tmp_path))
    snapshots.put(0)
    snapshots.put(1)
    assert snapshots.spilled == 1
    good = open(snapshots.path(0), "rb").read()
    other = {"a.weight": torch.zeros(2)}
    for bad in (b"not weights", good[: len(good) // 2], b""):
        with open(snapshots.path(0), "wb") as out:
            out.write(bad)
        with pytest.raises(RuntimeError, match=r"snapshot-.*-0.rank0.pt: snapshot 0 cannot be read back \(.+\)$") as caught:
            snapshots.load(0)
        assert "\n" not in str(caught.value) and "weights_only" not in str(caught.value)
    torch.save(other, snapshots.path(0))
    with pytest.raises(RuntimeError, match="does not hold the student's a.weight"):
        snapshots.load(0)
    with open(snapshots.path(0), "wb") as out:
        out.write(good)
    snapshots.load(0)  # the number is still there, and a good file is read
    snapshots.load(1)
    os.remove(snapshots.path(0))
    with pytest.raises(RuntimeError, match=r"snapshot 0 cannot be read back \(.*No such file"):
        snapshots.load(0)
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_files_of_other_runs_are_never_read(tmp_path):
    """A run that was killed leaves its files in the folder; the next one begins with other weights there."""

    def fill(net, value):
        with torch.no_grad():
            for p in net.parameters():
                p.fill_(value)

    net = cases.Small(SIZE)
    runs = [Snapshots(net, memory=1, folder=str(tmp_path)) for _ in range(2)]
    left = []
    for value, run in enumerate(runs, 1):
        for number in (0, 1, 2):
            fill(net, 10 * value + number)
            run.put(number)
        assert run.spilled == 2
        left.append(sorted(os.listdir(tmp_path)))
    assert len(left[0]) == 2 and set(left[0]) < set(left[1]) and len(left[1]) == 4
    for value, run in enumerate(runs, 1):
        for number in (0, 1, 2):
            run.load(number)
            assert all(bool((p == 10 * value + number).all()) for p in net.parameters())
    # What is dropped or put again leaves no file, and nothing of the other's is touched.
    fill(net, 7.0)
    runs[1].put(0)
    runs[1].put(1)
    runs[1].load(0)
    assert all(bool((p == 7).all()) for p in net.parameters())
    runs[1].keep_only(())
    others = {os.path.basename(runs[0].path(n)) for n in (0, 1, 2)}
    assert set(os.listdir(tmp_path)) <= others
    # A file that lies there under the very name is not read either, but written over.
    run = Snapshots(net, memory=1, folder=str(tmp_path))
    torch.save({"a.weight": torch.zeros(1)}, run.path(0))
    run.put(0)
    run.put(1)
    run.load(0)
    assert all(bool((p == 7).all()) for p in net.parameters())


def test_a_copy_has_files_of_its_own(tmp_path):
    net = cases.Small(SIZE)
    first = Snapshots(net, memory=1, folder=str(tmp_path))
    first.put(0)
    first.put(1)
    values = {n: t.clone() for n, t in first.get(0).items()}
    second = copy.deepcopy(first)
    first.keep_only(())
    assert all(torch.equal(t, values[n]) for n, t in second.get(0).items())
    assert second.numbers == [0, 1] and second.spilled == 1 and second.path(0) != first.path(0)


def test_frozen_jumps_run_without_dropout_and_leave_modes_alone():
    schedule = cases.schedule(3)
    plan = cases.make_plan(3, [[1, [2, 3]]], schedule)
    student = cases.Small(SIZE, dropout=0.5)
    distiller = MergeDistiller(plan, None, student, prediction_type="sample", updates=1)
    student.train()
    x0 = torch.randn(16, SIZE, dtype=torch.float64)
    distiller.advance()
    for _ in range(2):
        a = distiller.batch(x0, torch.Generator().manual_seed(3))
        distiller.batches -= 1
        b = distiller.batch(x0, torch.Generator().manual_seed(3))
        assert torch.equal(a.target, b.target) and student.training and student.drop.training
        if not distiller.advance():
            break


def test_buffers_belong_to_a_snapshot():
    class Normed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.out = torch.nn.BatchNorm1d(SIZE), torch.nn.Linear(SIZE, SIZE)

        def forward(self, z, t):
            return self.out(self.norm(z))

    student = Normed()
    plan = cases.make_plan(3, [[1, [2, 3]]], cases.schedule(3))
    distiller = MergeDistiller(plan, None, student, prediction_type="sample", updates=2)
    student.train()
    cases.train(distiller, student, torch.randn(40, SIZE))
    kept = distiller.snapshots.get(distiller.order.student[0].snapshot)
    assert torch.equal(kept["norm.running_mean"], student.norm.running_mean)
    assert float(student.norm.running_mean.abs().max()) > 0


def test_a_teacher_left_out_is_the_first_student():
    schedule = cases.schedule(4)
    plan = cases.make_plan(4, [cases.boot(4)], schedule)
    net = cases.Small(SIZE)
    data = torch.randn(64, SIZE, dtype=torch.float64)
    with_teacher = MergeDistiller(plan, copy.deepcopy(net), copy.deepcopy(net), prediction_type="sample", updates=3)
    without = MergeDistiller(plan, None, copy.deepcopy(net), prediction_type="sample", updates=3)
    cases.train(with_teacher, with_teacher.student, data)
    cases.train(without, without.student, data)
    for a, b in zip(with_teacher.student.parameters(), without.student.parameters()):
        assert torch.equal(a, b)


def test_a_student_of_ones_own_begins_with_the_teachers_weights():
    plan = cases.make_plan(4, [cases.boot(4)], cases.schedule(4))
    options = {"prediction_type": "sample", "updates": 2}
    teacher = cases.Small(SIZE)
    other = MergeDistiller(plan, teacher, cases.Small(SIZE), **options)
    with pytest.raises(ValueError, match="a.weight differs.*load_state_dict.teacher.*fit_updates=N"):
        other.advance()
    with pytest.raises(ValueError, match="begins with other weights"):
        other.calibrate(lambda: None, torch.optim.SGD, held_out=torch.zeros(2, SIZE, dtype=torch.float64))
    assert other.stage_index == -1 and len(other.snapshots) == 0
    other.student.load_state_dict(teacher.state_dict())
    assert other.advance()
    # Rounded weights are the same weights; a fit needs none.
    assert MergeDistiller(plan, copy.deepcopy(teacher).half(), copy.deepcopy(teacher).requires_grad_(True), **options).advance()
    assert MergeDistiller(plan, teacher, cases.Small(SIZE, hidden=3), fit_updates=1, **options).advance()
    with pytest.raises(ValueError, match="another network than the teacher.*fit_updates=N"):
        MergeDistiller(plan, teacher, cases.Small(SIZE, hidden=3), **options)
    # Taken up with trained weights in the student.
    data = torch.randn(64, SIZE, dtype=torch.float64)
    cases.train(other, other.student, data, stop=3)
    again = MergeDistiller(plan, teacher, copy.deepcopy(other.student), **options)
    again.load_state_dict(other.state_dict())
    assert again.advance()


def test_adapters_alone_are_trained_and_kept():
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    schedule = cases.schedule(4)
    plan = cases.make_plan(4, [cases.boot(4)], schedule)
    base = cases.Small(SIZE, dtype=torch.float32)
    student = peft.get_peft_model(copy.deepcopy(base), peft.LoraConfig(r=2, target_modules=["a", "b"]))
    distiller = MergeDistiller(plan, None, student, prediction_type="sample", updates=20)
    data = torch.randn(64, SIZE)
    distiller.advance()
    names = set(distiller.snapshots.get(0))
    assert names and all("lora" in name for name in names)
    # Its first targets are those of the base model.
    batch = distiller.batch(data[:4])
    twin = cases.Twin(schedule, "sample")
    for row in range(4):
        z = batch.z[row : row + 1]
        end = twin.jump(base, twin.jump(base, z, 4, 3), 3, 2)
        assert torch.allclose(batch.target[row : row + 1], twin.output_for(z, 4, 2, end), atol=1e-5)
    before = {n: p.detach().clone() for n, p in student.named_parameters() if not p.requires_grad}
    cases.train(distiller, student, data)
    assert all(torch.equal(p, before[n]) for n, p in student.named_parameters() if n in before)
    moved = distiller.snapshots.get(distiller.order.student[0].snapshot)
    assert any(float(v.abs().max()) > 0 for n, v in moved.items() if "lora_B" in n)


def test_numbers_that_are_not_finite_stop_before_the_optimizer():
    plan = cases.make_plan(3, [[1, 2, 3]], cases.schedule(3))
    distiller = MergeDistiller(plan, cases.Small(SIZE), prediction_type="sample", updates=5)
    distiller.advance()
    data = torch.randn(4, SIZE, dtype=torch.float64)
    data[2, 1] = float("nan")
    with pytest.raises(ValueError, match="row 2 of the samples"):
        distiller.batch(data)
    batch = distiller.batch(data[:2])
    with pytest.raises(RuntimeError, match="loss is nan at update 1"):
        distiller.loss(batch.target * float("nan"), batch)
    broken = cases.Small(SIZE)
    with torch.no_grad():
        broken.b.bias.fill_(float("inf"))
    bad = MergeDistiller(plan, broken, prediction_type="sample", updates=5)
    bad.advance()
    with pytest.raises(RuntimeError, match="target is not finite for finite samples"):
        bad.batch(data[:2])


def test_a_generator_of_ones_own_names_the_noise():
    distiller, data = parts()
    distiller.advance()
    a = distiller.batch(data[:5], torch.Generator().manual_seed(7))
    distiller.load_state_dict(distiller.state_dict())
    other, data = parts()
    other.advance()
    b = other.batch(data[:5], generator=torch.Generator().manual_seed(7))
    assert torch.equal(a.z, b.z)


def test_every_kind_of_loop(tmp_path):
    """The numbers do not depend on whose loop it is."""
    plain, data = parts()
    optimizer = torch.optim.Adam(plain.student.parameters(), 1e-2)
    loader = torch.utils.data.DataLoader(data, batch_size=16)

    def step(distiller, x0, optimizer):
        batch = distiller.batch(x0)
        distiller.loss(distiller.student(batch.z, batch.t), batch).backward()
        optimizer.step()
        optimizer.zero_grad()

    for stage in plain.rounds(optimizer):
        for x0 in stage.over(loader):
            step(plain, x0, optimizer)
    # A loop that knows nothing of rounds (Lightning's training_step).
    other, data = parts()
    optimizer = torch.optim.Adam(other.student.parameters(), 1e-2)
    position = 0
    while other.advance(optimizer):
        if other.batches == 0:
            position = 0
        step(other, data[16 * position : 16 * position + 16], optimizer)
        position = (position + 1) % 4
    for a, b in zip(plain.student.parameters(), other.student.parameters()):
        assert torch.equal(a, b)
