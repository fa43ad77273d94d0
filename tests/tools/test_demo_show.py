"""The progress of the demo, as a log sees it: a line now and then."""

from __future__ import annotations

import io
import re

from demo.ledgers import STREAMS, Stream
from demo.show import Board
from rich.console import Console


class Log:
    """A board that writes to a log, with a clock of its own."""

    def __init__(self) -> None:
        self.now, self._told = 0.0, io.StringIO()
        self.board = Board(Console(file=self._told, width=200), 100_000, lambda: self.now)

    def update(self, second: float, rows: int, state: str = "running") -> None:
        self.now = second
        self.board.update(dict.fromkeys(STREAMS, Stream(rows=rows)), state)

    def lines(self) -> list[str]:
        return self._told.getvalue().splitlines()

    def seconds(self) -> list[float]:
        """When the lines came."""
        return [float(line.split()[0]) for line in self.lines()]


def test_the_rate_is_told_while_rows_arrive_and_never_as_zero() -> None:
    """Rows come at the end of an epoch; here each takes seven seconds, and the first thirteen."""
    log = Log()
    for second in range(90):
        log.update(second, 10_000 * max(0, (second - 6) // 7))
    lines = log.lines()
    assert len(lines) >= 10
    assert all("rows/s" not in line for line in lines if f"{STREAMS[0]} 0 rows" in line)
    arriving = [line for line in lines if f"{STREAMS[0]} 0 rows" not in line]
    assert all(re.search(r" [1-9][0-9,]* rows/s", line) for line in arriving), arriving


def test_other_counts_are_told_every_five_seconds() -> None:
    log = Log()
    for second in range(21):
        log.update(second, second)
    assert log.seconds() == [0, 5, 10, 15, 20]


def test_the_same_counts_are_told_once_a_minute_whatever_the_state() -> None:
    log = Log()
    for second in range(200):
        log.update(second, 7, f"the driver used {second} s of CPU")
    assert log.seconds() == [0, 60, 120, 180]
    assert log.lines()[-1].endswith("7 rows; the driver used 180 s of CPU")


def test_counts_that_change_after_a_silence_are_told_at_once() -> None:
    log = Log()
    for second in range(70):
        log.update(second, 0 if second < 67 else 1)
    assert log.seconds() == [0, 60, 67]
