"""Rows that are refused after their epoch was decided, or before: named, or put aside once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from click.testing import CliRunner
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    Index,
    counting,
    counts,
    decide,
    documents,
    has_script_processor,
    make_counters,
    of_cli,
    set_block,
)
from integration.support.epochs import ElasticsearchQuery, dies, ones
from integration.support.marks import slow_cases

from sparkonce.errors import BadRow, OptionError, RowRefused, StoreRefused
from sparkonce.operate.cli import main

pytestmark = pytest.mark.variants
Make = Callable[..., ElasticsearchQuery]


def words_in(elastic: Elasticsearch, index: str) -> None:
    """Let the cluster refuse the row of id 27: its number becomes a word."""
    script = {"script": {"source": "if (ctx.id == 27) ctx.n = 'a word'"}}
    elastic.ingest.put_pipeline(id=index, processors=[script])
    elastic.indices.put_settings(index=index, settings={"index.final_pipeline": index})


@pytest.fixture
def refusing(counter_index: Index) -> str:
    if not has_script_processor(counter_index.client):
        pytest.skip("this server has no script processor, by which rows are refused here")
    return counter_index


@pytest.mark.parametrize("mode", ["increment", "append", "upsert"])
def test_row_that_is_refused_after_the_decision_is_named_and_put_aside_on_demand(
    index: Index, bad_index: str, mode: str
) -> None:
    query = counting(index.url, make_counters(index.client, index, "byte"), writeMode=mode)
    query.sink.check()
    rows = ones(range(80))  # 20 chunks
    rows[27]["n"] = 1000
    for _ in range(2):
        with pytest.raises(RowRefused, match=r"field \[n\]") as refused:
            query.run(0, rows)
        query.restart()
    if mode != "append":
        assert "id '27'" in str(refused.value)
    assert "Epoch 0 stays decided" in str(refused.value)
    query.restart(onBadRow="deadLetter", deadLetter=bad_index)
    query.sink.check()
    query.run(0, rows)
    query.run(1, [rows[26], {"id": 27, "n": 500}, rows[28]])
    twice = [] if mode == "upsert" else [26, 28]
    assert index.counts() == Counter([*range(80), *twice]) - Counter([27])
    letters = documents(index.client, bad_index)
    assert Counter(one["epoch"] for one in letters.values()) == {0: 1, 1: 1}
    assert all("field [n]" in one["reason"] for one in letters.values())


def test_verdict_on_a_row_is_final_even_if_the_mapping_is_mended_before_the_end(
    elasticsearch_url: str, elastic: Elasticsearch, refusing: str, bad_index: str
) -> None:
    query = counting(
        elasticsearch_url, refusing, onBadRow="deadLetter", deadLetter=bad_index, writeMode="append"
    )
    query.sink.check()
    words_in(elastic, refusing)
    receipts = query.stage(0, ones(range(24, 32)))
    query.sink.store.records.advance = dies
    with pytest.raises(KeyboardInterrupt):
        query.commit(0, receipts)
    del query.sink.store.records.advance
    elastic.indices.put_settings(index=refusing, settings={"index.final_pipeline": None})
    query.restart(onBadRow="fail")
    query.options.pop("deadLetter")
    query.run(0, [])
    assert counts(elastic, refusing) == Counter(range(24, 32)) - Counter([27])
    assert [one["epoch"] for one in documents(elastic, bad_index).values()] == [0]


@pytest.mark.parametrize("mode", ["append", "upsert", "update"])
def test_map_with_a_key_twice_is_put_aside_before_the_decision(
    index: Index, bad_index: str, mode: str
) -> None:
    schema = pa.schema([("id", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))])
    rows = [{"id": n, "m": [("a", n), ("b" if n else "a", 2)]} for n in range(3)]
    key = {} if mode == "append" else {"key": "id"}
    query = index.into(schema, writeMode=mode, **key)
    with pytest.raises(BadRow, match=r"column 'm': a map has the key .*a.* twice"):
        query.stage(0, rows)
    query.restart(onBadRow="deadLetter", deadLetter=bad_index)
    query.run(0, rows)
    assert sorted(one["id"] for one in index.documents().values()) == [1, 2]
    (letter,) = documents(index.client, bad_index).values()
    assert letter["row"] == '{"id": 0, "m": {"a": 0, "a": 2}}'


def test_bad_rows_that_a_task_finds_are_put_aside(index: Index, bad_index: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    query = ElasticsearchQuery(
        schema,
        url=index.url,
        index=index,
        key="id",
        createIndex="true",
        onBadRow="deadLetter",
        deadLetter=bad_index,
        chunkRows="3",
    )
    query.sink.check()
    rows = [{"id": i, "x": 1.0} for i in range(7)]
    rows[2]["x"], rows[4]["id"] = float("nan"), None
    query.run(0, rows)
    query.run(0, rows)
    assert sorted(one["id"] for one in index.documents().values()) == [0, 1, 3, 5, 6]
    reasons = sorted(one["reason"] for one in documents(index.client, bad_index).values())
    assert len(reasons) == 2
    assert "'id' is null" in reasons[0]
    assert "nan has no place" in reasons[1]


def test_letter_of_the_last_row_of_a_chunk_is_that_row_after_a_crash_before_it_is_written(
    elasticsearch_url: str,
    elastic: Elasticsearch,
    refusing: str,
    bad_index: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The verdict is noted by then, and its row is not sent."""
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index, "writeMode": "append"}
    query = counting(elasticsearch_url, refusing, **aside)
    query.sink.check()
    words_in(elastic, refusing)
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_elasticsearch.journal.dead_letters.write", dies)
        with pytest.raises(KeyboardInterrupt):
            query.run(0, ones(range(24, 28)))
    assert documents(elastic, bad_index) == {}
    query.restart()
    query.run(0, [])
    (letter,) = documents(elastic, bad_index).values()
    assert json.loads(letter["row"]) == {"id": 27, "n": 1}
    assert counts(elastic, refusing) == Counter((24, 25, 26))


DAYS = pa.schema([("id", pa.int64()), ("day", pa.string())])


@pytest.fixture
def days(index: Index) -> Iterator[str]:
    """A template of names, and indices of some days that take no writes any more."""
    for day in ("closed", "blocked", "odd", "full"):
        index.client.indices.create(index=f"{index}-{day}", settings={"number_of_replicas": 0})
    index.client.indices.close(index=f"{index}-closed")
    set_block(index.client, f"{index}-blocked", "write", True)
    set_block(index.client, f"{index}-odd", "metadata", True)
    yield f"{index}-{{day}}"
    set_block(index.client, f"{index}-odd", "metadata", None)


@pytest.mark.parametrize("mode", ["upsert", *slow_cases("append", "delete")])
def test_rows_of_an_index_that_takes_no_writes_go_aside_and_the_others_on(
    days: str, index: Index, bad_index: str, mode: str
) -> None:
    key = {} if mode == "append" else {"key": "id"}
    query = index.into(DAYS, index=days, createIndex="false", writeMode=mode, **key)
    rows = [{"id": id_, "day": day} for id_, day in enumerate(("closed", "blocked", "odd", "new"))]
    with pytest.raises(RowRefused, match=r"index .*-(closed|blocked|odd).*onBadRow=deadLetter"):
        query.run(0, rows)
    query.restart(onBadRow="deadLetter", deadLetter=bad_index)
    query.run(0, [])
    query.run(1, [{"id": 5, "day": "new"}])
    letters = documents(index.client, bad_index).values()
    assert {one["index"] for one in letters} >= {f"{index}-closed", f"{index}-blocked"}
    if mode != "delete":
        assert len(documents(index.client, f"{index}-new")) == 2


def test_rows_of_an_index_on_a_full_disk_wait_and_are_no_bad_rows(
    days: str, index: Index, bad_index: str
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index}
    query = index.into(DAYS, index=days, createIndex="false", key="id", timeout="1", **aside)
    set_block(index.client, f"{index}-full", "read_only_allow_delete", True)
    rows = [{"id": id_, "day": day} for id_, day in enumerate(("full", "new"))]
    with pytest.raises(StoreRefused, match="disk is nearly full"):
        query.run(0, rows)
    set_block(index.client, f"{index}-full", "read_only_allow_delete", None)
    query.restart()
    query.run(0, [])
    assert documents(index.client, bad_index) == {}
    assert len(documents(index.client, f"{index}-full")) == 1


def test_rows_of_a_target_that_takes_none_do_not_go_aside_for_ever(
    into_index: Make, elastic: Elasticsearch, days: str, bad_index: str
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": bad_index}
    query = into_index(DAYS, index=days, createIndex="false", key="id", **aside)
    with pytest.raises(RowRefused, match="maxBadRows"):
        query.run(0, [{"id": id_, "day": "blocked"} for id_ in range(50)])
    assert documents(elastic, bad_index) == {}


ROWS = pa.schema([("id", pa.int64())])


@pytest.mark.parametrize("which", ["ledger", "log"])
@pytest.mark.parametrize("option", ["index", *slow_cases("deadLetter")])
def test_alias_of_an_index_of_the_connectors_own_is_refused_at_start(
    index: Index, which: str, option: str
) -> None:
    own = f"{index}-own-{which}"
    index.into(ROWS, key="id", indexPrefix=f"{index}-own")
    before = index.client.indices.get_mapping(index=own).body
    index.client.indices.put_alias(index=own, name=f"{index}-alias")
    given = {option: f"{index}-alias", **({"onBadRow": "deadLetter"} if option != "index" else {})}
    with pytest.raises(OptionError, match=rf"Option {option}=.*the connector's own"):
        index.into(ROWS, key="id", writeMode="update", indexPrefix=f"{index}-own", **given)
    assert index.client.indices.get_mapping(index=own).body == before


def test_alias_of_the_target_takes_no_dead_letters(index: Index) -> None:
    index.client.indices.create(index=index, aliases={f"{index}-alias": {}})
    given = {"onBadRow": "deadLetter", "deadLetter": f"{index}-alias"}
    with pytest.raises(OptionError, match=rf"deadLetter={index}-alias name the same index"):
        index.into(ROWS, key="id", **given)


def test_recover_puts_no_dead_letters_into_the_target(index: Index) -> None:
    prefix = f"{index}-own"
    query = index.into(ROWS, key="id", indexPrefix=prefix)
    decide(query, 0, [{"id": 1}])
    given = ["recover", of_cli(query.options["url"]), "-o", f"indexPrefix={prefix}"]
    aside = ["-o", "onBadRow=deadLetter", "-o", f"deadLetter={index}"]
    refused = CliRunner().invoke(main, [*given, *aside])
    assert refused.exit_code
    assert "name the same index" in refused.output
    assert CliRunner().invoke(main, given).exit_code == 0
    assert index.documents() == {"1": {"id": 1}}
