"""Readers of `visibleAlias` see whole epochs, whatever happens in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import Index, decide, die_after, documents
from integration.support.epochs import ElasticsearchQuery, dies
from integration.support.marks import slow_cases

from pyspark_elasticsearch.journal.records import Destination
from pyspark_elasticsearch.target import aliases
from sparkonce.errors import BatchOvertaken, OptionError, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.ledger import sink_name
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows
from sparkonce.tck.simulation.race import reading

ROWS = pa.schema([("epoch", pa.int64()), ("n", pa.int64())])
SIZE = 2000
Make = Callable[..., ElasticsearchQuery]


@pytest.fixture
def make(index: Index) -> Make:
    index.client.indices.create(
        index=index, settings={"number_of_shards": 3, "number_of_replicas": 0}
    )

    def make(**options: str) -> ElasticsearchQuery:
        visible = {"visibleAlias": f"{index}-visible", "sinkId": "orders"}
        return index.into(ROWS, **{**visible, "chunkRows": "100", **options})

    return make


@pytest.fixture
def seen(index: Index) -> Callable[[], dict[int, int]]:
    """How many rows of each epoch a reader finds."""
    by = {"by": {"terms": {"field": "epoch", "size": 100}}}

    def look(name: str = f"{index}-visible") -> dict[int, int]:
        found = index.client.search(index=name, size=0, aggs=by)["aggregations"]["by"]["buckets"]
        return {bucket["key"]: bucket["doc_count"] for bucket in found}

    return look


def rows(epoch: int) -> list[dict[str, int]]:
    return [{"epoch": epoch, "n": n} for n in range(SIZE)]


@pytest.mark.slow
def test_reader_beside_commits_sees_whole_epochs_and_all_before_them(
    make: Make, index: Index, seen: Callable[..., dict[int, int]]
) -> None:
    query = make()
    index.client.indices.put_settings(index=index, settings={"index.refresh_interval": "5ms"})
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
    make: Make, index: Index, seen: Callable[..., dict[int, int]]
) -> None:
    query = make(parallelism="1")
    query.run(0, rows(0))
    die_after(query, 5, 1, query.stage(1, rows(1)))
    index.client.indices.refresh(index=index)
    assert 0 < seen(index)[1] < SIZE
    assert seen() == {0: SIZE}
    query.restart()
    query.run(1, [])
    assert seen() == {0: SIZE, 1: SIZE}


def test_epoch_that_took_long_is_shown_by_whoever_comes_after_a_driver_that_died_at_its_end(
    make: Make, seen: Callable[..., dict[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    query = make()
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
    make: Make, index: Index, seen: Callable[[], dict[int, int]]
) -> None:
    index.client.indices.put_settings(index=index, settings={"number_of_replicas": 2})
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
    make: Make, index: Index, seen: Callable[..., dict[int, int]]
) -> None:
    make().run(0, rows(0))
    other = make(sinkId="others")
    with pytest.raises(StoreRefused, match="is the alias of another sink"):
        other.run(0, rows(7))
    assert seen() == seen(index) == {0: SIZE}
    index.client.indices.delete_alias(index=index, name=f"{index}-visible")
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
    with pytest.raises(OptionError, match=r"needs a batch with a name.*set txnAppId"):
        batch.run(0, rows(7))
    query.run(0, rows(0))
    assert seen() == {0: SIZE}


def test_alias_of_another_index_is_refused(make: Make, index: Index) -> None:
    index.client.indices.create(index=f"{index}-other", aliases={f"{index}-visible": {}})
    with pytest.raises(OptionError, match=f"is an alias of {index}-other"):
        make()


def test_alias_as_the_target_is_refused_at_start(index: Index) -> None:
    """Once it leads elsewhere, readers would miss the epochs in one index or in the other."""
    index.client.indices.create(index=f"{index}-1", aliases={index: {"is_write_index": True}})
    shown = {"visibleAlias": f"{index}-visible", "sinkId": "orders"}
    with pytest.raises(OptionError, match=rf"an alias, contradict.*name the index: {index}-1"):
        index.into(ROWS, createIndex="false", **shown)


COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
OLD, NEW = range(300), range(250, 420)


def numbered(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": i} for i in ids]


@pytest.fixture
def alias(index: Index) -> str:
    """An alias with a filter, and another one, of an index that has rows."""
    index.client.indices.create(
        index=f"{index}-old",
        settings={"number_of_replicas": 0, "refresh_interval": "7s"},
        mappings={"properties": {"id": {"type": "long"}, "n": {"type": "short"}}},
        aliases={index: {}, f"{index}-few": {"filter": {"range": {"id": {"lt": 260}}}}},
    )
    return index


@pytest.fixture(params=[{}, {"key": "id"}], ids=["append", "upsert"])
def overwriting(
    request: pytest.FixtureRequest, elasticsearch_url: str, alias: str
) -> ElasticsearchQuery:
    given = {"url": elasticsearch_url, "index": alias, "chunkRows": "50", **request.param}
    ElasticsearchQuery(COUNTER, **given).run(0, numbered(OLD))
    made = ElasticsearchQuery(COUNTER, **given)
    made.overwrite = True
    made.sink.check()
    return made


def held(client: Elasticsearch, name: str) -> list[int]:
    return sorted(one["id"] for one in documents(client, name).values())


def test_new_index_takes_over_with_settings_mappings_and_aliases(
    overwriting: ElasticsearchQuery, elastic: Elasticsearch, alias: str
) -> None:
    overwriting.run(0, numbered(NEW))
    (index,) = elastic.indices.get(index=f"{alias}*").body
    assert index != f"{alias}-old"
    about = elastic.indices.get(index=index).body[index]
    assert about["settings"]["index"]["refresh_interval"] == "7s"
    assert about["mappings"]["properties"]["n"] == {"type": "short"}
    assert held(elastic, alias) == list(NEW)
    assert held(elastic, f"{alias}-few") == list(range(250, 260))
    overwriting.run(1)
    assert held(elastic, alias) == [], "no row is written, so none is left"


@pytest.mark.parametrize("step", ["take_over", *slow_cases("make", "after")])
def test_what_dies_on_the_way_is_finished(
    overwriting: ElasticsearchQuery,
    elastic: Elasticsearch,
    alias: str,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_over = aliases.take_over

    def dies(*given: object) -> None:
        if step == "after":
            take_over(*given)  # type: ignore[arg-type]
        raise ZeroDivisionError("the driver dies")

    receipts = overwriting.stage(0, numbered(NEW))
    monkeypatch.setattr(aliases, "take_over" if step == "after" else step, dies)
    with pytest.raises(ZeroDivisionError):
        overwriting.commit(0, receipts)
    if step != "after":
        assert held(elastic, alias) == list(OLD)
    monkeypatch.undo()
    admin = Admin(overwriting.sink.store)
    admin.recover(admin.sink(overwriting.name))
    assert held(elastic, alias) == list(NEW)
    assert len(elastic.indices.get(index=f"{alias}*").body) == 1


@pytest.mark.parametrize("step", ["take_over", *slow_cases("make")])
def test_one_that_comes_after_a_later_one_replaces_nothing(
    overwriting: ElasticsearchQuery,
    elastic: Elasticsearch,
    alias: str,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    receipts = overwriting.stage(0, numbered(OLD))
    monkeypatch.setattr(aliases, step, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        overwriting.commit(0, receipts)
    monkeypatch.undo()
    other = ElasticsearchQuery(COUNTER, **overwriting.options)
    other.overwrite = True
    other.run(0, numbered(NEW))
    admin = Admin(overwriting.sink.store)
    with pytest.raises(BatchOvertaken, match=other.name):
        admin.recover(admin.sink(overwriting.name))
    admin.recover(admin.sink(overwriting.name), over_newer=True)
    assert held(elastic, alias) == list(NEW)
    assert len(elastic.indices.get(index=f"{alias}*").body) == 1
    assert "already replaced" in caplog.text


def test_a_batch_that_a_lagging_node_decided_for_is_not_dropped_in_silence(
    overwriting: ElasticsearchQuery, alias: str
) -> None:
    """The alias had moved before the decision, and the node still showed the former index."""
    cluster, later = overwriting.sink.store.cluster, (int(time.time()) + 60) * 1000
    to = Destination(later, f"{alias}-new", replaces=f"{alias}-gone")
    for step in (aliases.make, aliases.take_over):
        with pytest.raises(StoreRefused, match="was already replaced when the batch was decided"):
            step(cluster, to, alias)
    shown = replace(to, replaces=f"{alias}-old")
    with pytest.raises(StoreUnreachable, match="which no longer exists"):
        aliases._require_superseded(cluster, shown, alias)


def test_an_index_itself_is_not_replaced(elasticsearch_url: str, alias: str) -> None:
    overwriting = ElasticsearchQuery(COUNTER, url=elasticsearch_url, index=f"{alias}-old")
    overwriting.overwrite = True
    with pytest.raises(OptionError, match=f"name an alias of one index.*{alias}-old_all"):
        overwriting.sink.check()


def test_the_first_index_is_made_behind_its_alias(index: Index) -> None:
    overwriting = index.query(COUNTER, createIndex="true")
    overwriting.overwrite = True
    overwriting.sink.check()
    overwriting.run(0, numbered(NEW))
    assert held(index.client, index) == list(NEW)


def test_one_that_is_passed_while_it_takes_over_replaces_nothing(
    overwriting: ElasticsearchQuery,
    elastic: Elasticsearch,
    alias: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, cluster = (
        ElasticsearchQuery(COUNTER, **overwriting.options),
        overwriting.sink.store.cluster,
    )
    other.overwrite = True
    ask, passed = cluster.ask, []

    def passing(doing: str, method: str, target: str, **more: Any) -> Any:
        if target == "/_aliases" and not passed:
            passed.append(target)
            other.run(0, numbered(NEW))
        return ask(doing, method, target, **more)

    monkeypatch.setattr(cluster, "ask", passing)
    overwriting.run(0, numbered(OLD))
    assert passed
    assert held(elastic, alias) == list(NEW)
    assert len(elastic.indices.get(index=f"{alias}*").body) == 1
