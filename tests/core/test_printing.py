"""What `sparkonce status` shows of few sinks and of many."""

from __future__ import annotations

import time

import click
from tests.ledgers import ledger_of, with_fields

from sparkonce.operate.admin import SinkStatus
from sparkonce.operate.arguments import FEW, PAGE, listed
from sparkonce.protocol import Manifest, Part, Staged


def sink(number: int, **more: object) -> SinkStatus:
    written = time.time() - 60 * number
    ledger = ledger_of(f"sink-{number}", "q", target="t", epoch=7, rows=1234, updated=written)
    return SinkStatus(ledger.name, with_fields(ledger, **more), ())


def decided(name: str) -> Manifest:
    return Manifest(name, 1, "q", 7, "token", "t", {}, (Part(0, "a", (5,), (9,)),))


def test_few_sinks_are_told_line_by_line() -> None:
    shown = click.unstyle(listed([sink(number) for number in range(FEW)]))
    assert shown.count("  rows         1,234 in 0 epochs\n") == FEW


def test_many_sinks_are_a_line_each() -> None:
    head, *lines = listed([sink(number) for number in range(FEW + 1)]).splitlines()
    assert head.split() == [
        "SINK",
        "EPOCH",
        "WRITTEN",
        "ROWS",
        "LETTERS",
        "STAGED",
        "STATE",
        "TARGET",
    ]
    assert [line.split()[0] for line in lines] == [f"sink-{number}" for number in range(FEW + 1)]
    assert lines[2].split() == ["sink-2", "7", "2", "min", "ago", "1,234", "nothing", "waits", "t"]


def test_hundreds_of_sinks_are_a_page_and_those_that_wait_come_first() -> None:
    sinks = [sink(number) for number in range(300)]
    sinks[250] = sink(250, manifest=decided("sink-250"))
    staged = Staged("a", "q", 8, chunks=3, age=1.0)
    sinks[270] = SinkStatus("sink-270", sinks[270].ledger, (staged,))
    lines = listed(sinks).splitlines()
    assert len(lines) == PAGE + 2
    assert [line.split()[0] for line in lines[1:4]] == ["sink-250", "sink-270", "sink-0"]
    assert "decided, 1 chunks to apply: run recover" in lines[1]
    assert lines[-1].startswith("and 260 more, ")
    assert len(listed(sinks, every=True).splitlines()) == 301


def test_a_sink_that_has_decided_nothing_is_among_them() -> None:
    staged = Staged("a", "q", 0, chunks=2, age=1.0)
    lines = listed([SinkStatus("new", None, (staged,)), *map(sink, range(FEW))]).splitlines()
    assert lines[1].split() == ["new", "2", "nothing", "decided", "yet"]
