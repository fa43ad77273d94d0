"""`writeMode=update` with a script of the user's: each row runs it once, in order."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from integration.support.elasticsearch import Index, apply_again, decide, documents, keep_log
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases

from sparkonce.errors import OptionError, RowRefused

pytestmark = pytest.mark.variants
SCHEMA = pa.schema([("id", pa.int64()), ("tag", pa.string()), ("n", pa.int64())])
APPENDS = """
// A comment, "quotes" and a backslash: \\
if (ctx._source.tags == null) ctx._source.tags = new ArrayList();
if (params.n == null) return;
ctx._source.tags.add(params.tag + ':' + params['n']);  // and one at the end"""


@pytest.fixture
def tags(index: Index) -> Index:
    fields = {"id": {"type": "long"}, "tags": {"type": "keyword"}, "n": {"type": "long"}}
    index.fill(fields, [], mappings={"dynamic": "strict"})
    return index


def scripted(index: Index, script: str = APPENDS, **options: str) -> ElasticsearchQuery:
    given = {"key": "id", "writeMode": "update", "script": script, "chunkRows": "4", **options}
    query = index.query(SCHEMA, **given)
    query.sink.check()
    return query


def row(id_: int, tag: str, n: int | None) -> dict[str, Any]:
    return {"id": id_, "tag": tag, "n": n}


@pytest.mark.parametrize("seed", [0, *slow_cases(*range(1, 10))])
def test_each_row_runs_the_script_once_and_in_order(tags: Index, seed: int) -> None:
    """Replays, late drivers, and several rows of a document in a chunk and an epoch."""
    chance, numbers = random.Random(seed), iter(range(10_000))
    query, manifests, wanted = scripted(tags), list[Any](), defaultdict[str, list[str]](list)
    keep_log(query)
    for epoch in range(5):
        texts = ("a", 'q"', "\\", "\n", "ä", "\x03")
        rows = [
            row(chance.randrange(4), chance.choice(texts), next(numbers) if _ % 7 else None)
            for _ in range(chance.randrange(1, 15))
        ]
        for one in rows:
            made = wanted[str(one["id"])]
            made += [f"{one['tag']}:{one['n']}"] if one["n"] is not None else []
        manifests.append(decide(query, epoch, rows))
        query.restart()
        if chance.random() < 0.5:
            apply_again(query, manifests[-1])
        query.run(epoch, rows)
        apply_again(query, manifests[-1])
    found = documents(tags.client, tags)
    assert {key: one["tags"] for key, one in found.items()} == wanted
    assert {one["id"] for one in found.values()} == {*map(int, wanted)}


def test_a_stored_document_keeps_its_other_fields_and_a_new_one_begins_with_its_key(
    tags: Index,
) -> None:
    tags.client.index(index=tags, id="1", document={"id": 1, "n": 40, "tags": ["old"]})
    script = "if (ctx.op == 'create') ctx._source.n = 0; ctx._source.n += params.n"
    query = scripted(tags, script)
    query.run(0, [row(1, "x", 2), row(2, "x", 5), row(2, "x", 1)])
    assert tags.documents() == {
        "1": {"id": 1, "n": 42, "tags": ["old"]},
        "2": {"id": 2, "n": 6},
    }


def test_rows_of_a_document_whose_script_fails_are_put_aside_together(tags: Index) -> None:
    bad = f"{tags}-bad"
    script = "if (params.n < 0) throw new IllegalArgumentException('below zero');" + APPENDS
    query = scripted(tags, script, onBadRow="deadLetter", deadLetter=bad)
    rows = [row(1, "a", 1), row(2, "b", 2), row(1, "c", -1), row(3, "d", 4)]
    manifest = decide(query, 0, rows)
    query.restart()
    query.run(0, rows)
    apply_again(query, manifest)
    assert {key: one["tags"] for key, one in tags.documents().items()} == {
        "2": ["b:2"],
        "3": ["d:4"],
    }
    letters = documents(tags.client, bad).values()
    assert sorted(one["row"] for one in letters) == [
        '{"id": 1, "tag": "a", "n": 1}',
        '{"id": 1, "tag": "c", "n": -1}',
    ]
    assert all("below zero" in one["reason"] for one in letters)


ENDS = {
    "throw new IllegalArgumentException('no')": "no",
    "ctx.op = 'delete'": "must not set ctx.op",
    "ctx.op = 'none'": "must not set ctx.op",
    "ctx._source.n.foo()": "runtime error",
    "int[] a = new int[1]; a[2] = 1": "Index 2 out of bounds",
}


@pytest.mark.parametrize("script", ENDS)
def test_a_script_that_fails_for_a_row_stops_the_epoch_and_changes_nothing(
    tags: Index, script: str
) -> None:
    tags.client.index(index=tags, id="1", document={"id": 1, "n": 40})
    query = scripted(tags, f"ctx._source.n = 1; {script}")
    with pytest.raises(RowRefused, match=ENDS[script]):
        query.run(0, [row(1, "x", 2)])
    assert tags.documents() == {"1": {"id": 1, "n": 40}}


def test_a_script_can_t_drop_the_guard(tags: Index) -> None:
    tags.client.index(index=tags, id="1", document={"id": 1, "n": 40})
    script = "def n = ctx._source.n; ctx._source = new HashMap(['id': 1]); ctx._source.n = n + 1"
    query = scripted(tags, script)
    manifest = decide(query, 0, [row(1, "x", 2), row(1, "x", 2)])
    query.restart()
    query.run(0, [])
    apply_again(query, manifest)
    assert tags.documents() == {"1": {"id": 1, "n": 42}}


def test_whole_numbers_do_not_wrap_and_a_script_never_meets_the_guard(tags: Index) -> None:
    most = 2**31 - 1
    tags.client.index(index=tags, id="1", document={"id": 1, "n": most})
    script = """if (ctx._source.containsKey('sparkonce')) throw new RuntimeException('seen');
    def n = ctx._source.n;
    ctx._source.n = (n instanceof Integer ? (long) n : n) + params.n"""
    query = scripted(tags, script)
    for epoch in range(2):
        query.run(epoch, [row(1, "x", most), row(1, "x", 1)])
    assert tags.documents()["1"]["n"] == 3 * most + 2


def test_rows_of_a_hot_document_count_one_by_one(tags: Index) -> None:
    bad = f"{tags}-bad"
    script = "if (params.id == 1) throw new IllegalArgumentException('no'); ctx._source.n = 1"
    query = scripted(tags, script, onBadRow="deadLetter", deadLetter=bad, chunkRows="200")
    with pytest.raises(RowRefused, match="90 of the 100 rows of epoch 0 can't be stored"):
        query.run(0, [row(max(1, at - 88), "x", at) for at in range(100)])


def test_a_decimal_is_no_parameter(tags: Index) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.decimal128(9, 2))])
    query = {"key": "id", "writeMode": "update", "script": "ctx._source.n = params.n"}
    with pytest.raises(OptionError, match="can't be a parameter of option script"):
        tags.query(schema, **query).sink.check()


UNFIT = {
    "ctx._source.n +": "can't be compiled",
    "ctx._source.n = missing": "can't be compiled.*missing",
    "int twice(int n) { return 2 * n } ctx._source.n = twice(1)": "can't be compiled",
    "}": "can't be compiled",
    "} if (true) {": "can't be compiled",
    "ctx._source.n = 1; //" + "x" * 66_000: "can't be compiled",
}


@pytest.mark.parametrize("script", UNFIT)
def test_a_script_that_can_t_be_compiled_is_refused_before_any_row(
    tags: Index, script: str
) -> None:
    with pytest.raises(OptionError, match=UNFIT[script]):
        scripted(tags, script)
    assert tags.documents() == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"writeMode": "upsert"}, "writeMode=upsert and script contradict"),
        ({"writeMode": "delete"}, "writeMode=delete and script contradict"),
        ({"nulls": "keep"}, "script and nulls=keep contradict"),
        ({"createIndex": "true"}, "script and createIndex contradict"),
        ({"addColumns": "true"}, "script and addColumns contradict"),
        ({"pipeline": "p"}, "writeMode=update and pipeline contradict"),
    ],
)
def test_options_that_contradict_a_script(tags: Index, options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        scripted(tags, "ctx._source.n = 1", **options)
