"""Rows of `write=direct` that the cluster or a task refuses: named, or put aside once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.documents import documents
from integration.epochs import ElasticsearchQuery

from sparkonce.errors import BadRow
from sparkonce.ledger import from_record

Make = Callable[..., ElasticsearchQuery]
DIRECT = {"key": "id", "write": "direct"}
NUMBERS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])


@pytest.fixture
def narrow(elastic: Elasticsearch, index: str) -> str:
    """An index that takes small numbers only."""
    fields = {"id": {"type": "long"}, "n": {"type": "byte"}, "x": {"type": "double"}}
    settings = {"number_of_replicas": 0}
    elastic.indices.create(index=index, settings=settings, mappings={"properties": fields})
    return index


def numbered(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": id_, "n": n, "x": 1.0} for id_, n in enumerate(numbers)]


def test_mapping_conflict_fails_the_task_and_names_id_field_and_reason(
    into_index: Make, elastic: Elasticsearch, narrow: str
) -> None:
    query = into_index(NUMBERS, createIndex="false", **DIRECT)
    with pytest.raises(BadRow, match=r"id '1' of index .*\[n\].*out of range.*is not decided"):
        query.stage(0, numbered(1, 300, 2))
    ledger = from_record(query.sink.store.read(query.name))
    assert ledger is None or ledger.epoch < 0
    query.restart()
    query.run(0, numbered(1, 100, 2))
    assert [one["n"] for one in documents(elastic, narrow).values()] == [1, 100, 2]


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
YEAR_10000 = pa.array([253402300800000000], pa.timestamp("us", "UTC"))


@pytest.mark.parametrize("write", ["direct", "logged"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pa.array([float("nan")]), "nan has no place"),
        (NOT_UTF8, "not valid UTF-8"),
        (YEAR_10000, "only 0001-01-01"),
    ],
    ids=["nan", "utf8", "year"],
)
def test_value_that_no_document_takes_is_told_with_its_column_and_row(
    into_index: Make, wrong: pa.Array, said: str, write: str
) -> None:
    schema = pa.schema([("v", wrong.type), ("id", pa.int64())])
    values = pa.concat_arrays([pa.nulls(5, wrong.type), wrong, pa.nulls(3, wrong.type)])
    batch = pa.record_batch([values, pa.array(range(10, 19))], schema=schema)
    query = into_index(schema, key="id", write=write)
    with pytest.raises(BadRow, match=rf"column 'v': .*{said}.*; the row: .*id=15") as told:
        query.stage_batches(0, [batch])
    assert told.value.why
    assert told.value.todo


def test_dead_letters_are_written_once_whoever_writes_again(
    into_index: Make, elastic: Elasticsearch, narrow: str, bad_index: str
) -> None:
    query = into_index(
        NUMBERS, createIndex="false", onBadRow="deadLetter", deadLetter=bad_index, **DIRECT
    )
    bad = [
        {"id": None, "n": 1, "x": 1.0},
        {"id": 7, "n": 1, "x": float("nan")},
        {"id": None, "n": 1, "x": 1.0},
    ]
    rows = [*numbered(1, 300, 2), *bad]
    query.stage(0, rows)
    query.restart()
    query.run(0, rows)
    query.run(1, [*rows, {"id": 1, "n": 5, "x": 1.0}])
    letters = sorted(
        (one["epoch"], one["reason"]) for one in documents(elastic, bad_index).values()
    )
    reasons = ("document_parsing", "'id' is null", "'id' is null", "nan has no place")
    assert len(letters) == 7
    for epoch, kinds in ((0, reasons), (1, reasons[1:])):
        said = [reason for at, reason in letters if at == epoch]
        for kind in set(kinds):
            assert sum(kind in reason for reason in said) == kinds.count(kind)
    assert {id_: one["n"] for id_, one in documents(elastic, narrow).items()} == {
        "0": 1,
        "1": 5,
        "2": 2,
    }


@pytest.mark.usefixtures("narrow")
def test_rows_of_one_version_that_are_refused_have_a_letter_each(
    into_index: Make, elastic: Elasticsearch, bad_index: str
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index}
    query = into_index(NUMBERS, createIndex="false", versionColumn="id", **aside, **DIRECT)
    first, second = numbered(300, 301), numbered(302)
    query.stage(0, first, second)
    query.run(0, first, second)
    query.run(1, first)
    found = [
        (one["epoch"], json.loads(one["row"])["n"])
        for one in documents(elastic, bad_index).values()
    ]
    assert sorted(found) == [(0, 300), (0, 301), (0, 302), (1, 300), (1, 301)]
