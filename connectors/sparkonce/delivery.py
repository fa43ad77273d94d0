"""The loop that applies a decided epoch to a target, the same for every store.

The loop resumes at the target's progress, counts bad rows, stores them as dead letters, and reports
progress. After a failed row it keeps the decision. A connector supplies the steps. Each step is
atomic in its store: a step that runs twice, or an hour late, changes nothing. A store that applies
a whole epoch in one step does so in `Store.publish`, and uses the loop only for larger epochs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Generic, TypeVar

from sparkonce.errors import RowRefused
from sparkonce.exactly_once.bad_rows import ALL, BadRowCounter, MaxBadRows, TooManyBadRows
from sparkonce.protocol import Advance, Applied, Manifest

T = TypeVar("T")


def in_order(steps: Iterable[Callable[[], T]], width: int, name: str) -> Iterator[T]:
    """The result of each step, in order. After a failure no other step begins.

    Args:
        steps: taken one by one, at most one more than run in parallel.
        width: how many steps run in parallel.
        name: of the threads.
    """
    pool, gate = ThreadPoolExecutor(width, name), _Gate()
    try:
        running: deque[Future[T]] = deque()
        for step in steps:
            running.append(pool.submit(gate.take, step))
            if len(running) > width:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class _Gate:
    """Lets steps begin until one fails.

    The pool's threads check here: the caller notices a failure too late, when the failed thread may
    already run the next step.
    """

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    def take(self, step: Callable[[], T]) -> T:
        # No lock: a step that slips in now could also have begun just before the failure.
        if self._failure is not None:
            raise self._failure
        try:
            return step()
        except BaseException as failure:
            self._failure = failure
            raise


RESUME = (
    "then restart the query, or run `sparkonce recover`: it resumes where it stopped, and"
    " duplicates nothing"
)

C = TypeVar("C")
"""The result of applying one chunk: all that the dead letters of its bad rows need."""


class DecisionOver(Exception):
    """Nothing is left to do: another decision followed, or another driver has applied this one."""


class EpochDelivery(ABC, Generic[C]):
    """One decided epoch on its way into the target.

    Args:
        manifest: the decision.
        most: how many of its rows may become dead letters.
        place: where dead letters are kept, in words; None where a bad row stops the epoch.

    Attributes:
        chunks: of the manifest, in the order in which they are applied.
        counter: the bad rows of the epoch, those of earlier tries too.
        had: how many chunks the target had before, as far as its steps report; their rows are no
            progress of this try.
        width: how many chunks are applied in parallel; more than one only if their order does not
            matter.
        ends_in_last_chunk: whether the step of the last chunk calls `end` itself, since its checks
            and writes belong into that step.
    """

    width = 1
    ends_in_last_chunk = False

    def __init__(self, manifest: Manifest, most: MaxBadRows, place: str | None) -> None:
        self.manifest, self.place = manifest, place
        self.chunks, self.had = manifest.chunks, 0
        # Without a place a new bad row stops the epoch; earlier dead letters only count.
        self.counter = BadRowCounter(most if place else ALL, manifest)

    # -- the steps of a store

    @abstractmethod
    def resume(self) -> int:
        """How many chunks the target has; the counter then includes their bad rows.

        Returns 0 for a store whose `apply_chunk` finds the progress itself.

        Raises:
            DecisionOver: another decision followed, or this one is finished.
        """

    @abstractmethod
    def apply_chunk(self, ordinal: int) -> C:
        """Apply a chunk, unless the target has it. With a `width` above 1 threads call this.

        Raises:
            DecisionOver: as `resume`.
            TooManyBadRows: more rows are bad than may become dead letters.
            RowRefused: a row can't be stored, and dead letters have no place.
            StoreLostData: the store lost the chunk.
        """

    def put_aside(self, ordinal: int, chunk: C) -> None:
        """Store the bad rows of an applied chunk as dead letters.

        A store that cannot withdraw dead letters holds them back until it has stored a row of the
        epoch. Before that the target may be at fault, and the rows may be good.
        """

    def put_aside_held(self) -> None:
        """Store the dead letters that `put_aside` has held back."""

    def show(self) -> None:
        """Make the epoch visible, in a store that shows epochs as a whole."""

    def take_back(self) -> None:
        """Withdraw dead letters of an epoch without stored rows, so that a later call retries."""

    # -- the loop

    def apply(self, advance: Advance) -> Applied:
        """Apply the chunks that the target lacks; see `Store.apply`.

        Raises:
            RowRefused: one row, or too many rows, can't be stored; a later call resumes there.
        """
        try:
            with self.stays_decided():
                done = self.resume()
                if self.chunks and done >= len(self.chunks):
                    return self.counter.applied
                # Closed before an error propagates: a retry meets no thread of this try.
                with closing(self._applied(done)) as found:
                    for ordinal, chunk in enumerate(found, done):
                        self.put_aside(ordinal, chunk)
                        part, seq = self.chunks[ordinal]
                        if ordinal >= self.had:
                            advance(part.rows[seq])
                if not (self.chunks and self.ends_in_last_chunk):
                    self.end()
        except DecisionOver:
            pass  # the caller's swap finds the present decision
        return self.counter.applied

    def _applied(self, done: int) -> Generator[C, None, None]:
        """Each chunk after the first `done`, in order, once it is applied."""
        steps = (partial(self.apply_chunk, ordinal) for ordinal in range(done, len(self.chunks)))
        if self.width > 1:
            yield from in_order(steps, self.width, "sparkonce-apply")
        else:  # in this thread: a chunk waits for the dead letters of the one before
            yield from (step() for step in steps)

    def end(self) -> None:
        """Check that the target is not at fault, store held dead letters, and warn once.

        Raises:
            TooManyBadRows: the store has rejected all rows for long.
        """
        self.counter.end()
        self.put_aside_held()
        self.show()
        self.counter.warn(self.place or "dead letters")

    @contextmanager
    def stays_decided(self) -> Iterator[None]:
        """Turn too many bad rows into an error that keeps the epoch decided, to resume later."""
        try:
            yield
        except TooManyBadRows as error:
            self.take_back()
            raise RowRefused(f"{error.what}. {self.stays}", error.why, error.todo) from None

    @property
    def stays(self) -> str:
        """The state of an epoch that one of its rows has stopped."""
        return f"Epoch {self.manifest.epoch} stays decided; other rows of it may have taken effect"

    def stopped_by(self, what: str, why: str, todo: str) -> RowRefused:
        """The error for a row that stops the epoch."""
        return RowRefused(f"{what}. {self.stays}", why, f"{todo}; {RESUME}")
