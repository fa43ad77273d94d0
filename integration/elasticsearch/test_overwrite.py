"""Mode overwrite in Elasticsearch: a new index takes the alias over, whatever dies between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import documents
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases

from pyspark_elasticsearch.target import aliases
from sparkonce.errors import BatchOvertaken, OptionError
from sparkonce.operate.admin import Admin

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
OLD, NEW = range(300), range(250, 420)


def rows(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": i} for i in ids]


@pytest.fixture
def dropped(elastic: Elasticsearch, unique: str) -> Iterator[str]:
    """Give a name with which the test's indices begin, and drop them in the end."""
    yield unique
    elastic.indices.delete(index=",".join(elastic.indices.get(index=f"{unique}*").body))


@pytest.fixture
def alias(elastic: Elasticsearch, dropped: str) -> str:
    """An alias with a filter, and another one, of an index that has rows."""
    elastic.indices.create(
        index=f"{dropped}-old",
        settings={"number_of_replicas": 0, "refresh_interval": "7s"},
        mappings={"properties": {"id": {"type": "long"}, "n": {"type": "short"}}},
        aliases={dropped: {}, f"{dropped}-few": {"filter": {"range": {"id": {"lt": 260}}}}},
    )
    return dropped


@pytest.fixture(params=[{}, {"key": "id"}], ids=["append", "upsert"])
def query(request: pytest.FixtureRequest, elasticsearch_url: str, alias: str) -> ElasticsearchQuery:
    given = {"url": elasticsearch_url, "index": alias, "chunkRows": "50", **request.param}
    ElasticsearchQuery(SCHEMA, **given).run(0, rows(OLD))
    made = ElasticsearchQuery(SCHEMA, **given)
    made.overwrite = True
    made.sink.check()
    return made


def held(client: Elasticsearch, name: str) -> list[int]:
    return sorted(one["id"] for one in documents(client, name).values())


def test_new_index_takes_over_with_settings_mappings_and_aliases(
    query: ElasticsearchQuery, elastic: Elasticsearch, alias: str
) -> None:
    query.run(0, rows(NEW))
    (index,) = elastic.indices.get(index=f"{alias}*").body
    assert index != f"{alias}-old"
    about = elastic.indices.get(index=index).body[index]
    assert about["settings"]["index"]["refresh_interval"] == "7s"
    assert about["mappings"]["properties"]["n"] == {"type": "short"}
    assert held(elastic, alias) == list(NEW)
    assert held(elastic, f"{alias}-few") == list(range(250, 260))
    query.run(1)
    assert held(elastic, alias) == [], "no row is written, so none is left"


@pytest.mark.parametrize("step", ["take_over", *slow_cases("make", "after")])
def test_what_dies_on_the_way_is_finished(
    query: ElasticsearchQuery,
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

    receipts = query.stage(0, rows(NEW))
    monkeypatch.setattr(aliases, "take_over" if step == "after" else step, dies)
    with pytest.raises(ZeroDivisionError):
        query.commit(0, receipts)
    if step != "after":
        assert held(elastic, alias) == list(OLD)
    monkeypatch.undo()
    admin = Admin(query.sink.store)
    admin.recover(admin.sink(query.name))
    assert held(elastic, alias) == list(NEW)
    assert len(elastic.indices.get(index=f"{alias}*").body) == 1


@pytest.mark.parametrize("step", ["take_over", *slow_cases("make")])
def test_one_that_comes_after_a_later_one_replaces_nothing(
    query: ElasticsearchQuery,
    elastic: Elasticsearch,
    alias: str,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    receipts = query.stage(0, rows(OLD))
    monkeypatch.setattr(aliases, step, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        query.commit(0, receipts)
    monkeypatch.undo()
    other = ElasticsearchQuery(SCHEMA, **query.options)
    other.overwrite = True
    other.run(0, rows(NEW))
    admin = Admin(query.sink.store)
    with pytest.raises(BatchOvertaken, match=other.name):
        admin.recover(admin.sink(query.name))
    admin.recover(admin.sink(query.name), over_newer=True)
    assert held(elastic, alias) == list(NEW)
    assert len(elastic.indices.get(index=f"{alias}*").body) == 1
    assert "comes too late" in caplog.text


def test_an_index_itself_is_not_replaced(elasticsearch_url: str, alias: str) -> None:
    query = ElasticsearchQuery(SCHEMA, url=elasticsearch_url, index=f"{alias}-old")
    query.overwrite = True
    with pytest.raises(OptionError, match=f"name an alias of one index.*{alias}-old_all"):
        query.sink.check()


def test_the_first_index_is_made_behind_its_alias(
    elasticsearch_url: str, dropped: str, elastic: Elasticsearch
) -> None:
    query = ElasticsearchQuery(SCHEMA, url=elasticsearch_url, index=dropped, createIndex="true")
    query.overwrite = True
    query.sink.check()
    query.run(0, rows(NEW))
    assert held(elastic, dropped) == list(NEW)


def test_one_that_is_passed_while_it_takes_over_replaces_nothing(
    query: ElasticsearchQuery,
    elastic: Elasticsearch,
    alias: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other, cluster = ElasticsearchQuery(SCHEMA, **query.options), query.sink.store.cluster
    other.overwrite = True
    ask, passed = cluster.ask, []

    def passing(doing: str, method: str, target: str, **more: Any) -> Any:
        if target == "/_aliases" and not passed:
            passed.append(target)
            other.run(0, rows(NEW))
        return ask(doing, method, target, **more)

    monkeypatch.setattr(cluster, "ask", passing)
    query.run(0, rows(OLD))
    assert passed
    assert held(elastic, alias) == list(NEW)
    assert len(elastic.indices.get(index=f"{alias}*").body) == 1
