"""The `sparkonce` command against Elasticsearch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from elasticsearch import Elasticsearch
from integration.documents import documents
from integration.epochs import ElasticsearchQuery

from sparkonce.cli import main
from sparkonce.errors import CommitRefused, RowRefused

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def world(elastic: Elasticsearch, index: str) -> Iterator[str]:
    """A target for small numbers, and a prefix of the test's own."""
    fields = {"id": {"type": "long"}, "n": {"type": "byte"}}
    guard = {"sparkonce": {"type": "object", "enabled": False}}
    elastic.indices.create(index=index, mappings={"properties": {**fields, **guard}})
    yield index
    for name in ("ledger", "log", "bad"):
        elastic.options(ignore_status=404).indices.delete(index=f"{index}-{name}")


@pytest.fixture
def query(elasticsearch_url: str, world: str) -> ElasticsearchQuery:
    return ElasticsearchQuery(
        COUNTER,
        url=elasticsearch_url,
        index=world,
        indexPrefix=world,
        key="id",
        writeMode="increment",
        chunkRows="2",
    )


def sparkonce(command: str, query: ElasticsearchQuery, *arguments: str) -> Result:
    given = [query.options["url"], "-o", f"indexPrefix={query.options['indexPrefix']}"]
    return CliRunner().invoke(main, [command, *given, *arguments], catch_exceptions=False)


def ones(count: int) -> list[dict[str, int]]:
    return [{"id": i, "n": 1} for i in range(count)]


def test_status_shows_every_sink_and_nothing_where_there_is_none(query: ElasticsearchQuery) -> None:
    assert "No sink has written to this store." in sparkonce("status", query).output
    query.run(0, ones(5))
    query.stage(1, ones(3))
    (told,) = json.loads(sparkonce("status", query, "--json").output)
    assert (told["sink"], told["epoch"], told["rows"]) == (query.name, 0, 5)
    assert (told["staged_attempts"], told["staged_chunks"]) == (1, 2)


def test_recover_puts_refused_rows_aside_on_demand_and_doubles_nothing(
    query: ElasticsearchQuery, elastic: Elasticsearch, world: str
) -> None:
    query.run(0, [{"id": 3, "n": 127}])
    with pytest.raises(RowRefused):
        query.run(1, ones(5))
    assert "run recover" in sparkonce("status", query).output
    failed = sparkonce("recover", query)
    assert failed.exit_code == 1
    assert "id '3'" in failed.output
    aside = ["-o", "onBadRow=deadLetter", "-o", f"deadLetter={world}-bad"]
    assert "1 epochs recovered." in sparkonce("recover", query, *aside).output
    assert "0 epochs recovered." in sparkonce("recover", query, *aside).output
    found = {one["id"]: one["n"] for one in documents(elastic, world).values()}
    assert found == {0: 1, 1: 1, 2: 1, 3: 127, 4: 1}
    (letter,) = documents(elastic, f"{world}-bad").values()
    assert (letter["epoch"], letter["id"], json.loads(letter["row"])) == (1, "3", {"id": 3, "n": 1})
    mapping = elastic.indices.get_mapping(index=f"{world}-bad")[f"{world}-bad"]["mappings"]
    assert mapping["dynamic"] == "false"


@pytest.mark.long
@pytest.mark.parametrize("shrunk", [False, True])
def test_rest_of_an_epoch_goes_to_another_index_once_the_first_takes_no_writes(
    query: ElasticsearchQuery,
    elastic: Elasticsearch,
    world: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    shrunk: bool,
) -> None:
    query.options.pop("key")
    query.options |= {"writeMode": "append", "parallelism": "1", "index": f"{world}-rows"}
    elastic.indices.create(
        index=f"{world}-1",
        settings={"number_of_shards": 2, "number_of_replicas": 0},
        aliases={f"{world}-rows": {"is_write_index": True}},
    )
    query.run(0, ones(3))
    store, sent = query.sink.store, []
    fetch = store.log.fetch

    def dies(place: Any) -> Any:
        if len(sent) == 2:
            raise KeyboardInterrupt
        sent.append(place)
        return fetch(place)

    store.log.fetch = dies
    with pytest.raises(KeyboardInterrupt):
        query.run(1, [{"id": id_, "n": 1} for id_ in range(10, 17)])
    store.log.fetch = fetch
    elastic.indices.put_settings(index=f"{world}-1", settings={"index.blocks.write": True})
    first = f"{world}-1"
    if shrunk:
        first = f"{world}-shrunk"
        elastic.indices.shrink(index=f"{world}-1", target=first, wait_for_active_shards="1")
        swap = [
            {"remove_index": {"index": f"{world}-1"}},
            {"add": {"index": first, "alias": f"{world}-1"}},
            {"add": {"index": first, "alias": f"{world}-rows"}},
        ]
        elastic.indices.update_aliases(actions=swap)
    elastic.indices.create(index=f"{world}-2")
    assert "needs --sink" in sparkonce("recover", query, "--to", f"{world}-2").output
    failed = sparkonce("recover", query, "--sink", query.name, "--to", f"{world}-none")
    assert "can't go to" in failed.output
    own = sparkonce("recover", query, "--sink", query.name, "--to", query.sink.store.indices.log)
    assert "an index of the connector's own" in own.output
    aside = ["-o", "onBadRow=deadLetter", "-o", f"deadLetter={world}-2"]
    letters = sparkonce("recover", query, "--sink", query.name, "--to", f"{world}-2", *aside)
    assert "name one index" in letters.output
    elastic.indices.create(index=f"{world}-strict", mappings={"dynamic": "strict"})
    strict = sparkonce("recover", query, "--sink", query.name, "--to", f"{world}-strict")
    assert "is not in the mapping" in strict.output
    with monkeypatch.context() as patch:
        patch.setattr("sparkonce.admin.Admin.recover", lambda *_, **__: 1 / 0)  # as a crash
        with pytest.raises(ZeroDivisionError):
            sparkonce("recover", query, "--sink", query.name, "--to", f"{world}-2")
    there = sparkonce("recover", query, "--sink", query.name, "--to", f"{world}-2")
    assert "1 epochs recovered." in there.output
    found = [documents(elastic, name).values() for name in (first, f"{world}-2")]
    assert [sorted(one["id"] for one in rows) for rows in found] == [
        [0, 1, 2, 10, 11, 12, 13],
        [14, 15, 16],
    ]
    again = sparkonce("recover", query, "--sink", query.name, "--to", f"{world}-2")
    assert "can go to another place" in again.output
    elastic.indices.delete(index=f"{first},{world}-2,{world}-strict")


def test_rest_of_an_epoch_with_a_key_goes_nowhere_else(
    query: ElasticsearchQuery, world: str
) -> None:
    query.run(0, [{"id": 3, "n": 127}])
    with pytest.raises(RowRefused):
        query.run(1, ones(5))
    failed = sparkonce("recover", query, "--sink", query.name, "--to", world)
    assert "that is for writeMode=append" in failed.output


def test_gc_drops_what_no_epoch_will_take(query: ElasticsearchQuery) -> None:
    query.run(0, ones(1))
    query.stage(1, ones(5))
    query.stage(9, ones(1))
    assert "0 attempts found" in sparkonce("gc", query, "--yes").output
    assert "2 attempts found, 2 dropped." in sparkonce("gc", query, "--yes", "--grace", "0").output
    assert "0 attempts found" in sparkonce("gc", query, "--grace", "0").output


def test_forgotten_sink_refuses_the_query_that_still_runs(query: ElasticsearchQuery) -> None:
    query.run(0, ones(1))
    receipts = query.stage(1, ones(1))
    assert "is forgotten" in sparkonce("forget", query, query.name, "--yes").output
    with pytest.raises(CommitRefused):
        query.commit(1, receipts)
    assert "No sink has written" in sparkonce("status", query).output
