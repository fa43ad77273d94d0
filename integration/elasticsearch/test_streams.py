"""Data streams: each row is in one backing index, whatever is sent again and whenever they roll."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import documents
from integration.support.elasticsearch_decisions import apply_again, decide, keep_log
from integration.support.epochs import ElasticsearchQuery
from integration.support.proxy import Proxy

from sparkonce.errors import OptionError
from sparkonce.exactly_once.bad_rows import NONE

pytestmark = pytest.mark.variants

ROWS = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), ("id", pa.int64())])
Make = Callable[..., ElasticsearchQuery]


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"@timestamp": datetime(2024, 2, 29, tzinfo=timezone.utc), "id": id_} for id_ in ids]


def ids(client: Elasticsearch, stream: str) -> Counter[int]:
    """How often each row is in the stream, over all its indices."""
    client.indices.refresh(index=stream)
    found = client.search(index=stream, size=10_000)["hits"]["hits"]
    return Counter(hit["_source"]["id"] for hit in found)


@pytest.fixture
def stream(elastic: Elasticsearch, unique: str) -> Iterator[str]:
    """A data stream. Servers without the module for them make one by a first document."""
    fields = {"id": {"type": "long"}}
    elastic.indices.put_index_template(
        name=unique,
        index_patterns=[unique],
        data_stream={},
        template={
            "settings": {"number_of_replicas": 0},
            "mappings": {"dynamic": "strict", "properties": fields},
        },
    )
    first = elastic.index(index=unique, document={"@timestamp": 0, "id": 0}, op_type="create")
    elastic.delete(index=first["_index"], id=first["_id"])
    yield unique
    elastic.options(ignore_status=(400, 405)).indices.delete_data_stream(name=unique)


@pytest.fixture
def into_stream(into_index: Make, stream: str) -> Make:
    """Make a checked query into the stream."""

    def make(schema: pa.Schema = ROWS, **options: str) -> ElasticsearchQuery:
        return into_index(schema, **{"createIndex": "false", "index": stream, **options})

    return make


def test_rows_go_to_the_index_that_takes_writes(
    into_stream: Make, elastic: Elasticsearch, stream: str
) -> None:
    query = into_stream(chunkRows="2")
    query.run(0, rows(1, 1, 2, 3, 4))
    first, second = elastic.indices.rollover(alias=stream).body["old_index"], None
    query.run(1, rows(5), rows(6))
    second = elastic.indices.rollover(alias=stream).body["old_index"]
    query.run(1, rows(7))
    assert ids(elastic, stream) == Counter([1, 1, 2, 3, 4, 5, 6])
    assert [len(documents(elastic, index)) for index in (first, second)] == [5, 2]


def test_rollover_between_the_decision_and_what_is_sent_again_doubles_nothing(
    into_stream: Make, elastic: Elasticsearch, stream: str
) -> None:
    query = into_stream(chunkRows="2", parallelism="1")
    keep_log(query)
    elastic.indices.rollover(alias=stream)
    manifest = decide(query, 0, rows(*range(5)), rows(9))
    send, sent = query.sink.store.log.fetch, []

    def dies(place: Any) -> Any:
        if len(sent) == 2:
            raise KeyboardInterrupt
        sent.append(place)
        return send(place)

    query.sink.store.log.fetch = dies
    with pytest.raises(KeyboardInterrupt):
        apply_again(query, manifest)
    del query.sink.store.log.fetch
    assert len(ids(elastic, stream)) == 4
    for _ in range(2):
        elastic.indices.rollover(alias=stream)
        apply_again(query, manifest)
    query.restart()
    query.run(1, rows(10))
    elastic.indices.rollover(alias=stream)
    apply_again(query, manifest)
    assert ids(elastic, stream) == Counter([*range(5), 9, 10])


def test_row_that_lands_late_before_a_rollover_is_there_once(
    into_stream: Make, elastic: Elasticsearch, stream: str
) -> None:
    """After its look-up, and before the repeated row comes, which the rollover sends elsewhere."""
    query = into_stream()
    keep_log(query)
    manifest = decide(query, 0, rows(1, 2))
    bulk, late = type(query.sink.store.cluster).ask, []

    def ask(doing: str, method: str, target: str, **given: Any) -> Any:
        if target == f"/{stream}/_bulk" and not late:
            lines = bytes(given["body"]).splitlines(keepends=True)
            late.append(
                bulk(query.sink.store.cluster, doing, method, target, body=lines[0] + lines[1])
            )
            elastic.indices.rollover(alias=stream)
        return bulk(query.sink.store.cluster, doing, method, target, **given)

    query.sink.store.cluster.ask = ask
    apply_again(query, manifest)
    del query.sink.store.cluster.ask
    assert late
    assert ids(elastic, stream) == Counter([1, 2])


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["cut_request", "cut_reply"])
def test_rows_are_there_once_whichever_request_is_cut_and_with_a_rollover_at_each_try(
    elasticsearch_proxy: Proxy, into_stream: Make, elastic: Elasticsearch, stream: str, fault: str
) -> None:
    proxy = elasticsearch_proxy
    query = into_stream(url=proxy.url, parallelism="2", chunkRows="2")
    for nth in count():
        cuts = proxy.cuts
        if nth:
            getattr(proxy, fault)(lambda _: True, nth=nth)
        query.run_until_done(
            nth,
            rows(*range(3)),
            rows(*range(3, 6)),
            between=partial(elastic.indices.rollover, alias=stream),
        )
        proxy.restore()
        assert ids(elastic, stream) == Counter(dict.fromkeys(range(6), nth + 1))
        if nth and proxy.cuts == cuts:
            break  # an epoch has no request of that number
    assert nth > 15


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"key": "id"}, "takes new documents only"),
        ({"visibleAlias": "v", "sinkId": "s"}, "would show one of its"),
        ({"routing": "id"}, "looked for by its id"),
    ],
)
def test_what_a_data_stream_cannot_keep_is_refused_at_start(
    into_stream: Make, options: dict[str, str], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        into_stream(**options)


def test_query_without_a_timestamp_is_refused_at_start(into_stream: Make) -> None:
    with pytest.raises(OptionError, match=r"no column '@timestamp'.*withColumn"):
        into_stream(pa.schema([("id", pa.int64())]))


def test_rows_are_there_once_although_their_driver_slept_before_it_sent_any(
    into_stream: Make, elastic: Elasticsearch, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one sent them meanwhile, and died before it could say so; then the stream rolled."""
    monkeypatch.setattr("pyspark_elasticsearch.write.delivery.PAUSE", 0.05)
    query = into_stream()
    store = query.sink.store
    apply = store.apply

    def dies(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def sleeps(*given: Any) -> Any:
        options = {"deadLetter": None, "maxBadRows": NONE}
        other = type(store)(store.cluster, store.indices, options)
        other.records.advance = dies
        with pytest.raises(KeyboardInterrupt):
            other.apply(given[0])
        elastic.indices.rollover(alias=stream)
        time.sleep(0.1)
        return apply(*given)

    store.apply = sleeps
    try:
        query.run(0, rows(1, 2))
    finally:
        del store.apply
    assert ids(elastic, stream) == Counter([1, 2])
