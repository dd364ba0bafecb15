"""A stage of the training as a loop sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from .order import Stage

if TYPE_CHECKING:
    from .distiller import MergeDistiller


class Round:
    """One stage of the training: merges that the student learns together. Iterating it gives the numbers of the
    updates that are left; `over(loader)` gives batches of a loader, again and again, until the stage is done."""

    def __init__(self, owner: MergeDistiller):
        self._owner, self._index = owner, owner.stage_index
        self.stage: Stage = owner.stage
        self.number = self.stage.round
        self.merges = [(task.first, task.last) for task in self.stage.tasks]

    @property
    def done(self) -> bool:
        """All updates made."""
        owner = self._owner
        return owner.stage_index != self._index or owner.stage_done

    def __len__(self) -> int:
        return self._owner.updates_left if self._owner.stage_index == self._index else 0

    def __iter__(self) -> Iterator[int]:
        while not self.done:
            before = self._owner.batches
            yield self._owner.updates
            if self._owner.batches == before and not self.done:
                raise RuntimeError(
                    "the loop over a round went on without a call of batch(): every pass must draw one, or the round "
                    "never ends"
                )

    def over(self, loader) -> Iterator[Any]:
        """Batches of `loader` from its beginning, as often as needed."""
        if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
            raise TypeError(f"loader is a {type(loader).__name__}, expected something to loop over that gives batches")
        while not self.done:
            empty = True
            for item in loader:
                if self.done:
                    return
                empty = False
                yield item
            if empty:
                raise ValueError("the loader gives no batch at all")

    def __repr__(self) -> str:
        return f"Round({self.number}, merges={self.merges}, left={len(self)})"
