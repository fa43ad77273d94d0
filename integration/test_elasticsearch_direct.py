"""`write=direct`: whoever writes again, late or at once, the index ends as the epochs say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.documents import documents
from integration.epochs import ElasticsearchQuery
from integration.proxy import Proxy

from sparkonce.errors import (
    ConcurrentDriver,
    QueryRetired,
    SinkBehindCheckpoint,
    SparkonceError,
    StoreRefused,
)
from sparkonce.protocol import Outlet, Receipt

ROWS = pa.schema([("id", pa.int64()), ("name", pa.string())])
CHANGES = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])
Make = Callable[..., ElasticsearchQuery]
DIRECT = {"key": "id", "write": "direct"}


def row(id_: int | None, name: str = "a") -> dict[str, Any]:
    return {"id": id_, "name": name}


def batch(*rows: dict[str, Any], schema: pa.Schema = ROWS) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema)


def names(client: Elasticsearch, index: str) -> dict[str, str]:
    return {id_: one["name"] for id_, one in documents(client, index).items()}


def outlet(query: ElasticsearchQuery, epoch: int, partition: int = 0) -> Outlet:
    """The way into the target of a task that began, and then waits."""
    found = query.sink.store.outlet(query.task(epoch, partition))
    assert found is not None
    return found


def write(
    query: ElasticsearchQuery, epoch: int, partition: int, rows: Sequence[dict[str, Any]]
) -> Receipt:
    return query.write(query.task(epoch, partition), [batch(*rows)])


def test_rows_are_there_before_the_commit_and_counted_by_it(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    receipts = query.stage(0, [row(1), row(2)], [row(3)])
    assert list(names(elastic, index)) == ["1", "2", "3"]
    assert query.sink.store.staged(query.name) == []
    assert query.commit(0, receipts).rows == 3
    assert query.run(1, [row(1, "b")]).rows == 4
    assert names(elastic, index) == {"1": "b", "2": "a", "3": "a"}


@pytest.mark.parametrize("chunk_rows", ["1000", "3000", "10000"])
def test_last_row_of_a_key_stays_in_whatever_order_tasks_and_requests_come(
    into_index: Make, elastic: Elasticsearch, index: str, chunk_rows: str
) -> None:
    query = into_index(ROWS, chunkRows=chunk_rows, parallelism="8", **DIRECT)
    rows = [row(i % 7, f"{i}") for i in range(12_345)]
    last = {str(i % 7): f"{i}" for i in range(12_345)}
    cut = [batch(*rows[:10]), batch(*rows[10:9999]), batch(*rows[9999:])]
    second = write(query, 0, 1, [row(3, "last")])
    first = query.write(query.task(0, 0), cut)
    assert names(elastic, index) == {**last, "3": "last"}
    query.commit(0, [first, second])
    assert first.written == 12_345


def test_replay_changes_nothing_and_is_skipped_once_the_epoch_is_committed(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    parts = [row(1, "x"), row(2, "x")], [row(1, "y")]
    query.stage(0, *parts)
    query.restart(chunkRows="1000")
    query.stage(0, *reversed(parts[:1]))
    query.restart()
    query.run(0, *parts)
    receipts = query.stage(0, [row(1, "z")])
    assert [one.written for one in receipts] == [0]
    assert query.commit(0, receipts).rows == 3
    assert names(elastic, index) == {"1": "y", "2": "x"}


def test_driver_killed_in_mid_epoch_leaves_what_the_next_one_completes(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    query.run(0, [row(1, "old"), row(2, "old")])
    write(query, 1, 1, [row(1, "last")])
    query.restart()
    query.run(1, [row(1, "first"), row(2, "new")], [row(1, "last")])
    assert names(elastic, index) == {"1": "last", "2": "new"}


def test_late_attempt_of_an_older_epoch_overwrites_nothing(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    late = [outlet(query, 0, partition) for partition in (0, 4095)]
    query.run(0, [row(1, "0"), row(2, "0")])
    query.run(1, [row(1, "1")])
    query.restart(write="logged")
    query.run(2, [row(2, "2")])
    for one in late:
        one.put(10_000_000, batch(row(1, "late"), row(2, "late")))
    assert names(elastic, index) == {"1": "1", "2": "2"}


def test_late_delete_and_late_write_are_refused_too(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(CHANGES, opColumn="op", **DIRECT)
    late = outlet(query, 0)
    changes = [(1, "i"), (2, "i"), (3, "d")]
    query.run(0, [{"id": id_, "name": "0", "op": op} for id_, op in changes])
    query.run(1, [{"id": 1, "name": "1", "op": "d"}, {"id": 2, "name": "1", "op": "u"}])
    rows = [{"id": 1, "name": "late", "op": "i"}, {"id": 2, "name": "late", "op": "d"}]
    late.put(0, batch(*rows, schema=CHANGES))
    assert names(elastic, index) == {"2": "1"}


def test_late_attempt_of_a_query_that_was_replaced_overwrites_nothing(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    same = {"sinkId": "orders", "checkpointLocation": "/checkpoints/orders", **DIRECT}
    old = into_index(ROWS, **same)
    for epoch in range(4):
        old.run(epoch, [row(1, f"old {epoch}")])
    late = outlet(old, 4)
    new = into_index(ROWS, **same)
    new.run(0, [row(1, "new")])
    late.put(0, batch(row(1, "late")))
    with pytest.raises(QueryRetired):
        old.stage(5, [row(1, "retired")])
    assert names(elastic, index) == {"1": "new"}


@pytest.mark.parametrize(
    ("epoch", "error"), [(0, ConcurrentDriver), (5, SinkBehindCheckpoint)], ids=str
)
def test_task_whose_commit_would_be_refused_writes_nothing(
    into_index: Make, elastic: Elasticsearch, index: str, epoch: int, error: type[SparkonceError]
) -> None:
    query = into_index(ROWS, **DIRECT)
    before = query.run_id
    query.run(0, [])
    query.restart()
    query.run(1, [row(1)])
    if error is ConcurrentDriver:
        query.run_id, epoch = before, 2
    with pytest.raises(error):
        query.stage(epoch, [row(1, "wrong"), row(9)])
    assert names(elastic, index) == {"1": "a"}


def test_task_that_finds_its_epoch_decided_in_mid_write_stops(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    slow: Any = outlet(query, 0)
    query.run(0, [row(1)])
    slow.sender._looked -= 60
    with pytest.raises(StoreRefused, match=r"Epoch 0 was decided while a task still wrote it"):
        slow.put(0, batch(row(2)))
    assert names(elastic, index) == {"1": "a"}


def test_write_may_change_from_run_to_run(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    want: dict[str, str] = {}
    for epoch in range(6):
        mode = "logged" if epoch % 2 else "direct"
        other = "direct" if epoch % 2 else "logged"
        rows = [row(id_, f"{epoch} {mode}") for id_ in range(epoch, 8)]
        query.restart(write=other)
        query.stage(epoch, rows)  # and its driver dies
        query.restart(write=mode)
        query.run(epoch, rows)
        want |= {str(one["id"]): one["name"] for one in rows}
        assert names(elastic, index) == want
    query.sink.store.log.refresh()  # what is listed late is listed now, and the next commit cleans
    query.run(6, [])
    query.sink.store.log.refresh()
    assert query.sink.store.staged(query.name) == []


def test_decision_that_is_on_its_way_when_tasks_begin_loses_no_row(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    logged, direct = into_index(ROWS, key="id"), into_index(ROWS, **DIRECT)
    direct.query_id = logged.query_id
    parts = [row(1, "first")], [row(1, "last")]
    receipts, store = logged.stage(0, *parts), logged.sink.store
    swap, tokens = store.swap, set()

    def late(name: str, new: Any) -> Any:
        if new.token and new.token not in tokens:
            tokens.add(new.token)
            if len(tokens) == 1:
                write(direct, 0, 0, parts[0])
        return swap(name, new)

    store.swap = late
    logged.commit(0, receipts)
    assert names(elastic, index) == {"1": "last"}
    assert len(tokens) == 2


def test_index_that_is_deleted_between_two_tries_is_not_made_anew(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(ROWS, **DIRECT)
    query.stage(0, [row(1)])
    elastic.indices.delete(index=index)
    with pytest.raises(StoreRefused, match=r"no index .* any more"):
        query.stage(0, [row(1)])
    assert not elastic.indices.exists(index=index)


def test_two_queries_that_write_the_same_ids_both_get_through(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    first = into_index(ROWS, **DIRECT)
    second = into_index(ROWS, sinkId="second", **DIRECT)
    third = into_index(ROWS, sinkId="third", key="id")
    for epoch in range(3):
        for name, query in (("first", first), ("second", second), ("third", third)):
            query.run(epoch, [row(1, name)])
            assert names(elastic, index) == {"1": name}


def test_versions_of_the_users_own_order_rows_of_all_tasks(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    schema = pa.schema([*ROWS, ("v", pa.int64())])
    query = into_index(schema, versionColumn="v", **DIRECT)
    query.run(0, [{"id": 1, "name": "new", "v": 7}], [{"id": 1, "name": "old", "v": 3}])
    query.run(1, [{"id": 1, "name": "older", "v": 5}])
    assert names(elastic, index) == {"1": "new"}


@pytest.mark.long
def test_network_that_cuts_any_request_loses_and_brings_back_nothing(
    elasticsearch_proxy: Proxy, into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    proxy = elasticsearch_proxy
    query = into_index(ROWS, url=proxy.url, parallelism="2", **DIRECT)
    for nth in count():
        cuts = proxy.cuts
        if nth:
            proxy.cut_reply(lambda _: True, nth=nth)
        parts = [row(i, f"{nth}") for i in range(5)], [row(4, f"{nth} last"), row(5, f"{nth}")]
        query.run_until_done(nth, *parts)
        proxy.restore()
        want = {f"{i}": f"{nth}" for i in range(6)} | {"4": f"{nth} last"}
        assert names(elastic, index) == want
        if nth and proxy.cuts == cuts:
            break  # an epoch has no request of that number
    assert nth > 8


def test_partition_or_row_without_a_place_is_refused(into_index: Make) -> None:
    query = into_index(ROWS, **DIRECT)
    with pytest.raises(StoreRefused, match=r"partition 8,192.*fewer partitions.*write=logged"):
        write(query, 0, 8192, [row(1)])
    with pytest.raises(StoreRefused, match=r"more than 32,768,000 rows"):
        outlet(query, 0).put(32_768_000, batch(row(1)))
