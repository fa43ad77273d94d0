"""The progress of the demo, as a log sees it: a line now and then."""

from __future__ import annotations

import io
import re

import pytest
from demo import show
from demo.ledgers import STREAMS, Stream
from rich.console import Console


def test_the_rate_is_told_while_rows_arrive_and_never_as_zero(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows come at the end of an epoch; here each takes seven seconds, and the first thirteen."""
    now = 0.0
    monkeypatch.setattr(show.time, "monotonic", lambda: now)
    told = io.StringIO()
    with show.Board(Console(file=told, width=200), 100_000) as board:
        board.event("driver started")
        for second in range(60):
            now = float(second)
            rows = 10_000 * max(0, (second - 6) // 7)
            board.update(dict.fromkeys(STREAMS, Stream(rows=rows)), "running")
    lines = [line for line in told.getvalue().splitlines() if "rows" in line]
    assert len(lines) >= 10
    assert all("rows/s" not in line for line in lines if f"{STREAMS[0]} 0 rows" in line)
    arriving = [line for line in lines if f"{STREAMS[0]} 0 rows" not in line]
    assert all(re.search(r" [1-9][0-9,]* rows/s", line) for line in arriving), arriving
