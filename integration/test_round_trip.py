"""Every type through each store, by our sinks and back by our readers: the same values, once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from integration.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery

from sparkonce import options
from sparkonce.reading import Scan
from sparkonce.registry import load

UTC = dt.timezone.utc
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAME = st.text("abc.é ", min_size=1, max_size=5)
FIRST, LAST = dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
MOMENTS = st.datetimes(FIRST, LAST)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return st.integers(-most, most).map(
        lambda digits: Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -scale))
    )


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "flag": (pa.bool_(), st.booleans()),
    "tiny": (pa.int8(), integers(8)),
    "small": (pa.int16(), integers(16)),
    "whole": (pa.int32(), integers(32)),
    "big": (pa.int64(), integers(64)),
    "single": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "real": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "exact": (pa.decimal128(38, 18), decimals(38, 18)),
    "money": (pa.decimal128(10, 2), decimals(10, 2)),
    "name": (pa.string(), TEXT),
    "raw": (pa.binary(), st.binary(max_size=12)),
    "day": (pa.date32(), st.dates(FIRST.date(), LAST.date())),
    "at": (pa.timestamp("us", "UTC"), MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    "clock": (pa.timestamp("us"), MOMENTS),
    "time": (pa.time64("ns"), st.times()),
    "took": (pa.duration("us"), integers(62).map(lambda us: dt.timedelta(microseconds=us // 10))),
    "tags": (pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    "counts": (pa.map_(pa.string(), pa.int64()), st.dictionaries(NAME, integers(64), max_size=3)),
    "inner": (
        pa.struct([("x", pa.int64()), ("y", pa.list_(pa.decimal128(10, 2)))]),
        st.fixed_dictionaries({"x": integers(64), "y": st.lists(decimals(10, 2), max_size=2)}),
    ),
}
SCHEMA = pa.schema([("id", pa.int64()), *((name, kind) for name, (kind, _) in TYPES.items())])
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, (_, values) in TYPES.items()}),
    min_size=1,
    max_size=15,
)


class Way:
    """A sink, and the reader of the same place."""

    def __init__(
        self, query: DirectQuery, name: str, seen: Callable[[], object], **raw: str
    ) -> None:
        self.query, self.seen = query, seen
        query.sink.check()
        self.connector = load(query.connector)
        self.options = options.parse(self.connector.reads, {"url": query.options["url"], **raw})
        self.epochs, self.ids = count(), count()
        self.name = name

    def through(self, rows: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
        """What was written, and what is read of it."""
        named = [{"id": next(self.ids), **row} for row in rows]
        written = pa.Table.from_pylist(named, SCHEMA)
        half = len(named) // 2
        self.query.run(next(self.epochs), named[:half], named[half:])
        self.seen()
        source = self.connector.source(self.options, Scan(SCHEMA))
        found = [batch for split in source.splits() for batch in source.read(split)]
        first = named[0]["id"]
        read = [row for batch in found for row in batch.to_pylist() if row["id"] >= first]
        return shown(written.to_pylist()), shown(read)


def shown(rows: list[dict[str, Any]]) -> list[str]:
    """Rows as texts, so that -0.0 is not 0.0; the keys of a map have no order."""
    sort = [{**row, "counts": row["counts"] and sorted(row["counts"])} for row in rows]
    return sorted(map(repr, sort))


WAYS = ["redis hash", "redis string", "mysql", "elasticsearch"]


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, unique: str) -> Iterator[Way]:
    given = request.getfixturevalue
    nothing = lambda: None  # noqa: E731
    if request.param.startswith("redis"):
        url, model = given("redis_url"), request.param.split()[1]
        raw = {"url": url, "key": f"{unique}:{{id}}", "model": model}
        yield Way(DirectQuery(SCHEMA, **raw), request.param, nothing, **raw)
    elif request.param == "mysql":
        raw = {"url": given("mysql_url"), "dbtable": given("table")}
        query = MySqlQuery(SCHEMA, **raw, key="id", createTable="true")
        yield Way(query, request.param, nothing, **raw)
    else:
        client: Elasticsearch = given("elastic")
        raw = {"url": given("elasticsearch_url"), "index": given("index")}
        query = ElasticsearchQuery(SCHEMA, **raw, key="id", createIndex="true")
        yield Way(query, request.param, lambda: client.indices.refresh(index=unique), **raw)


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],  # an epoch that failed stops those after it
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(rows=ROWS)
def test_what_a_sink_wrote_its_reader_gives_back(way: Way, rows: list[dict[str, Any]]) -> None:
    written, read = way.through(rows)
    assert read == written
