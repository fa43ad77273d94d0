"""One run of the demo: start the driver, kill it half-way in the middle of a commit, go on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from demo.ledgers import STREAMS, Caught, Ledgers, Streams
from demo.process import Child, DemoDriver
from demo.show import Board

PATIENCE = 20 * 60.0
"""Seconds without a row after which the driver counts as stuck, also on a busy machine."""


class Run:
    """Two drivers, one after the other, and what the ledgers tell meanwhile."""

    def __init__(self, driver: DemoDriver, ledgers: Ledgers, board: Board, total: int) -> None:
        self.driver, self.ledgers, self.board = driver, ledgers, board
        self._total = total * len(STREAMS)

    def __call__(self) -> dict[str, Caught]:
        """How SIGKILL caught each stream. Afterwards both have ended by themselves."""
        self.board.event("driver started")
        with self.driver.start() as first:
            self._follow(first, lambda streams: self._share(streams) > 0.42)
            family = first.family()
            self._follow(first, self._is_mid_commit, "running", pause=0.001)
            first.kill(family)
            if first.status != -signal.SIGKILL:
                raise self.driver.failed("The driver ended before it could be killed")
        caught = self._show_kill(len(family))
        self.board.event("driver started again, and nothing else done")
        with self.driver.start() as second:
            self._follow(second, lambda _: False, "restarted, Spark starts")
            if second.status:
                raise self.driver.failed(f"The driver ended with status {second.status}")
        self.board.event("driver ended: all files are read")
        return caught

    def _share(self, streams: Streams) -> float:
        return rows_of(streams) / self._total

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
        last, since = rows_of(streams), time.monotonic()
        while child.status is None and not enough(streams):
            self.board.update(streams, state)
            time.sleep(pause)
            streams = self.ledgers.read()
            if rows_of(streams) > last:
                last, since, state = rows_of(streams), time.monotonic(), "running"
            if time.monotonic() - since > PATIENCE:
                raise self.driver.failed(f"No row came for {PATIENCE / 60:.0f} minutes")
        self.board.update(streams, "running")

    def _show_kill(self, processes: int) -> dict[str, Caught]:
        streams, caught = self.ledgers.read(), self.ledgers.caught()
        self.board.update(streams, "killed")
        share = self._share(streams)
        told = f"kill -9: {processes} processes gone, {share:.0%} of the rows are in"
        self.board.event(told, caught)
        return caught


def rows_of(streams: Streams) -> int:
    """Rows in both streams."""
    return sum(stream.rows for stream in streams.values())
