"""Indices in which an update or increment could be lost or doubled take none, and say why."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.counters import COUNTER
from integration.support.documents import documents
from integration.support.elasticsearch_decisions import apply_again, decide, keep_log
from integration.support.epochs import ElasticsearchQuery

from sparkonce.errors import StoreUnsafe

ROW = {"id": 1, "n": 1}
SCRIPTED = pytest.mark.parametrize("mode", ["update", "increment"])
Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def pipeline(elastic: Elasticsearch, unique: str) -> Iterator[str]:
    """A pipeline, and an index of that name."""
    elastic.ingest.put_pipeline(id=unique, processors=[])
    yield unique
    elastic.indices.delete(index=unique)
    elastic.ingest.delete_pipeline(id=unique)


@pytest.mark.parametrize(
    "about",
    [
        {"mappings": {"_source": {"excludes": ["sparkonce"]}}},
        {"mappings": {"_source": {"includes": ["id", "n"]}}},
        {"mappings": {"_source": {"enabled": False}}},
        {
            "mappings": {"_source": {"mode": "disabled"}},  # release 8
            "settings": {"index.mapping.source.mode": "disabled"},  # release 9
        },
    ],
    ids=str,
)
@SCRIPTED
def test_index_that_would_not_keep_the_guard_takes_no_update_or_increment(
    into_index: Make, elastic: Elasticsearch, index: str, about: dict[str, Any], mode: str
) -> None:
    if elastic.info()["version"]["number"] < "9":
        about = {"mappings": about["mappings"]}
    elastic.indices.create(index=index, **about)
    with pytest.raises(StoreUnsafe, match=r"keeps .* _source"):
        into_index(COUNTER, key="id", writeMode=mode, createIndex="false")
    into_index(COUNTER, key="id", createIndex="false").run(0, [ROW])


@pytest.mark.parametrize("option", ["default_pipeline", "final_pipeline"])
@SCRIPTED
def test_index_whose_own_pipeline_could_drop_rows_takes_no_update_or_increment(
    into_index: Make, elastic: Elasticsearch, pipeline: str, option: str, mode: str
) -> None:
    elastic.indices.create(index=pipeline, settings={f"index.{option}": pipeline})
    given = {"index": pipeline, "key": "id", "writeMode": mode, "createIndex": "false"}
    with pytest.raises(StoreUnsafe, match=rf'has index.{option}=.*"index.{option}": "_none"'):
        into_index(COUNTER, **given)
    elastic.indices.put_settings(index=pipeline, settings={f"index.{option}": "_none"})
    into_index(COUNTER, **given).run(0, [ROW])
    (found,) = documents(elastic, pipeline).values()
    assert found["n"] == 1


DAY = 86_400 * 10**9


@SCRIPTED
def test_guards_of_sinks_that_wrote_long_ago_make_way_for_one_number_that_refuses_them(
    into_index: Make, elastic: Elasticsearch, index: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Each new checkpoint without a sinkId is a sink of its own."""
    now = time.time_ns()

    def new_checkpoint(days_ago: int, n: int) -> Any:
        query = into_index(COUNTER, key="id", writeMode=mode)
        keep_log(query)
        with monkeypatch.context() as patch:
            then = now - days_ago * DAY
            patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: then)
            late = decide(query, 0, [{"id": 1, "n": n}])
        query.restart()
        query.run(0, [])
        return query, late

    def guards() -> dict[str, Any]:
        found: dict[str, Any] = elastic.get(index=index, id="1")["_source"]["sparkonce"]
        return found

    old = [new_checkpoint(days, 1) for days in (80, 70, 45)]
    recent, _ = new_checkpoint(20, 1)
    assert set(guards()) == {old[2][0].name, recent.name, "past"}
    newest, again = new_checkpoint(0, 5)
    assert set(guards()) == {recent.name, newest.name, "past"}
    apply_again(newest, again)
    for query, late in old:
        apply_again(query, late)  # is refused, and finds that others went on
    recent.restart()
    recent.run(1, [{"id": 1, "n": 7}])
    (found,) = documents(elastic, index).values()
    assert found["n"] == (4 + 5 + 7 if mode == "increment" else 7)


def test_sink_whose_clock_is_far_ahead_makes_no_guard_of_an_epoch_in_progress_give_way(
    into_index: Make, elastic: Elasticsearch, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"key": "id", "writeMode": "increment"}
    query, now = into_index(COUNTER, **given), time.time_ns()
    keep_log(query)
    begun = decide(query, 0, [{"id": 1, "n": 1}])
    apply_again(query, begun)  # it dies before it has noted that this is done
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: now + 60 * DAY)
        ahead = into_index(COUNTER, indexPrefix=index, **given)
        ahead.run(0, [{"id": 1, "n": 2}])
    query.restart()
    query.run(0, [])
    found = elastic.get(index=index, id="1")["_source"]
    assert (found["n"], set(found["sparkonce"])) == (3, {query.name, ahead.name})
    elastic.indices.delete(index=f"{index}-ledger,{index}-log")


def remedied(elastic: Elasticsearch, index: str, query: ElasticsearchQuery, refused: str) -> None:
    """What docs/elasticsearch.md says of this refusal."""
    fence = re.search(r"than fence (\d+)", refused)
    assert REMEDY
    assert fence
    params = {"sink": query.name, "fence": int(fence[1])}
    script = {**json.loads(REMEDY[1])["script"], "params": params}
    elastic.indices.refresh(index=index)
    elastic.update_by_query(index=index, script=script, refresh=True)


def test_epoch_that_is_finished_after_its_guards_made_way_has_a_way_out(
    into_index: Make, elastic: Elasticsearch, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, now = {"key": "id", "writeMode": "increment"}, time.time_ns()
    query = into_index(COUNTER, **given)
    with monkeypatch.context() as patch:
        patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: now - 40 * DAY)
        query.run(0, [ROW])
        decide(query, 1, [ROW])
        patch.setattr("pyspark_elasticsearch.journal.records.time.time_ns", lambda: now - 35 * DAY)
        into_index(COUNTER, **given).run(0, [ROW])
    into_index(COUNTER, **given).run(0, [ROW])
    query.restart()
    with pytest.raises(StoreUnsafe, match="later changes than fence") as refused:
        query.run(1, [])
    remedied(elastic, index, query, str(refused.value))
    query.restart()
    query.run(1, [])
    assert elastic.get(index=index, id="1")["_source"]["n"] == 4


REMEDY = re.search(
    r"_update_by_query.*\n(\{.*\})", Path("docs/elasticsearch.md").read_text("utf-8")
)


@SCRIPTED
def test_lost_ledger_and_a_clock_that_is_behind_are_an_error_and_not_silence(
    into_index: Make, elastic: Elasticsearch, index: str, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    given = {"key": "id", "writeMode": mode, "sinkId": index, "indexPrefix": index}
    now = time.time_ns()
    with monkeypatch.context() as patch:
        patch.setattr(
            "pyspark_elasticsearch.journal.records.time.time_ns", lambda: now + 3600 * 10**9
        )
        into_index(COUNTER, **given).run(0, [ROW])
    elastic.indices.delete(index=f"{index}-ledger")
    query = into_index(COUNTER, **given)
    with pytest.raises(StoreUnsafe, match="later changes than fence") as refused:
        query.run(0, [{"id": 1, "n": 5}], [{"id": 2, "n": 5}])
    remedied(elastic, index, query, str(refused.value))
    query.restart()
    query.run(0, [])
    found = {row["id"]: row["n"] for row in documents(elastic, index).values()}
    assert found == {1: 6 if mode == "increment" else 5, 2: 5}
    elastic.indices.delete(index=f"{index}-ledger,{index}-log")
