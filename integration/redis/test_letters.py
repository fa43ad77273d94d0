"""Rows that can't be stored go into a stream, each once, whatever fails in between."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery, Make
from integration.support.redis import Keys, dies_of
from redis import Redis

from pyspark_redis.journal import dead_letters
from pyspark_redis.journal.dead_letters import LetterBox
from pyspark_redis.server.session import RedisSession
from pyspark_redis.write.delivery import Delivery
from sparkonce.errors import (
    RowRefused,
    StoreLostData,
    StoreRefused,
    StoreUnreachable,
)
from sparkonce.exactly_once.bad_rows import max_bad_rows

pytestmark = pytest.mark.variants
SUMS = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.float64())])


@pytest.fixture
def counters(into: Make, unique: str) -> Make:
    given = {"writeMode": "increment", "onBadRow": "deadLetter", "deadLetter": unique}
    return lambda **options: into(SUMS, **{**given, "chunkRows": "10", **options})


def row(id_: int, x: float = 0.5) -> dict[str, Any]:
    return {"id": id_, "n": 1, "x": x}


def ids(query: DirectQuery) -> Counter[int]:
    """How often each row is a dead letter, by its id."""
    (box,) = query.sink.store.letterboxes()
    return Counter(int(one.row.partition(",")[0].split(":")[1]) for one in box.read(None, 10_000))


def counts(client: Redis, unique: str, rows: int) -> dict[int, str | None]:
    keys = {at: f"{unique}:{at}" for at in range(rows)}
    kinds = {at: client.type(key) for at, key in keys.items()}
    return {at: client.hget(keys[at], "n") for at, kind in kinds.items() if kind == "hash"}


NAN = float("nan")


def test_bad_rows_of_task_and_server_go_aside_and_the_others_count(
    counters: Make, keys: Keys
) -> None:
    for at in (3, 4, 17):
        keys.client.set(f"{keys}:{at}", "mine")
    query = counters()
    done = query.run(0, [row(at, NAN if at == 25 else 0.5) for at in range(30)], [row(30)])
    assert done.totals.aside == 4
    assert ids(query) == Counter([3, 4, 17, 25])
    assert counts(keys.client, keys, 31) == {
        at: "1" for at in range(31) if at not in (3, 4, 17, 25)
    }
    (box,) = query.sink.store.letterboxes()
    (letter,) = (one for one in box.read(query.name, 9) if '"id": 17' in one.row)
    assert (letter.row, letter.key) == ('{"id": 17, "n": 1, "x": 0.5}', '{"id": 17}')
    assert (letter.epoch, letter.partition, letter.sink) == (0, 0, query.name)
    assert f"'{keys}:17'" in letter.reason
    assert "WRONGTYPE" in letter.reason
    assert query.sink.store.staged(query.name) == []


def test_too_many_bad_rows_stop_and_go_on_where_they_stopped(counters: Make, keys: Keys) -> None:
    for at in range(5, 45):
        keys.client.set(f"{keys}:{at}", "mine")
    query = counters(maxBadRows="12")
    with pytest.raises(RowRefused, match="maxBadRows=12 allows 12") as stopped:
        query.run(0, [row(at) for at in range(100)])
    assert "another Redis type" in str(stopped.value)
    assert set(ids(query)) <= set(range(5, 17))
    for at in range(30, 45):
        keys.client.delete(f"{keys}:{at}")
    query.restart(maxBadRows="100%")
    query.run(0, [])
    assert ids(query) == Counter(range(5, 30))
    assert counts(keys.client, keys, 100) == {at: "1" for at in range(100) if not 5 <= at < 30}


def test_rows_of_which_none_is_stored_are_tried_again_once_the_target_is_mended(
    counters: Make, keys: Keys
) -> None:
    """Epochs count together: a slow stream into a broken target stops, too."""
    everything = [f"{keys}:{at}" for at in range(40)]
    keys.client.mset(dict.fromkeys(everything, "mine"))
    query = counters()
    for epoch in range(2):
        query.run(epoch, [row(epoch * 5 + at) for at in range(5)])
    with pytest.raises(RowRefused, match="of earlier epochs"):
        query.run(2, [row(at) for at in range(10, 14)], [row(at) for at in range(14, 20)])
    assert ids(query) == Counter(range(10))
    query.restart()
    with pytest.raises(RowRefused, match="of earlier epochs"):
        query.run(2, [])
    keys.client.delete(*everything)
    query.restart()
    query.run(2, [])
    assert ids(query) == Counter(range(10))
    assert counts(keys.client, keys, 40) == dict.fromkeys(range(10, 20), "1")


@pytest.mark.parametrize("arrives", [True, False], ids=["reply lost", "request lost"])
def test_each_row_is_one_letter_whichever_answer_is_lost(
    counters: Make, keys: Keys, monkeypatch: pytest.MonkeyPatch, arrives: bool
) -> None:
    """The driver dies at each of its scripts in turn, until an epoch needs no more of them."""
    query, run = counters(), RedisSession.run
    bad = [100 * at + 7 for at in range(40)]
    keys.client.mset({f"{keys}:{at}": "mine" for at in bad})

    def dying_at(number: int) -> Callable[..., Any]:
        numbers = count(1)

        def dies(session: RedisSession, text: str, *given: Any) -> Any:
            if next(numbers) != number:
                return run(session, text, *given)
            if arrives:
                run(session, text, *given)
            raise KeyboardInterrupt

        return dies

    for epoch in count():
        rows = [row(100 * epoch + at, NAN if at == 9 else 0.5) for at in range(25)]
        receipts = query.stage(epoch, rows)
        with monkeypatch.context() as dying:
            dying.setattr(RedisSession, "run", dying_at(epoch + 1))
            undisturbed = not dies_of(partial(query.commit, epoch, receipts))
        query.restart()
        query.run(epoch, rows)
        so_far = range(epoch + 1)
        assert ids(query) == Counter(one for at in so_far for one in (bad[at], bad[at] + 2))
        if undisturbed:
            break
    assert epoch > 3
    stored = counts(keys.client, keys, 100 * (epoch + 1))
    assert set(stored.values()) == {"1"}
    assert len(stored) == 23 * (epoch + 1)


@pytest.fixture
def noted(counters: Make, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> DirectQuery:
    """A query whose driver died when row 3 was noted, and not yet a letter."""
    keys.client.set(f"{keys}:3", "mine")
    query = counters()
    with monkeypatch.context() as dying:
        dying.setattr(LetterBox, "write", unanswered)
        with pytest.raises(StoreUnreachable):
            query.run(0, [row(at) for at in range(30)])
    return query


def test_noted_rows_become_letters_where_it_was_decided(noted: DirectQuery, unique: str) -> None:
    """Whatever a restarted query says, or `sparkonce recover`, which says nothing of rows."""
    for name in ("onBadRow", "deadLetter"):
        noted.options.pop(name)
    noted.restart()
    noted.run(0, [])
    noted.restart(onBadRow="deadLetter", deadLetter=unique)
    assert ids(noted) == Counter([3])


def test_a_noted_row_whose_chunk_is_gone_is_no_row_without_a_letter(
    noted: DirectQuery, client: Redis
) -> None:
    for log in client.scan_iter(f"{{sparkonce}}:log:{noted.name}:*"):
        client.hdel(log, "0")
    noted.restart()
    with pytest.raises(StoreLostData, match="Chunk 0"):
        noted.run(0, [])


def test_notes_that_another_driver_has_made_letters_of_stay_letters(
    counters: Make, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lets all rows go aside, while this one is about to have them tried again."""
    keys.client.mset({f"{keys}:{at}": "mine" for at in range(30)})
    query, rewind = counters(), Delivery.take_back

    def meanwhile(delivery: Delivery) -> None:
        eager = Delivery(delivery.session, delivery.manifest, max_bad_rows("100%"))
        eager.apply(lambda _: None)
        rewind(delivery)

    monkeypatch.setattr(Delivery, "take_back", meanwhile)
    for epoch in range(2):
        query.run(epoch, [row(epoch * 5 + at) for at in range(5)])
    with pytest.raises(RowRefused, match="of earlier epochs"):
        query.run(2, [row(at) for at in range(10, 13)], [row(at) for at in range(13, 15)])
    assert ids(query) == Counter(range(15))
    query.restart(maxBadRows="100%")
    query.run(2, [])
    assert ids(query) == Counter(range(15))


def unanswered(*_: object) -> None:
    raise StoreUnreachable("no answer")


def test_a_right_that_is_lacking_is_no_fault_of_a_row(counters: Make, keys: Keys) -> None:
    keys.client.acl_setuser(
        keys, enabled=True, nopass=True, keys=["*"], commands=["+@all", "-hincrby"]
    )
    query = counters(user=keys, password="any")
    with pytest.raises(RowRefused, match="the user's ACL does not allow the command"):
        query.run(0, [row(at) for at in range(5)])
    assert query.sink.store.letterboxes()[0].read(None, 9) == []
    keys.client.acl_deluser(keys)


def test_a_place_for_letters_that_holds_something_else_is_refused_at_the_start(
    counters: Make, keys: Keys
) -> None:
    keys.client.set(f"{{sparkonce}}:letters:{keys}", "mine")
    query = counters()
    with pytest.raises(StoreRefused, match=f"letters:{keys}' is not a stream of dead letters"):
        query.sink.check()
    boxes = dead_letters.letterboxes(query.sink.store.session, None)
    assert keys not in [box.name for box in boxes]
    keys.client.delete(f"{{sparkonce}}:letters:{keys}")


STRANGERS = {
    "no field of a letter": {"a": "b"},
    "no number": {"epoch": "x"},
    "no list": {"base64": "5"},
    "no JSON": {"base64": "{"},
    "no text": {"row": b"\xff"},
}


def test_letters_are_read_and_deleted_beside_entries_that_are_none(
    counters: Make, keys: Keys, caplog: pytest.LogCaptureFixture
) -> None:
    for at in (3, 4):
        keys.client.set(f"{keys}:{at}", "mine")
    query = counters()
    query.run(0, [row(at) for at in range(3)] + [row(3)])
    (box,) = query.sink.store.letterboxes()
    key = f"{{sparkonce}}:letters:{keys}"
    ((_, letter),) = keys.client.xrange(key)
    keys.client.xadd(key, {**letter, "other": "of a later release"})
    for change in STRANGERS.values():
        keys.client.xadd(key, change if "a" in change else {**letter, **change})
    query.run(1, [row(0), row(1), row(4)])
    assert sum(kind.letters for kind in box.kinds()) == 3
    assert f"XDEL {key}" in caplog.text
    assert box.drop([one.id for one in box.read(None, 99)]) == 3
    assert keys.client.xlen(key) == len(STRANGERS)


@pytest.mark.parametrize("name", ["names", "decided", "open"])
def test_a_list_of_its_own_that_something_else_wrote_is_named(keys: Keys, name: str) -> None:
    key = f"{{{keys}}}:{name}"
    keys.client.set(key, "mine")
    query = keys.query(SUMS, keyPrefix=keys)
    with pytest.raises(StoreRefused, match=f"{name}' is not a") as refused:
        query.run(0, [row(1)])
    (command,) = re.findall(r"RENAME (\S+) another-name", refused.value.todo)
    keys.client.rename(command, f"{keys}:away")
    query.restart()
    query.run(0, [row(1)])


def test_a_number_of_decisions_that_something_else_wrote_is_named(keys: Keys) -> None:
    """Before the decision is written; and the query goes on as the error advises."""
    decided = f"{{{keys}}}:decided"
    keys.client.hset(decided, "", "many")
    query = keys.query(SUMS, keyPrefix=keys)
    with pytest.raises(StoreRefused, match=f"{decided} holds no number") as refused:
        query.run(0, [row(1)])
    assert "set that field to a whole number above all others" in refused.value.todo
    assert not keys.client.exists(f"{keys}:1")
    assert query.sink.store.unfinished("") == []
    keys.client.hset(decided, "", 7)
    query.restart()
    query.run(0, [row(1)])
    assert keys.client.hget(decided, query.name) == "8"


def test_a_row_of_each_change_is_whole_in_its_letter(keys: Keys) -> None:
    """Also columns that are not written: operation, score, expiry, what a delete leaves out."""
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("s", pa.int32()),
            ("t", pa.int32()),
            ("op", pa.string()),
            ("v", pa.string()),
        ]
    )
    wrong = {"id": 1, "s": 7, "t": 60, "op": "I", "v": "é"}
    ways = [
        {"opColumn": "op", "ttlColumn": "t"},
        {"writeMode": "delete"},
        {"model": "string"},
        {"model": "zset", "scoreColumn": "s", "opColumn": "op", "ttlColumn": "t"},
        {"model": "set", "writeMode": "delete"},
        {"model": "list"},
        {"model": "stream", "ttlColumn": "t"},
    ]
    keys.client.set(f"{keys}:1", "mine")
    for number, way in enumerate(ways):
        if way.get("model") == "string":
            keys.client.delete(f"{keys}:1")
            keys.client.hset(f"{keys}:1", "a", "b")
        given = {"url": keys.url, "key": f"{keys}:{{id}}", "onBadRow": "deadLetter"}
        query = DirectQuery(schema, **given, deadLetter=f"{keys}-{number}", **way)
        query.run(0, [wrong])
        (letter,) = query.sink.store.letterboxes()[0].read(None, 9)
        assert letter.row == '{"id": 1, "s": 7, "t": 60, "op": "I", "v": "é"}', way
