"""Readers of `visibleAlias` see whole epochs, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch_decisions import decide
from integration.support.epochs import ElasticsearchQuery

from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.protocol import Follows
from sparkonce.tck.simulation.race import reading

ROWS = pa.schema([("epoch", pa.int64()), ("n", pa.int64())])
SIZE = 2000
Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def make(into_index: Make, elastic: Elasticsearch, index: str) -> Make:
    elastic.indices.create(index=index, settings={"number_of_shards": 3, "number_of_replicas": 0})

    def make(**options: str) -> ElasticsearchQuery:
        visible = {"visibleAlias": f"{index}-visible", "sinkId": "orders"}
        return into_index(ROWS, **{**visible, "chunkRows": "100", **options})

    return make


@pytest.fixture
def seen(elastic: Elasticsearch, index: str) -> Callable[[], dict[int, int]]:
    """How many rows of each epoch a reader finds."""
    by = {"by": {"terms": {"field": "epoch", "size": 100}}}

    def look(name: str = f"{index}-visible") -> dict[int, int]:
        found = elastic.search(index=name, size=0, aggs=by)["aggregations"]["by"]["buckets"]
        return {bucket["key"]: bucket["doc_count"] for bucket in found}

    return look


def rows(epoch: int) -> list[dict[str, int]]:
    return [{"epoch": epoch, "n": n} for n in range(SIZE)]


@pytest.mark.slow
def test_reader_beside_commits_sees_whole_epochs_and_all_before_them(
    make: Make, elastic: Elasticsearch, index: str, seen: Callable[..., dict[int, int]]
) -> None:
    query = make()
    elastic.indices.put_settings(index=index, settings={"index.refresh_interval": "5ms"})
    parts: list[Any] = []
    with reading(seen) as found, reading(lambda: parts.append(seen(index))):
        for epoch in range(8):
            query.run(epoch, rows(epoch)[: SIZE // 2], rows(epoch)[SIZE // 2 :])
    assert seen() == dict.fromkeys(range(8), SIZE)
    for one in found:
        assert one == dict.fromkeys(range(len(one)), SIZE)
    assert len({len(one) for one in found}) > 4, "the reader was too slow to prove anything"
    torn = [one for one in parts if set(one.values()) - {SIZE}]
    assert torn, "without the alias a part of an epoch must have been seen"


def test_epoch_of_a_driver_that_died_in_its_middle_is_hidden_until_it_is_finished(
    make: Make, elastic: Elasticsearch, index: str, seen: Callable[..., dict[int, int]]
) -> None:
    query = make(parallelism="1")
    query.run(0, rows(0))
    store = query.sink.store
    receipts, applied = query.stage(1, rows(1)), []

    def dies(rows: int) -> None:
        applied.append(rows)
        if len(applied) == 5:
            raise KeyboardInterrupt

    store.apply = lambda manifest, *_: type(store).apply(store, manifest, dies)
    with pytest.raises(KeyboardInterrupt):
        query.commit(1, receipts)
    del store.apply
    elastic.indices.refresh(index=index)
    assert 0 < seen(index)[1] < SIZE
    assert seen() == {0: SIZE}
    query.restart()
    query.run(1, [])
    assert seen() == {0: SIZE, 1: SIZE}


def test_epoch_that_took_long_is_shown_by_whoever_comes_after_a_driver_that_died_at_its_end(
    make: Make, seen: Callable[..., dict[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = make()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("pyspark_elasticsearch.write.delivery.MARK_EVERY", 0.0)
        patched.setattr("pyspark_elasticsearch.target.aliases.show", dies)
        with pytest.raises(KeyboardInterrupt):
            query.run(0, rows(0))
    query.restart()
    query.run(0, [])
    assert seen() == {0: SIZE}


@pytest.mark.slow
@pytest.mark.parametrize(
    "lacking",
    [{"failed": 1, "failures": [{"reason": {"type": "io_exception"}}]}, {"successful": 2}],
    ids=["failed", "not told of"],
)
def test_epoch_is_shown_only_once_every_copy_that_answers_was_refreshed(
    make: Make, seen: Callable[[], dict[int, int]], lacking: dict[str, Any]
) -> None:
    query = make()
    query.run(0, rows(0))
    cluster = query.sink.store.cluster
    ask = cluster.ask

    def fails(doing: str, method: str, target: str, **given: Any) -> Any:
        answer = ask(doing, method, target, **given)
        if target.endswith("/_refresh"):
            answer.body["_shards"].update(lacking)
        return answer

    cluster.ask = fails
    with pytest.raises(StoreUnreachable, match="copies of shards"):
        query.run(1, rows(1))
    assert seen() == {0: SIZE}
    del cluster.ask
    query.restart()
    query.run(1, [])
    assert seen() == {0: SIZE, 1: SIZE}


def test_epoch_is_shown_although_copies_without_a_node_are_not_refreshed(
    make: Make, elastic: Elasticsearch, index: str, seen: Callable[[], dict[int, int]]
) -> None:
    elastic.indices.put_settings(index=index, settings={"number_of_replicas": 2})
    query = make()
    query.run(0, rows(0))
    assert seen() == {0: SIZE}


def test_new_generation_goes_on_behind_the_same_alias(
    make: Make, seen: Callable[..., dict[int, int]]
) -> None:
    old = make()
    old.run(0, rows(0))
    new = make(onNewCheckpoint=f"continue:{old.query_id}")
    new.run(0, rows(7))
    assert seen() == {0: SIZE, 7: SIZE}


def test_alias_of_another_sink_is_refused_before_the_decision(
    make: Make, elastic: Elasticsearch, index: str, seen: Callable[..., dict[int, int]]
) -> None:
    make().run(0, rows(0))
    other = make(sinkId="others")
    with pytest.raises(StoreRefused, match="is the alias of another sink"):
        other.run(0, rows(7))
    assert seen() == seen(index) == {0: SIZE}
    elastic.indices.delete_alias(index=index, name=f"{index}-visible")
    other.restart()
    other.run(0, rows(7))
    assert seen() == {7: SIZE}


def test_alias_is_a_sinks_own_from_its_first_decision_on(make: Make) -> None:
    """Also before its first epoch is shown: else both would be decided, and one not be shown."""
    decide(make(), 0, rows(0))
    with pytest.raises(StoreRefused, match="is the alias of another sink"):
        make(sinkId="others").run(0, rows(7))


class Unnamed(ElasticsearchQuery):
    """A batch that nothing names."""

    follows = Follows.ONCE

    @property
    def name(self) -> str:
        return sink_name(self.query_id, self.sink.plan.target)


def test_batch_without_a_name_is_refused_before_its_decision(
    make: Make, seen: Callable[..., dict[int, int]]
) -> None:
    query = make()
    batch = Unnamed(ROWS, **query.options)
    with pytest.raises(OptionError, match=r"has no name.*set txnAppId"):
        batch.run(0, rows(7))
    query.run(0, rows(0))
    assert seen() == {0: SIZE}


def test_alias_of_another_index_is_refused(make: Make, elastic: Elasticsearch, index: str) -> None:
    elastic.indices.create(index=f"{index}-other", aliases={f"{index}-visible": {}})
    try:
        with pytest.raises(OptionError, match=f"is an alias of {index}-other"):
            make()
    finally:
        elastic.indices.delete(index=f"{index}-other")


def test_alias_as_the_target_is_refused_at_start(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    """Once it leads elsewhere, readers would miss the epochs in one index or in the other."""
    elastic.indices.create(index=f"{index}-1", aliases={index: {"is_write_index": True}})
    shown = {"visibleAlias": f"{index}-visible", "sinkId": "orders"}
    try:
        with pytest.raises(OptionError, match=rf"an alias, contradict.*name the index: {index}-1"):
            into_index(ROWS, createIndex="false", **shown)
    finally:
        elastic.indices.delete(index=f"{index}-1")
