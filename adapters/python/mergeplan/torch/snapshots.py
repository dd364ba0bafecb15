"""Frozen weights of one network under numbers: kept while something needs them, spilled to files beyond a limit."""

from __future__ import annotations

import contextlib
import os
import pickle
import uuid
from typing import Any, Iterable, Iterator

import torch
from torch import nn

from . import checks
from .distributed import is_sharded, local, rank_and_world, reshard

Values = dict[str, torch.Tensor]


class Slots:
    """The places whose values a snapshot holds: parameters that are trained, buffers that are saved. Of a network with
    adapters that is the adapters alone. Places, not tensors: fully_shard replaces parameters."""

    def __init__(self, module: nn.Module):
        self._places: list[tuple[str, dict, str]] = []
        seen: set[int] = set()
        for prefix, part in module.named_modules():
            dot = f"{prefix}." if prefix else ""
            for name, parameter in part._parameters.items():
                if parameter is not None and parameter.requires_grad and id(parameter) not in seen:
                    seen.add(id(parameter))
                    self._places.append((dot + name, part._parameters, name))
            for name, buffer in part._buffers.items():
                if buffer is not None and name not in part._non_persistent_buffers_set and id(buffer) not in seen:
                    seen.add(id(buffer))
                    self._places.append((dot + name, part._buffers, name))

    def values(self) -> Values:
        """The tensors as they stand."""
        return {name: owner[key] for name, owner, key in self._places}


@torch.no_grad()
def load_values(into: Values, values: Values) -> None:
    """Copies in place, so that optimizers and wrappers keep their references."""
    for name, tensor in into.items():
        local(tensor).copy_(local(values[name]), non_blocking=True)


class Snapshots:
    """Weights of one module. `module` is the very network that is trained: a snapshot is used by exchanging its values
    with the network's for the time of a call, so that no second network is needed and adapters share their base.

    `memory`: bytes that snapshots may take (None: no limit); those used longest ago then lie in files of `folder` and
    are loaded back, bit by bit, when they are asked for. Files are this object's own: no other run's, nor those of another
    object, are ever read, so that a folder may be shared. A run that is killed leaves its files behind (snapshot-*.pt).
    """

    def __init__(self, module: nn.Module, memory: int | None = None, folder: str | None = None):
        checks.network("module", module)
        if memory is not None:
            memory = checks.whole("memory (bytes of snapshots; None: no limit)", memory, 1)
        if folder is not None:
            folder = checks.folder("folder", folder)
        elif memory is not None:
            raise ValueError("a limit of memory needs a folder for the snapshots that lie in files: pass folder=...")
        self._module = module
        self._memory, self._folder = memory, folder
        self._held: dict[int, Values | None] = {}  # None: in its file only; the first was used longest ago
        self._own_files()
        self._slots: Slots | None = None

    def _own_files(self) -> None:
        self._name = uuid.uuid4().hex[:12]
        self._written: set[int] = set()  # whose files hold what is held under their numbers

    def __getstate__(self) -> dict[str, Any]:
        """Of a copy: with all values, since files have one owner."""
        held = {n: v if v is not None else self._read(n) for n, v in self._held.items()}
        return {**self.__dict__, "_held": held, "_slots": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._own_files()

    def _own(self) -> Values:
        if self._slots is None:
            self._slots = Slots(self._module)
        return self._slots.values()

    def __contains__(self, number: int) -> bool:
        return number in self._held

    def __len__(self) -> int:
        return len(self._held)

    @property
    def numbers(self) -> list[int]:
        """Those that are kept."""
        return sorted(self._held)

    @property
    def spilled(self) -> int:
        """How many lie in files only."""
        return sum(v is None for v in self._held.values())

    def bytes_in_memory(self) -> int:
        """Of this process."""
        return sum(local(t).nbytes for v in self._held.values() if v for t in v.values())

    def path(self, number: int) -> str:
        """Its file, one for every process where the network is sharded."""
        rank, _ = rank_and_world()
        return os.path.join(self._folder or "", f"snapshot-{self._name}-{number}.rank{rank}.pt")

    @torch.no_grad()
    def put(self, number: int) -> None:
        """Freezes the network as it stands."""
        self.put_values(number, {n: t.detach().clone() for n, t in self._own().items()})

    def put_values(self, number: int, values: Values) -> None:
        """Takes tensors over."""
        self._held.pop(number, None)
        self._remove_file(number)  # it is of other values
        self._held[number] = values
        self._make_room(number)

    def get(self, number: int) -> Values:
        """The tensors. KeyError where they have been dropped, RuntimeError where their file is damaged."""
        if number not in self._held:
            raise KeyError(f"snapshot {number} has been dropped, since nothing needs it any more")
        values = self._held[number]
        if values is None:
            values = self._read(number)
        del self._held[number]
        self._held[number] = values
        self._make_room(number)
        return values

    def _read(self, number: int) -> Values:
        path, own = self.path(number), self._own()
        try:
            values = torch.load(path, map_location="cpu", weights_only=not self._sharded())
        except Exception as error:  # whatever a damaged file makes of the reader
            reason = (str(error) or type(error).__name__).splitlines()[0]
            if isinstance(error, pickle.UnpicklingError):  # torch's words advise to run what the file says
                reason = "it is damaged, or no file of weights"
            raise RuntimeError(f"{path}: snapshot {number} cannot be read back ({reason})") from error
        for name, tensor in own.items():
            if name not in values or values[name].shape != tensor.shape or values[name].dtype != tensor.dtype:
                raise RuntimeError(f"{path}: snapshot {number} does not hold the student's {name}; something else wrote it")
        return {n: values[n].to(t.device) for n, t in own.items()}

    def keep_only(self, numbers: Iterable[int]) -> None:
        """Drops all others, their files too."""
        wanted = set(numbers)
        for number in list(self._held):
            if number not in wanted:
                del self._held[number]
                self._remove_file(number)

    def _remove_file(self, number: int) -> None:
        if number in self._written:
            self._written.discard(number)
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(number))

    def load(self, number: int) -> None:
        """Gives the network these weights, in place."""
        load_values(self._own(), self.get(number))
        reshard(self._module)

    @contextlib.contextmanager
    def used(self, number: int) -> Iterator[None]:
        """The network with these weights, in evaluation mode and without gradients; as before afterwards. Not between
        a forward pass of the network and its backward pass."""
        values = self.get(number)
        own = self._own()
        if self._sharded():
            # FSDP2 keeps pointers of its own to the shards: values are exchanged, not pointers.
            kept = {n: local(t).detach().clone() for n, t in own.items()}
            load_values(own, values)
            reshard(self._module)
        else:
            kept = {n: t.data for n, t in own.items()}
            for name, tensor in own.items():
                tensor.data = values[name]
        try:
            with frozen(self._module):
                yield
        finally:
            if self._sharded():
                with torch.no_grad():
                    for name, tensor in own.items():
                        local(tensor).copy_(kept[name])
                reshard(self._module)
            else:
                for name, tensor in own.items():
                    tensor.data = kept[name]

    def _sharded(self) -> bool:
        return is_sharded(self._module)

    def _make_room(self, keep: int) -> None:
        if self._memory is None:
            return
        for number in list(self._held):
            if self.bytes_in_memory() <= self._memory:
                return
            values = self._held[number]
            if number == keep or values is None:
                continue
            if number not in self._written:
                save_file(values, self.path(number))
                self._written.add(number)
            self._held[number] = None

    def state_dict(self) -> dict[str, Values]:
        """Copies of all of them, by number."""
        return {str(n): {k: t.detach().clone() for k, t in self.get(n).items()} for n in self.numbers}

    def load_state_dict(self, state: dict[str, Values]) -> None:
        """In place of all that is there. ValueError names what does not fit."""
        own = self._own()
        if not isinstance(state, dict):
            raise ValueError(f"the snapshots are a {type(state).__name__}, expected a dict by number")
        for number, values in state.items():
            if not str(number).isdecimal():
                raise ValueError(f"snapshot {number!r}: expected a number, 0 or more")
            if not isinstance(values, dict):
                raise ValueError(f"snapshot {number} is a {type(values).__name__}, expected a dict of tensors")
            for name, tensor in own.items():
                value = values.get(name)
                if value is not None and not isinstance(value, torch.Tensor):
                    raise ValueError(f"snapshot {number}: {name} is a {type(value).__name__}, expected a tensor")
                if value is not None and value.is_floating_point() != tensor.is_floating_point():
                    raise ValueError(f"snapshot {number}: {name} is of {value.dtype}, expected {tensor.dtype}; the state is damaged")
                if value is not None and tensor.is_floating_point() and not bool(local(value).isfinite().all()):
                    if bool(local(tensor).isfinite().all()):  # buffers may hold masks of -inf
                        raise ValueError(f"snapshot {number}: {name} holds numbers that are not finite; the state is damaged")
                if name not in values or values[name].shape != tensor.shape:
                    found = tuple(values[name].shape) if name in values else "nothing"
                    raise ValueError(
                        f"snapshot {number}: {name} is {found}, expected the shape {tuple(tensor.shape)}; the state "
                        "belongs to another student"
                    )
        self.keep_only(())
        for number, values in state.items():
            fitted = {n: values[n].to(device=t.device, dtype=t.dtype) for n, t in own.items()}
            self.put_values(int(number), {n: t.detach().clone() for n, t in fitted.items()})


@contextlib.contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Evaluation mode and no gradients, the modes of all parts as before afterwards."""
    training = [part for part in module.modules() if part.training]
    for part in training:
        part.training = False
    try:
        with torch.no_grad():
            yield
    finally:
        for part in training:
            part.training = True


def save_file(values, path: str) -> None:
    """Beside the file first, then renamed: a file is whole or not there."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    beside = f"{path}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as out:
            torch.save(values, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(beside, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(beside)
