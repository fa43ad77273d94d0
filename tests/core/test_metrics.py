"""What `sparkonce metrics`, `watch` and `status` tell of the sinks of a store."""

from __future__ import annotations

import io
import time
from unittest.mock import Mock

import click
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console
from tests.ledgers import ledger_of, with_fields
from tests.scenarios import MemoryWorld, decide_and_die

from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.totals import Pace, followed
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.operate.arguments import FEW, PAGE, listed
from sparkonce.operate.watching import FIGURES, Ledgers, board, rate
from sparkonce.protocol import Manifest, Part, Staged
from sparkonce.tck.simulation.actors import Query

Told = dict[tuple[str, str], float]


def told(admin: Admin) -> Told:
    """Each sample that the parser of OpenMetrics finds, by its name and its sink."""
    registry = CollectorRegistry()
    registry.register(Ledgers(admin))
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name, sample.labels.get("sink", "")): sample.value
        for family in families
        for sample in family.samples
    }


def test_each_metric_is_told_of_a_sink_that_has_decided(world: MemoryWorld, admin: Admin) -> None:
    query = Query(world, checkpoint="/checkpoint")
    run = query.start()
    run.write(0, ["x", "y", "z"])
    run.write(1, ["x", "y"])
    samples = told(admin)
    expected = {one.name + "_total" * one.counts for one in FIGURES}
    assert {name for name, sink in samples if sink} == expected
    assert samples["sparkonce_up", ""] == 1
    wanted = {"epoch": 1, "epochs_total": 2, "rows_total": 5, "last_epoch_rows": 2}
    assert wanted == {name: samples[f"sparkonce_{name}", query.name] for name in wanted}
    assert samples["sparkonce_epoch_unfinished", query.name] == 0
    assert samples["sparkonce_last_epoch_bytes", query.name] > 0
    assert 0 <= samples["sparkonce_epoch_age_seconds", query.name] < 60


def test_a_batch_never_comes_late(world: MemoryWorld, admin: Admin) -> None:
    query = Query(world, checkpoint=None)
    query.start().write(0, ["x"])
    assert ("sparkonce_epoch_age_seconds", query.name) not in told(admin)


def test_what_waits_and_what_is_staged_is_told() -> None:
    query = Query(MemoryWorld(whole_epochs=False))
    decide_and_die(query, 0, ["a", "b", "c"])
    samples = told(Admin(query.world.memory))
    assert samples["sparkonce_epoch_unfinished", query.name] == 1
    assert samples["sparkonce_staged_attempts", query.name] == 1
    assert samples["sparkonce_staged_bytes", query.name] > 0


def test_a_store_that_does_not_answer_is_told_as_such(
    world: MemoryWorld, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    Query(world).start().write(0, ["x"])

    monkeypatch.setattr(world.memory, "names", Mock(side_effect=StoreUnreachable("no answer")))
    assert told(admin) == {("sparkonce_up", ""): 0}


# -- the rate


def ledger(*decided: float, rows: int = 60) -> Ledger:
    history = ""
    for epoch, at in enumerate(decided):
        history = followed(history, Pace(epoch, at, rows, 0, 1, 1, 0.0, 0.0))
    return ledger_of("s", "q", "t", history=history)


@pytest.mark.parametrize(
    ("decided", "wanted"),
    [
        ((), 0),
        ((990.0,), 0),
        ((970.0, 980.0, 990.0, 1000.0), 6.0),
        ((100.0, 970.0, 1000.0), 2.0),
        ((400.0, 700.0, 1000.0), 0.2),
        ((400.0, 460.0), 60 / 540),
    ],
    ids=["none", "one", "of a minute", "old ones do not count", "every 5 min", "it stands still"],
)
def test_the_rate_is_that_of_the_last_epochs(decided: tuple[float, ...], wanted: float) -> None:
    assert rate(ledger(*decided), 1000.0) == pytest.approx(wanted)


# -- the board


DRAWN_ID = "82867d58-4c67-4785-9090-8c271a04aa0c"


def test_the_board_shows_each_sink_and_what_it_waits_for(world: MemoryWorld, admin: Admin) -> None:
    Query(world, id="done", checkpoint="/a").start().write(0, ["x", "y"])
    Query(world, id="new", checkpoint="/b").start().stage(0, ["x"])
    Query(world, id=DRAWN_ID, checkpoint="/c").start().write(0, ["z"])
    out = io.StringIO()
    Console(file=out, width=160).print(board(admin.sinks()))
    _, head, *lines = (line.split() for line in out.getvalue().splitlines())
    assert head[:2] == ["sink", "target"]
    by_id = {line[0]: line for line in lines}
    assert set(by_id) == {"done", "new", DRAWN_ID[:8]}
    assert by_id["new"][-3:] == ["its", "first", "epoch"]
    assert world.plan.target in by_id["done"]


# -- what `sparkonce status` shows of few sinks and of many


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
    columns = "SINK EPOCH WRITTEN ROWS LETTERS STAGED STATE TARGET"
    assert " ".join(head.split()) == columns
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
    assert "decided, 1 chunk to apply: restart the query, or run recover" in lines[1]
    assert lines[-1].startswith("and 260 more, ")
    assert len(listed(sinks, every=True).splitlines()) == 301


def test_a_sink_that_has_decided_nothing_is_among_them() -> None:
    staged = Staged("a", "q", 0, chunks=2, age=1.0)
    lines = listed([SinkStatus("new", None, (staged,)), *map(sink, range(FEW))]).splitlines()
    assert lines[1].split() == ["new", "2", "nothing", "decided", "yet"]
