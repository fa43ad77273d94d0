"""How many rows of an epoch may go into dead letters, and what a letter holds."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledgers import ledger_of

from sparkonce.errors import BadRow, OptionError
from sparkonce.exactly_once.bad_rows import (
    NONE,
    BadRowCounter,
    Count,
    MaxBadRows,
    TooManyBadRows,
    max_bad_rows,
)
from sparkonce.exactly_once.driver import Policy
from sparkonce.protocol import Applied, Manifest, Part, Receipt
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.values import from_json, letters, spark_types, text

TENTH = max_bad_rows("10%")


def manifest(rows: int, unstored: int = 0) -> Manifest:
    parts = (Part(0, "attempt", (rows,), (8,)),)
    return Manifest("sink", 1, "query", 7, "token", "target", {}, parts, unstored=unstored)


@pytest.mark.parametrize(
    ("text", "rows", "most"),
    [
        ("10%", 2000, 200),
        ("10%", 2009, 200),
        ("10%", 20, 10),
        ("0%", 5000, 10),
        ("0.5%", 10_000, 50),
        ("100%", 3, 10),
        ("100 %", 3000, 3000),
        ("250", 10, 250),
        ("0", 5000, 0),
    ],
)
def test_a_number_or_a_share_may_go_aside_and_of_a_share_always_ten(
    text: str, rows: int, most: int
) -> None:
    assert max_bad_rows(text).of(rows) == most
    assert str(max_bad_rows(text)) == text


@pytest.mark.parametrize("text", ["", "-1", "0.1", "101%", "10 rows", "%", "1e3", "ten"])
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"such as 100, or a percentage .* such as 10%"):
        max_bad_rows(text)


def test_one_more_than_may_stops_and_the_reasons_are_told_with_their_counts() -> None:
    tally = BadRowCounter(TENTH, manifest(200))
    for n in range(15):
        tally.add("no partition", f"1526 no partition for {n}")
    for _ in range(5):
        tally.add("too long", "1406 Data too long")
    with pytest.raises(
        TooManyBadRows, match="21 of the 200 rows of epoch 7 can't be stored"
    ) as said:
        tally.add("too long", "1406 Data too long")
    assert "allows 20: " in said.value.what
    assert "15 x no partition, such as: 1526 no partition for 0; 6 x too long" in said.value.what
    assert "maxBadRows" in said.value.todo


def test_reasons_that_never_end_are_told_together() -> None:
    count = Count()
    for n in range(1000):
        count.add(f"kind {n}", "x" * 10_000)
    assert count.rows == 1000
    assert count.kinds["other reasons"] == (992, "")
    assert len(str(count)) < 4000


def test_rows_that_were_refused_before_a_restart_count() -> None:
    tally = BadRowCounter(TENTH, manifest(200))
    tally.resume(rows=50, aside=20)
    with pytest.raises(TooManyBadRows, match="20 x refused before a restart"):
        tally.add("too long", "1406")


@pytest.mark.parametrize(
    ("stored", "unstored", "bad", "stops"),
    [
        (False, 0, 10, False),
        (False, 1, 10, True),
        (False, 10, 1, True),
        (True, 500, 10, False),
        (False, 500, 0, False),
    ],
)
def test_epochs_of_which_no_row_is_stored_count_together(
    stored: bool, unstored: int, bad: int, stops: bool
) -> None:
    tally = BadRowCounter(TENTH, manifest(10, unstored))
    tally.add("closed", "1644 closed", bad) if bad else None
    tally.stored = stored
    if not stops:
        tally.end()
        assert tally.applied == Applied(bad, stored or not bad)
        return
    with pytest.raises(TooManyBadRows, match="of earlier epochs"):
        tally.end()


@pytest.mark.parametrize(
    ("applied", "rows", "unstored"),
    [
        (Applied(3, stored=False), 3, 8),
        (Applied(3, stored=True), 9, 0),
        (Applied(), 9, 0),
        (Applied(), 0, 5),
    ],
)
def test_the_ledger_counts_on_while_no_row_is_stored(
    applied: Applied, rows: int, unstored: int
) -> None:
    ledger = ledger_of("sink", "query", "target", aside=6, unstored=5)
    done = ledger.decided(manifest(rows), "run").finished(applied)
    assert (done.totals.aside, done.totals.unstored) == (6 + applied.aside, unstored)


def refused_by_tasks(run: Run, epoch: int, rows: int, bad: int) -> list[Receipt]:
    """Two partitions, with these bad rows in the second one alone."""
    half = [f"a/{epoch}#{n}" for n in range(rows)]
    first, second = run.stage(epoch, half[bad:], half[:bad])
    return [first, replace(second, bad={"a key is null": (bad, "id=null")})]


def test_too_many_that_tasks_refuse_stop_an_epoch_before_it_is_decided(query: Query) -> None:
    run = query.start()
    committer = run.committer()
    committer.policy = Policy(repeatable=False, max_bad_rows=TENTH)
    committer.commit(run.driver(0), refused_by_tasks(run, 0, rows=1000, bad=10))
    receipts = refused_by_tasks(run, 1, rows=100, bad=11)
    with pytest.raises(BadRow, match=r"11 x a key is null, such as: id=null\. Nothing of"):
        committer.commit(run.driver(1), receipts)
    assert query.ledger.decision.epoch == 0
    committer.policy = Policy(repeatable=False, max_bad_rows=MaxBadRows("11", 11))
    assert committer.commit(run.driver(1), receipts).decision.epoch == 1


def test_a_replay_counts_nothing_again(query: Query) -> None:
    run = query.start()
    receipts = refused_by_tasks(run, 0, rows=10, bad=10)
    committer = run.committer()
    committer.policy = Policy(repeatable=False, max_bad_rows=TENTH)
    committer.commit(run.driver(0), receipts)
    committer.policy = Policy(repeatable=False, max_bad_rows=NONE)
    assert committer.commit(run.driver(0), receipts).decision.epoch == 0


# -- dead letters: rows as JSON that Spark reads back; what Spark makes of it, see integration


FORMS: list[tuple[str, Any, str]] = [
    ("boolean", True, "true"),
    ("bigint", 2**63 - 1, "9223372036854775807"),
    ("decimal(38,18)", Decimal("-1E-18"), "-0.000000000000000001"),
    ("float", 0.1, "0.1"),
    ("double", float("-inf"), '"-Infinity"'),
    ("string", "None", '"None"'),
    ("string", None, "null"),
    ("binary", b"\x00\xff", '"AP8="'),
    ("date", 2_932_897, '"+10000-01-01"'),
    ("date", -719_529, '"-0001-12-31"'),
    ("date", 2**31 - 1, '"+5881580-07-11"'),
    ("timestamp", 2**63 - 1, '"+294247-01-10T04:00:54.775807Z"'),
    ("timestamp_ntz", -(2**63), '"-290308-12-21T19:59:05.224192"'),
    ("time", 86_399_999_999_999, '"23:59:59.999999999"'),
    ("interval day to second", -1, "\"INTERVAL '-0 00:00:00.000001' DAY TO SECOND\""),
    ("interval hour to minute", 93_780_000_000, "\"INTERVAL '26:03' HOUR TO MINUTE\""),
    ("interval day", 86_400_000_000, "\"INTERVAL '1' DAY\""),
    ("interval second", 1_500_000, "\"INTERVAL '1.500000' SECOND\""),
    ("map<string,int>", [("a", 1), ("a", None)], '{"a": 1, "a": null}'),
    ("map<date,int>", [(0, 1)], '[{"key": "1970-01-01", "value": 1}]'),
    ("array<struct<a:int,`b c`:string>>", [{"a": 1}, None], '[{"a": 1, "b c": null}, null]'),
]


def letter(ddl: str, value: Any) -> letters.Letter:
    schema = spark_types.parse(f"k int, v {ddl}")
    columns = [pa.array([7], pa.int32()), pa.array([value], schema.field("v").type)]
    row = pa.record_batch(columns, names=["k", "v"])
    return letters.of_row("why", row, schema, ["k"])


@pytest.mark.parametrize(("ddl", "value", "form"), FORMS, ids=str)
def test_value_has_its_documented_form(ddl: str, value: Any, form: str) -> None:
    assert letter(ddl, value) == ("why", f'{{"k": 7, "v": {form}}}', '{"k": 7}', ())


def test_column_with_a_string_that_is_not_utf8_has_base64_instead_and_is_named() -> None:
    texts = pa.array([[b"\xff", b"a"]]).cast(pa.list_(pa.binary()))
    odd = pa.ListArray.from_arrays([0, 2], texts.flatten().view(pa.string()))
    row = pa.record_batch([odd], names=["v"])
    made = letters.of_row("why", row, spark_types.parse("v array<string>"))
    assert (made.row, made.base64) == ('{"v": ["/w==", "YQ=="]}', ("v",))


@pytest.mark.parametrize(("ddl", "value", "form"), FORMS, ids=str)
def test_what_a_store_has_as_text_becomes_the_same_letter(ddl: str, value: Any, form: str) -> None:
    """Where there is a text: not of years of five digits, nor of a key that is there twice."""
    schema = spark_types.parse(f"v {ddl}")
    column = pa.array([value], schema.field("v").type)
    try:
        (document,) = text.to_json(column).to_pylist()
    except ValueError:
        return
    tree = from_json.parse_tree(document) if document is not None else None
    assert letters.of_trees("", {"v": tree}, schema).row == f'{{"v": {form}}}'


@given(st.floats(width=32, allow_nan=False))
def test_float_comes_back_from_its_text_to_the_bit(value: float) -> None:
    column = pa.array([value], pa.float32())
    (document,) = text.to_json(column).to_pylist()
    assert from_json.array_of_tree(from_json.parse_tree(document), pa.float32()).equals(column)


@given(st.decimals(-(10**9), 10**9, allow_nan=False, allow_infinity=False, places=9))
def test_decimal_comes_back_whatever_scale_a_column_gave_it(value: Decimal) -> None:
    for shown in (f"{value:f}", f"{value:f}000"):
        assert from_json.array_of_tree(shown, pa.decimal128(38, 9)).to_pylist() == [value]


def test_value_that_a_store_bent_is_kept_as_its_text() -> None:
    made = letters.of_trees("", {"v": "0000-00-00"}, spark_types.parse("v date"))
    assert json.loads(made.row) == {"v": "0000-00-00"}


SCHEMAS = [
    "id bigint, name string",
    "`a b` decimal(10,2), `c``d` map<string collate UNICODE_CI,array<interval hour to second>>",
    "s struct<x:int,y:struct<z:binary>>, t timestamp, n timestamp_ntz, d date, u time(9), v void",
]


@pytest.mark.parametrize("ddl", SCHEMAS)
def test_schema_is_shown_as_it_is_read(ddl: str) -> None:
    assert spark_types.to_ddl(spark_types.parse(ddl)) == ddl


def test_schema_is_read_as_spark_writes_it() -> None:
    given = "ID: INT NOT NULL COMMENT 'it''s', n NUMERIC, c CHAR(3), s STRUCT<a: STRING NOT NULL>"
    read = "ID int, n decimal(10,0), c string, s struct<a:string>"
    assert spark_types.to_ddl(spark_types.parse(given)) == read


@pytest.mark.parametrize(
    ("ddl", "said"),
    [
        ("id", "more"),
        ("id bigint,", "more"),
        ("id bignum", "a supported type, not 'bignum'"),
        ("id array<int", "'>', not ''"),
        ("id interval year", "an interval of days to seconds"),
        ("id bigint;", "no ';'"),
        ("id decimal(x)", "a whole number"),
    ],
)
def test_schema_that_cannot_be_read_says_where(ddl: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        spark_types.parse(ddl)
    assert said in caught.value.why
