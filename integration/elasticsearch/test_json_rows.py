"""Rows that are whole documents, by option rowColumn: what is stored, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pyarrow as pa
import pytest
from integration.support.elasticsearch import Index, apply_again, decide, documents, keep_log
from integration.support.marks import slow_cases

from sparkonce.errors import BadRow, OptionError

pytestmark = pytest.mark.variants
SCHEMA = pa.schema([(name, pa.string()) for name in ("table", "op", "key", "row")])
UPSERT = {"key": "key", "opColumn": "op", "rowColumn": "row"}


def change(table: str, op: str, key: str, row: Any = None) -> dict[str, Any]:
    text = row if row is None or isinstance(row, str) else json.dumps(row)
    return {"table": table, "op": op, "key": key, "row": text}


def drawn_document(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """A document that a mapping without fields accepts beside all others: its leaves are texts."""
    texts = ["", "a", '"', "\\", "\n", "\x01", "é", "😀", "{x}", "null", "\u2028"]
    found: dict[str, Any] = {f"t{at}": chance.choice(texts) for at in range(chance.randrange(4))}
    if depth < 2 and chance.random() < 0.5:
        found["inner"] = drawn_document(chance, depth + 1)
    return found


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 8))])
def test_documents_are_stored_as_they_are_whatever_is_sent_again(index: Index, seed: int) -> None:
    chance = random.Random(seed)
    query = index.into(SCHEMA, chunkRows="3", **UPSERT)
    keep_log(query)
    wanted, manifests = dict[str, Any](), []
    for epoch in range(4):
        rows = []
        for _ in range(8):
            key, document = str(chance.randrange(6)), drawn_document(chance)
            if chance.random() < 0.2:
                rows.append(change("a", "d", key, chance.choice([None, "no JSON", document])))
                wanted.pop(key, None)
            else:
                text = json.dumps(
                    document,
                    indent=chance.choice([None, 2]),
                    ensure_ascii=chance.random() < 0.5,
                )
                rows.append(change("a", "u", key, chance.choice(["", " \r\n\t"]) + text + "\n"))
                wanted[key] = document
        manifests.append(decide(query, epoch, rows))
        query.restart()
        query.run(epoch, [])
    for manifest in manifests:
        apply_again(query, manifest)
    assert index.documents() == wanted


def test_rows_go_to_the_index_of_their_table_and_a_truncate_empties_it_alone(index: Index) -> None:
    query = index.into(SCHEMA, index=f"{index}-{{table}}", createIndex="false", **UPSERT)
    query.run(0, [change(table, "i", "1", {"of": table, "n": 1}) for table in "ab"])
    more = [change("a", "s", "", {"statement": "ALTER TABLE a ADD COLUMN m INT"})]
    more += [change("a", "u", "1", {"of": "a", "n": 1, "m": 2}), change("b", "t", "")]
    query.run(1, [*more, change("b", "i", "2", {"of": "b", "n": 3})])
    assert documents(index.client, f"{index}-a") == {"1": {"of": "a", "n": 1, "m": 2}}
    assert documents(index.client, f"{index}-b") == {"2": {"of": "b", "n": 3}}


BAD = ["[1]", "1", "null", "", "x", "/**/{}", '{"a":1} x', '{"a":"\x01"}', '{"a":1', "{'a':1}"]
BAD += ['{"a":"x\ny"}', '{/*c*/"a":1}', '{"a":1}//x', "{'a':1}"]
BAD += ['{"a":1}{"b":2}', '{"a":1}\n{"b":2}', '{"a":1,"a":2}', '{"a":NaN}', '{"_id":"x"}']


@pytest.mark.parametrize("bad", [None, *BAD])
def test_row_that_is_no_document_is_put_aside_with_all_that_it_had(
    index: Index, bad_index: str, bad: str | None
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index, "createIndex": "false"}
    query = index.into(SCHEMA, index=f"{index}-{{table}}", **aside, **UPSERT)
    good = [change("a", "i", key, {"a": 5}) for key in "12"]
    poison = change("a", "u", "poison", bad)
    query.run(0, [good[0], poison, good[1]])
    assert documents(index.client, f"{index}-a") == {"1": {"a": 5}, "2": {"a": 5}}
    (letter,) = documents(index.client, bad_index).values()
    found = json.loads(letter["row"])
    kept = {name: value for name, value in poison.items() if value is not None}
    row = (found.pop("row", None) or "").replace("\n", " ")
    assert {**found, "row": row.strip()} == {**kept, "row": (bad or "").replace("\n", " ").strip()}


@pytest.mark.parametrize("bad", [None, "[1]"])
def test_row_that_is_no_document_stops_the_query_and_is_named(
    index: Index, bad: str | None
) -> None:
    query = index.into(SCHEMA, **UPSERT)
    with pytest.raises(BadRow, match=r"key='poison'.*column 'row' can't be") as refused:
        query.stage(
            0, [change("a", "s", ""), change("a", "i", "1", {}), change("a", "i", "poison", bad)]
        )
    assert "to_json(struct(*))" in refused.value.todo


def test_documents_are_appended(index: Index) -> None:
    query = index.into(SCHEMA, rowColumn="row")
    query.run(0, [change("a", "", "", {"n": 1})] * 2)
    assert index.rows() == [{"n": 1}] * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"writeMode": "update"}, "writeMode=update and rowColumn"),
        ({"writeMode": "increment"}, "rowColumn|only numbers|64-bit"),
        ({"writeMode": "delete"}, "writeMode=delete and rowColumn"),
        ({"writeMode": "append", "key": "", "visibleAlias": "x", "sinkId": "s"}, "visibleAlias"),
        ({"rowColumn": "number"}, "rowColumn names column 'number' of type bigint"),
        ({"rowColumn": "lacks"}, "rowColumn names column 'lacks'"),
        ({"index": "x-{table}{op}", "createIndex": "false"}, "rowColumn and index="),
    ],
)
def test_options_that_contradict_it_are_refused(
    index: Index, given: dict[str, str], said: str
) -> None:
    schema = SCHEMA.append(pa.field("number", pa.int64()))
    options = {"key": "key", "rowColumn": "row", **given}
    with pytest.raises(OptionError, match=said):
        index.into(schema, **{name: value for name, value in options.items() if value})
