"""The loop that takes a decided epoch into a target, the same for every store.

The loop resumes at the target's progress, counts bad rows, puts them aside, reports progress, and
keeps the decision where a row fails. A connector supplies the steps. Each step is atomic in its
store: a step that runs twice, or an hour late, changes nothing. A store that applies a whole epoch
in one step does so in `Store.publish`, and uses the loop only for larger epochs.
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
    """What each step gives, in their order. One that fails lets no other begin.

    Args:
        steps: taken one by one, at most one more than run at once.
        width: how many run at once.
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

    The pool's threads look here: who waits for the steps hears of a failure too late, when the
    thread that had it may already be at the next one.
    """

    def __init__(self) -> None:
        self._failure: BaseException | None = None

    def take(self, step: Callable[[], T]) -> T:
        # No lock: a step that slips in just now could as well have begun just before the failure.
        if self._failure is not None:
            raise self._failure
        try:
            return step()
        except BaseException as failure:
            self._failure = failure
            raise


GOES_ON = (
    "then restart the query, or run `sparkonce recover`: it goes on where it stopped, and doubles"
    " nothing"
)

C = TypeVar("C")
"""What applying one chunk gives: all that putting its bad rows aside needs."""


class DecisionOver(Exception):
    """Nothing is left to do: another decision came, or another driver has applied this one."""


class EpochDelivery(ABC, Generic[C]):
    """One decided epoch on its way into the target.

    Args:
        manifest: the decision.
        most: how many of its rows may become dead letters.
        place: where dead letters are kept, in words; None where a bad row stops the epoch.

    Attributes:
        chunks: of the manifest, in the order in which they are applied.
        counter: the bad rows of the epoch, those of earlier tries too.
        had: how many chunks the target had before, as far as its steps tell; their rows are no
            progress of this try.
        width: how many chunks are applied at once; more than one only where their order says
            nothing.
        ends_in_last_chunk: whether the step of the last chunk calls `end` itself, since what it
            checks and writes belongs into that step.
    """

    width = 1
    ends_in_last_chunk = False

    def __init__(self, manifest: Manifest, most: MaxBadRows, place: str | None) -> None:
        self.manifest, self.place = manifest, place
        self.chunks, self.had = manifest.chunks, 0
        # Without a place a new bad row stops the epoch, and those put aside before only count.
        self.counter = BadRowCounter(most if place else ALL, manifest)

    # -- the steps of a store

    @abstractmethod
    def resume(self) -> int:
        """How many chunks the target has, of whose bad rows the counter now knows.

        A store whose `apply_chunk` finds that out by itself gives 0.

        Raises:
            DecisionOver: the decision is another one by now, or finished.
        """

    @abstractmethod
    def apply_chunk(self, ordinal: int) -> C:
        """Apply a chunk, unless the target has it. With a `width` above 1 threads call this.

        Raises:
            DecisionOver: as `resume`.
            TooManyBadRows: more rows can't be stored than may go aside.
            RowRefused: a row can't be stored, and there is no place for it.
            StoreLostData: the chunk is gone.
        """

    def put_aside(self, ordinal: int, chunk: C) -> None:
        """Make dead letters of the bad rows of an applied chunk.

        A store whose notes are final holds them, as long as none of the epoch's rows was stored:
        the target may be at fault, and the rows good ones.
        """

    def put_aside_held(self) -> None:
        """Make dead letters of all that `put_aside` has held."""

    def show(self) -> None:
        """Let readers see the epoch, where they see epochs as a whole."""

    def take_back(self) -> None:
        """Have rows tried again of which none was stored, once the target is mended."""

    # -- the loop

    def apply(self, advance: Advance) -> Applied:
        """Apply what the target lacks; see `Store.apply`.

        Raises:
            RowRefused: a row can't be stored, or too many; a later call goes on from it.
        """
        try:
            with self.stays_decided():
                done = self.resume()
                if self.chunks and done >= len(self.chunks):
                    return self.counter.applied
                # Closed before an error leaves: who tries again meets no thread of this try.
                with closing(self._applied(done)) as found:
                    for ordinal, chunk in enumerate(found, done):
                        self.put_aside(ordinal, chunk)
                        part, seq = self.chunks[ordinal]
                        if ordinal >= self.had:
                            advance(part.rows[seq])
                if not (self.chunks and self.ends_in_last_chunk):
                    self.end()
        except DecisionOver:
            pass  # the caller's swap finds what came instead
        return self.counter.applied

    def _applied(self, done: int) -> Generator[C, None, None]:
        """Each chunk behind so many, in order, once it is applied."""
        steps = (partial(self.apply_chunk, ordinal) for ordinal in range(done, len(self.chunks)))
        if self.width > 1:
            yield from in_order(steps, self.width, "sparkonce-apply")
        else:  # in this thread: a chunk waits until the dead letters of the one before are written
            yield from (step() for step in steps)

    def end(self) -> None:
        """See that the target is not at fault, put aside what was held, and say so once.

        Raises:
            TooManyBadRows: no row was stored for long.
        """
        self.counter.end()
        self.put_aside_held()
        self.show()
        self.counter.warn(self.place or "dead letters")

    @contextmanager
    def stays_decided(self) -> Iterator[None]:
        """Within, an epoch with too many bad rows stops, and goes on later."""
        try:
            yield
        except TooManyBadRows as error:
            self.take_back()
            raise RowRefused(f"{error.what}. {self.stays}", error.why, error.todo) from None

    @property
    def stays(self) -> str:
        """What has become of the epoch where one of its rows stops it."""
        return f"Epoch {self.manifest.epoch} stays decided; other rows of it may have taken effect"

    def stopped_by(self, what: str, why: str, todo: str) -> RowRefused:
        """The error for a row that stops the epoch."""
        return RowRefused(f"{what}. {self.stays}", why, f"{todo}; {GOES_ON}")
