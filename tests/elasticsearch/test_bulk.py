"""What an answer to a bulk request says, item by item, however fast it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.answering import Say

from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.client import AllDone, parsed
from pyspark_elasticsearch.server.failures import classify
from sparkonce.errors import FailureKind, StoreUnreachable

KINDS = ("index", "create", "update", "delete")
FINE = b'{"items":[{"index":{"status":201}}]}'


def text(*items: dict[str, Any]) -> bytes:
    return json.dumps({"items": list(items)}, separators=(",", ":")).encode()


def is_read_at_once(said: bytes) -> bool:
    return isinstance(parsed(said)["items"], AllDone)


def sent(say: Say, said: bytes, count: int, **more: Any) -> list[bulk.Item]:
    return bulk.send(say(200, said, **more), "writing", "/x/_bulk", b"{}\n{}\n", count)


def test_lines_go_out_as_they_are(say: Say) -> None:
    asked: list[tuple[str, bytes]] = []
    sent(say, FINE, 1, asked=asked)
    ((kind, body),) = asked
    assert kind.startswith("application/vnd.elasticsearch+x-ndjson")
    assert body == b"{}\n{}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_items_that_were_done_are_read_at_once(say: Say, kind: str) -> None:
    found = sent(say, text(*[{kind: {"status": 201}}] * 1000), 1000)
    assert all(item is bulk.DONE for item in found)
    assert bulk.DONE.done
    assert bulk.all_done(found)


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_was_done_is_read_at_once(kind: str) -> None:
    quick = {status for status in range(1200) if is_read_at_once(text({kind: {"status": status}}))}
    assert quick == {*range(200, 300), *([404] if kind == "delete" else [])}
    assert all(bulk.Item(status, None).done for status in quick)


@pytest.mark.parametrize(
    "said",
    [
        FINE[:-1] + b',"error":{}}',
        FINE[:-1] + b',"errors":true}',
        b'{"errors":false,' + FINE[1:],
        FINE.replace(b"201", b'201,"error":{}'),
        FINE.replace(b"index", b"put"),
        FINE.replace(b"]", b",3]"),
    ],
)
def test_answer_that_says_more_is_read_as_json(said: bytes) -> None:
    assert parsed(said) == json.loads(said)


@pytest.mark.parametrize(
    "said", [FINE + b"{}", b"[" + FINE, FINE[:-1], FINE.replace(b"]", b",]"), b"{"]
)
def test_answer_that_is_no_json_is_no_answer(say: Say, said: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        parsed(said)
    with pytest.raises(StoreUnreachable):
        sent(say, said, 1)


@pytest.mark.parametrize(
    "odd",
    [
        {"index": {"status": 409, "error": {"type": "version_conflict_engine_exception"}}},
        {"index": {"status": 409}},
        {"index": {"status": 429}},
        {"index": {"status": 500, "error": {"reason": '{"index":{"status":201}}'}}},
        {"index": {"status": 201, "error": {"type": "x"}}},
        {"create": {"status": 201, "failure_store": "used"}},
        {"create": {"status": 400, "error": {"reason": "\\"}}},
    ],
)
@pytest.mark.parametrize("place", [0, 500, 999])
def test_one_item_that_was_not_done_is_found_among_a_thousand(
    say: Say, odd: dict[str, Any], place: int
) -> None:
    items = [{"index": {"status": 201}}] * 1000
    items[place] = odd
    found = sent(say, text(*items), 1000)
    assert [at for at, item in enumerate(found) if not item.done] == [place]
    assert not bulk.all_done(found)


def test_items_that_tell_their_index_are_done_too(say: Say) -> None:
    found = sent(say, text({"create": {"_index": "logs-1", "status": 201}}), 1)
    assert [one.index_name for one in found] == ["logs-1"]
    assert bulk.all_done(found)


def test_items_of_one_index_are_read_at_once_and_of_several_each_by_itself() -> None:
    one, other = ({"create": {"_index": f"logs-{n}", "status": 201}} for n in (1, 2))
    assert is_read_at_once(text(one, one))
    assert not is_read_at_once(text(one, other))


def test_row_that_a_data_stream_puts_into_its_failure_store_is_not_taken_for_written(
    say: Say,
) -> None:
    used = {"_index": ".fs-logs-1", "status": 201, "failure_store": "used"}
    fine, wrong = sent(say, text({"create": {"status": 201}}, {"create": used}), 2)
    assert (fine.done, wrong.done) == (True, False)
    assert classify(wrong.status, wrong.error).kind is FailureKind.REFUSED


@pytest.mark.parametrize("said", [FINE, text(*[{"index": {"status": 201}}] * 3), b'{"items":[]}'])
def test_answer_about_fewer_or_more_operations_is_no_answer(say: Say, said: bytes) -> None:
    with pytest.raises(StoreUnreachable, match="of 2 operations"):
        sent(say, said, 2)


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"items":null}',
        b'{"items":3}',
        b'{"items":[{}]}',
        b'{"items":[{"index":{}}]}',
        b'{"items":[{"index":{"status":"fine"}}]}',
        b'{"items":[null]}',
    ],
)
def test_answer_to_another_question_is_no_answer(say: Say, said: bytes) -> None:
    with pytest.raises(StoreUnreachable):
        sent(say, said, 1)
