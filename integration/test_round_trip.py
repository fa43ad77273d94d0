"""Every type through each store, by our sinks and back by our readers: the same values, once."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from integration.support.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery

from sparkonce import options
from sparkonce.reading import Scan
from sparkonce.store import load

Row = dict[str, Any]
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
        self,
        query: DirectQuery,
        seen: Callable[[], object] = lambda: None,
        stored: Callable[[Any], Any] = lambda value: value,
        **raw: str,
    ) -> None:
        self.query, self.seen, self.stored = query, seen, stored
        query.sink.check()
        self.connector = load(query.connector)
        self.options = options.parse(self.connector.reads, raw)
        self.epochs, self.ids = count(), count()

    def require_same(self, rows: list[Row]) -> None:
        """What is written in two partitions is read, each row once."""
        named = [{"id": next(self.ids), **row} for row in rows]
        half = len(named) // 2
        self.query.run(next(self.epochs), named[:half], named[half:])
        self.seen()
        source = self.connector.source(self.options, Scan(SCHEMA))
        found = [batch for split in source.splits() for batch in source.read(split)]
        first = named[0]["id"]
        read = [row for batch in found for row in batch.to_pylist() if row["id"] >= first]
        written = pa.Table.from_pylist(named, SCHEMA).to_pylist()
        kept = [{name: self.stored(value) for name, value in row.items()} for row in written]
        assert shown(read) == shown(kept)


def shown(rows: list[Row]) -> list[str]:
    """Rows as texts, so that -0.0 is not 0.0; the keys of a map have no order."""
    sort = [{**row, "counts": row["counts"] and sorted(row["counts"])} for row in rows]
    return sorted(map(repr, sort))


MANY = settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],  # an epoch that failed stops those after it
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)


def _in_mariadb(value: Any) -> Any:
    """MariaDB stores no negative zero."""
    return 0.0 if isinstance(value, float) and not value else value


class RoundTrip:
    """What holds in each store."""

    @MANY
    @given(rows=ROWS)
    def test_what_was_written_comes_back(self, way: Way, rows: list[Row]) -> None:
        way.require_same(rows)


class TestRedis(RoundTrip):
    @pytest.fixture(params=["hash", "string"])
    def way(self, request: pytest.FixtureRequest, redis_url: str, unique: str) -> Way:
        raw = {"url": redis_url, "key": f"{unique}:{{id}}", "model": request.param}
        return Way(DirectQuery(SCHEMA, **raw), **raw)


class TestMySql(RoundTrip):
    @pytest.fixture
    def way(self, mysql_url: str, mysql_name: str, table: str) -> Way:
        raw = {"url": mysql_url, "dbtable": table}
        query = MySqlQuery(SCHEMA, **raw, key="id", createTable="true")
        return Way(query, stored=_in_mariadb if mysql_name == "mariadb" else lambda one: one, **raw)


class TestElasticsearch(RoundTrip):
    @pytest.fixture
    def way(self, elasticsearch_url: str, elastic: Elasticsearch, index: str) -> Way:
        raw = {"url": elasticsearch_url, "index": index}
        query = ElasticsearchQuery(SCHEMA, **raw, key="id", createIndex="true")
        return Way(query, seen=lambda: elastic.indices.refresh(index=index), **raw)
