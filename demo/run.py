"""One run of the demo: start the driver, kill it half-way in the middle of a commit, go on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence

import psutil

from demo.launch import DemoDriver
from demo.ledgers import STREAMS, Caught, Ledgers
from demo.patience import Patience
from demo.process import Child
from demo.show import Board, Streams
from demo.trouble import Trouble


class Run:
    """Two drivers, one after the other, and what the ledgers tell meanwhile."""

    def __init__(
        self,
        driver: DemoDriver,
        ledgers: Ledgers,
        board: Board,
        total: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.driver, self.ledgers, self.board = driver, ledgers, board
        self.total, self._clock = total * len(STREAMS), clock

    def __call__(self) -> dict[str, Caught]:
        """How SIGKILL caught each stream. Afterwards both have ended by themselves."""
        with self._started("driver started") as first:
            self._follow(first, lambda streams: self._share(streams) > 0.42)
            family = first.family()
            self._follow(first, self._is_mid_commit, "running", pause=0.001)
            caught = self._kill(first, family)
        with self._started("driver started again, and nothing else done") as second:
            self._follow(second, lambda _: False, "restarted, Spark starts")
            if second.status:
                raise self._failed(f"The driver ended with status {second.status}")
        self.board.event("driver ended: all files are read")
        return caught

    def _started(self, event: str) -> Child:
        self.board.event(event)
        return self.driver.start()

    def _share(self, streams: Streams) -> float:
        return rows(streams) / self.total

    def _is_mid_commit(self, streams: Streams) -> bool:
        """Whether this is the worst moment: counters of an epoch are just being added.

        At best the other stream has rows staged for an epoch that is not decided. But it must not
        take too long to find such a moment: the killing is for half-way.
        """
        share, adding = self._share(streams), streams["airports"].applying
        return share > 0.8 or (adding and (share > 0.58 or streams["flights"].staging))

    def _follow(
        self,
        child: Child,
        enough: Callable[[Streams], bool],
        state: str = "Spark starts",
        pause: float = 0.05,
    ) -> None:
        """Show the progress until there is enough, or the driver has ended."""
        streams = self.ledgers.read()
        last, patience = rows(streams), Patience(child.family, self.driver.log, self._clock)
        while child.status is None and not enough(streams):
            self.board.update(streams, patience.tell(state))
            time.sleep(pause)
            streams = self.ledgers.read()
            if rows(streams) > last:
                last, state = rows(streams), "running"
                patience.renew()
            patience.look()
            if patience.exhausted:
                raise self._failed(patience.verdict())
        self.board.update(streams, "running")

    def _kill(self, child: Child, family: Sequence[psutil.Process]) -> dict[str, Caught]:
        child.kill(family)
        if child.status != -signal.SIGKILL:
            raise self._failed("The driver ended before it could be killed")
        streams = self.ledgers.read()
        self.board.update(streams, "killed")
        share = self._share(streams)
        self.board.event(f"kill -9: {len(family)} processes gone, {share:.0%} of the rows are in")
        caught = self.ledgers.caught()
        self.board.killed(caught)
        return caught

    def _failed(self, why: str) -> Trouble:
        return Trouble(f"{why}. The end of {self.driver.shown_log}:\n{self.driver.last_words()}")


def rows(streams: Streams) -> int:
    """Rows in both streams."""
    return sum(stream.rows for stream in streams.values())
