"""What an answer to a bulk request says, item by item, however fast it is read."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

pytest.importorskip("elasticsearch")

from pyspark_elasticsearch import bulk
from pyspark_elasticsearch.answers import AllDone, Answers
from pyspark_elasticsearch.client import Answer, Cluster
from sparkonce.errors import StoreUnreachable

KINDS = ("index", "create", "update", "delete")


def text(*items: dict[str, Any]) -> bytes:
    return json.dumps({"items": list(items)}, separators=(",", ":")).encode()


def sent(said: bytes, count: int) -> list[bulk.Item] | int:
    answer = Answer(200, Answers().loads(said))
    cluster = SimpleNamespace(timeout=1.0, ask=lambda *_, **__: answer)
    return bulk.send(cast(Cluster, cluster), "writing", "/x/_bulk", b"", count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [200, 201, 404])
def test_answer_whose_every_item_was_done_is_read_at_once(kind: str, status: int) -> None:
    items = [{kind: {"status": status}}] * 1000
    assert Answers().loads(text(*items)) == AllDone(1000)
    found = sent(text(*items), 1000)
    assert isinstance(found, list)
    assert bulk.all_done(found)


@pytest.mark.parametrize(
    "odd",
    [
        {"index": {"status": 409, "error": {"type": "version_conflict_engine_exception"}}},
        {"index": {"status": 409}},
        {"index": {"status": 429}},
        {"index": {"status": 2010}},
        {"index": {"status": 500, "error": {"reason": '{"index":{"status":201}}'}}},
        {"index": {"status": 201, "error": {"type": "x"}}},
        {"create": {"status": 201, "failure_store": "used"}},
        {"create": {"status": 400, "error": {"reason": "\\"}}},
    ],
)
@pytest.mark.parametrize("place", [0, 500, 999])
def test_one_item_that_was_not_done_is_found_among_a_thousand(
    odd: dict[str, Any], place: int
) -> None:
    items = [{"index": {"status": 201}}] * 1000
    items[place] = odd
    found = sent(text(*items), 1000)
    assert isinstance(found, list)
    assert [at for at, item in enumerate(found) if not item.done] == [place]
    assert not bulk.all_done(found)


def test_items_that_tell_more_than_their_status_are_done_too() -> None:
    found = sent(text({"create": {"_index": "logs-1", "status": 201}}), 1)
    assert found == [bulk.Item(201, None, "logs-1")]
    assert bulk.all_done(found)


@pytest.mark.parametrize(
    "said",
    [
        b'{"items":[]}',
        b'{"items":[{"index":{"status":201}}]}',
        text(*[{"index": {"status": 201}}] * 3),
    ],
)
def test_answer_about_fewer_or_more_operations_is_no_answer(said: bytes) -> None:
    with pytest.raises(StoreUnreachable, match="of 2 operations"):
        sent(said, 2)


@pytest.mark.parametrize(
    "said", [b'{"items":[{"index":{"status":201}},]}', b'{"items":[{"index":{"status":201}}', b"{"]
)
def test_answer_that_was_cut_is_no_answer(said: bytes) -> None:
    from elasticsearch import SerializationError

    with pytest.raises(SerializationError):
        Answers().loads(said)


def test_another_answer_is_what_its_json_says() -> None:
    assert Answers().loads(b'{"count": 3}') == {"count": 3}
