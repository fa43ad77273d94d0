"""What the target is now is asked before each decision: a name that stays says nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import documents, has_script_processor
from integration.support.documents import rows as stored
from integration.support.epochs import ElasticsearchQuery

from pyspark_elasticsearch.server.client import Cluster
from sparkonce.errors import SparkonceError, StoreRefused, StoreUnsafe
from sparkonce.exactly_once.ledger import from_record

COUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
Make = Callable[..., ElasticsearchQuery]
ONE = [{"id": 1, "n": 1}]


def decided(query: ElasticsearchQuery) -> int:
    ledger = from_record(query.sink.store.read(query.name), query.name)
    assert ledger is not None
    return ledger.decision.epoch


def remade(client: Elasticsearch, index: str, **body: Any) -> None:
    client.indices.delete(index=index)
    client.indices.create(index=index, **body)


def require_refused_undecided(
    query: ElasticsearchQuery, error: type[SparkonceError], words: str
) -> None:
    with pytest.raises(error, match=words):
        query.run(1, ONE)
    assert decided(query) == 0


@pytest.mark.parametrize(
    ("options", "settings", "words"),
    [
        ({}, {"index.translog.durability": "async"}, "durability=async"),
        ({}, {"index.blocks.write": True}, "has index.blocks.write"),
        ({}, {"index.blocks.read_only": True}, "has index.blocks.read_only"),
        (
            {"writeMode": "increment", "key": "id"},
            {"index.final_pipeline": "any"},
            "has index.final_pipeline=any",
        ),
    ],
    ids=["async", "write", "read only", "pipeline"],
)
def test_setting_that_came_since_the_last_epoch_stops_the_next_before_its_decision(
    into_index: Make,
    elastic: Elasticsearch,
    index: str,
    options: dict[str, str],
    settings: dict[str, Any],
    words: str,
) -> None:
    query = into_index(COUNTS, **options)
    query.run(0, ONE)
    elastic.indices.put_settings(index=index, settings=settings)
    require_refused_undecided(query, SparkonceError, words)
    elastic.indices.put_settings(index=index, settings=dict.fromkeys(settings))
    query.run(1, ONE)
    assert sum(row["n"] for row in stored(elastic, index)) == 2


def test_index_made_anew_that_keeps_no_guard_stops_the_next_epoch_before_its_decision(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    """There a repeated row would be added twice."""
    query = into_index(COUNTS, key="id", writeMode="increment")
    query.run(0, ONE)
    remade(elastic, index, mappings={"_source": {"excludes": ["sparkonce"]}})
    require_refused_undecided(query, StoreUnsafe, "keeps a part of each _source")


def test_index_made_anew_gets_the_mapping_of_the_guard_once_more(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(COUNTS, key="id", writeMode="increment")
    query.run(0, ONE)
    remade(elastic, index)
    query.run(1, ONE)
    (about,) = elastic.indices.get_mapping(index=index).values()
    assert about["mappings"]["properties"]["sparkonce"]["enabled"] is False


def test_index_made_anew_shows_whole_epochs_as_the_first_did(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    alias = f"{index}-visible"
    query = into_index(COUNTS, visibleAlias=alias, sinkId=index)
    query.run(0, ONE)
    remade(elastic, index, mappings={"dynamic": False})
    query.run(1, [{"id": id_, "n": 1} for id_ in range(50)])
    assert elastic.count(index=alias)["count"] == 50


def test_pipeline_with_another_body_stops_the_next_epoch_before_its_decision(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    if not has_script_processor(elastic):
        pytest.skip("the server lacks the processors")
    called, moves = f"{index}-called", {"set": {"field": "_id", "value": "one"}}
    elastic.ingest.put_pipeline(id=called, processors=[])
    elastic.ingest.put_pipeline(id=index, processors=[{"pipeline": {"name": called}}])
    try:
        query = into_index(COUNTS, pipeline=index)
        query.run(0, ONE)
        elastic.ingest.put_pipeline(id=called, processors=[moves])
        require_refused_undecided(query, StoreRefused, f"{called}.*has 'set'")
        elastic.ingest.delete_pipeline(id=index)
        require_refused_undecided(query, SparkonceError, f"no ingest pipeline '{index}'")
        elastic.ingest.put_pipeline(id=index, processors=[])
        query.run(1, ONE)
        assert len(documents(elastic, index)) == 2
    finally:
        for name in (index, called):
            elastic.options(ignore_status=404).ingest.delete_pipeline(id=name)


def test_one_request_an_epoch_asks_what_the_target_is(
    into_index: Make, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = into_index(COUNTS, key="id", writeMode="increment")
    query.run(0, ONE)
    query.run(1, ONE)
    asked, ask = [], Cluster.ask

    def noted(self: Cluster, doing: str, method: str, target: str, **more: Any) -> Any:
        asked.append((method, target))
        return ask(self, doing, method, target, **more)

    monkeypatch.setattr(Cluster, "ask", noted)
    query.run(2, ONE)
    about = [one for one in asked if one[1].startswith(f"/{index}") or "_ingest" in one[1]]
    assert about == [("GET", f"/{index}"), ("POST", f"/{index}/_bulk")]
