"""What chaos runs are judged by must see harm where harm was done, in every real store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery
from integration.support.servers.elasticsearch import connect
from integration.support.servers.finder import or_skip
from tools.chaos.elasticsearch import VISIBLE
from tools.chaos.oracle import Verdict, compare
from tools.chaos.target import COUNTERS, MAKERS, ROWS, SIDES, Target, maker
from tools.chaos.topic import Event

pytestmark = pytest.mark.slow
EVENTS = [Event(0, offset, bucket=offset % 3, amount=10 + offset) for offset in range(6)]
PLACE = [("part", pa.int32()), ("place", pa.int64())]
SUMS = [("n", pa.int64()), ("amount", pa.int64())]
MANY = 20_000
"""Rows of an epoch that no store applies with its decision, in one step."""
QUERIES = {"redis": DirectQuery, "mysql": MySqlQuery, "elasticsearch": ElasticsearchQuery}


@pytest.fixture(params=MAKERS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    made = or_skip(lambda: maker(request.param)(None))
    with made.server:
        made.prepare()
        yield made


def query(target: Target, name: str, url: str | None = None) -> DirectQuery:
    adds = target.options(name)["writeMode"] == "increment"
    where = PLACE if name == ROWS else [("side", pa.string()), ("bucket", pa.int32())]
    schema = pa.schema([*where, *(SUMS if adds else SUMS[1:])])
    made = QUERIES[target.format](schema, url=url or target.url, **target.options(name))
    made.sink.check()
    return made


def rows(events: list[Event]) -> list[dict[str, Any]]:
    return [
        {"part": one.partition, "place": one.offset, "n": 1, "amount": one.amount} for one in events
    ]


def counters(events: list[Event], *sides: str) -> list[dict[str, Any]]:
    return [
        {"side": side, "bucket": one.bucket, "n": 1, "amount": one.amount}
        for one in events
        for side in sides
    ]


def verdict(target: Target, events: list[Event]) -> Verdict:
    return compare(events, target.rows(), target.counters())


def test_lost_doubled_torn_and_left_rows_are_seen(target: Target) -> None:
    writing, counting = query(target, ROWS), query(target, COUNTERS)
    writing.run(0, rows(EVENTS))
    counting.run(0, counters(EVENTS, *SIDES))
    assert verdict(target, EVENTS) == Verdict(len(EVENTS), lost=0, duplicated=0)
    assert target.residue() == []
    sides = target.watch()
    left, right = sides()
    assert left == right == len(EVENTS)

    more = [*EVENTS, Event(1, 0, bucket=0, amount=5)]
    assert verdict(target, more) == Verdict(len(more), lost=3, duplicated=0)

    writing.run(1, rows(EVENTS[:1]))
    assert verdict(target, EVENTS) == Verdict(len(EVENTS), lost=0, duplicated=1)
    counting.run(1, counters(EVENTS[1:2], "left"))
    assert verdict(target, EVENTS) == Verdict(len(EVENTS), lost=0, duplicated=2)

    if target.whole:
        sides()
        tear(target)
        left, right = sides()
        assert left != right

    writing.stage(2, rows(EVENTS))
    assert target.residue()


def test_each_point_that_faults_strike_at_is_passed(target: Target) -> None:
    """A point whose request has changed would only be missed in long runs."""
    passed: set[str] = set()

    def look(request: bytes) -> bool:
        passed.update(name for name, matches in target.points.items() if matches(request))
        return False

    with target.proxy() as proxy:
        writing = query(target, ROWS, proxy.url)
        proxy.stall(look)
        writing.run(0, rows(EVENTS))
        writing.run(1, rows([Event(1, offset, bucket=0, amount=1) for offset in range(MANY)]))
    assert passed == {*target.points}


def tear(target: Target) -> None:
    """A reader that has seen epochs sees more of one of them; the others' sides differ already."""
    if target.format == "elasticsearch":
        with connect(target.url) as client:
            client.indices.refresh(index=VISIBLE)
            (hit,) = client.search(index=VISIBLE, size=1)["hits"]["hits"]
            client.index(index=hit["_index"], document=hit["_source"], refresh=True)
