"""Dead letters where something else crosses them: other decisions, other drivers, odd columns."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import DirectQuery, Make
from integration.support.redis import Keys
from redis import Redis

from pyspark_redis.journal.dead_letters import LetterBox
from pyspark_redis.write.delivery import Delivery
from sparkonce.errors import BadRow, OptionError, RowRefused
from sparkonce.exactly_once.bad_rows import max_bad_rows
from sparkonce.letterbox import StoredLetter
from sparkonce.protocol import Manifest

pytestmark = pytest.mark.variants
ROWS = pa.schema([("id", pa.int64()), ("op", pa.string()), ("v", pa.string()), ("n", pa.int32())])


def row(id_: int, op: str = "I", v: Any = "a", n: int = 1) -> dict[str, Any]:
    return {"id": id_, "op": op, "v": v, "n": n}


@pytest.fixture
def lettered(into: Make, unique: str) -> Make:
    given = {"onBadRow": "deadLetter", "deadLetter": unique, "chunkRows": "10"}
    return lambda schema=ROWS, **options: into(schema, **{**given, **options})


def letters(query: DirectQuery) -> list[StoredLetter]:
    (box,) = query.sink.store.letterboxes()
    return box.read(None, 10_000)


def ids(query: DirectQuery) -> Counter[int]:
    return Counter(json.loads(one.row)["id"] for one in letters(query))


WITHOUT_ALL_COLUMNS = [
    {"model": "string"},
    {"model": "counter"},
    {"writeMode": "increment"},
    {"model": "list"},
]


@pytest.mark.parametrize("way", WITHOUT_ALL_COLUMNS, ids=str)
def test_an_epoch_decided_without_letters_makes_none(
    into: Make, keys: Keys, way: dict[str, str]
) -> None:
    """Its chunks may lack columns: a letter would have lost them, and the row with it."""
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    keys.client.hset(f"{keys}:3", "n", "mine")
    query = into(schema, **way)
    rows = [{"id": at, "n": 1} for at in range(6)]
    with pytest.raises(RowRefused, match=f"{keys}:3"):
        query.run(0, rows)
    query.restart(onBadRow="deadLetter", deadLetter=keys)
    with pytest.raises(RowRefused, match="decided, with onBadRow=fail"):
        query.run(0, [])
    assert letters(query) == []
    keys.client.delete(f"{keys}:3")
    query.restart()
    query.run(0, [])
    keys.client.delete(f"{keys}:1")
    keys.client.hset(f"{keys}:1", "n", "mine")
    query.run(1, rows)
    assert ids(query) == Counter([1])


def test_rows_that_another_driver_had_stored_meanwhile_become_no_letters(
    lettered: Make, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the progress back, and the target was mended, before the letters were written."""
    keys.client.mset({f"{keys}:{at}": "mine" for at in range(5)})
    query, write = lettered(maxBadRows="100%"), LetterBox.write

    def late(box: LetterBox, manifest: Manifest, *given: Any) -> None:
        monkeypatch.setattr(LetterBox, "write", write)
        other = Delivery(box.session, manifest, max_bad_rows("100%"))
        other.take_back()
        keys.client.delete(*(f"{keys}:{at}" for at in range(1, 5)))
        other.apply_chunk(0)
        write(box, manifest, *given)

    monkeypatch.setattr(LetterBox, "write", late)
    query.run(0, [row(at) for at in range(5)])
    assert ids(query) == Counter([0])
    assert all(keys.client.hget(f"{keys}:{at}", "v") == "a" for at in range(1, 5))


def test_progress_without_notes_is_not_taken_back(
    lettered: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another driver has just taken it back, or made letters of all."""
    query, applied = lettered(), Delivery.apply_chunk

    def then_back(delivery: Delivery, ordinal: int) -> bool:
        done = applied(delivery, ordinal)
        delivery.take_back()
        return done

    monkeypatch.setattr(Delivery, "apply_chunk", then_back)
    assert query.run(0, [row(at) for at in range(30)]).decision.epoch == 0


SPECIAL = ["opColumn", "sequenceColumn", "scoreColumn", "ttlColumn"]


@pytest.mark.parametrize("second", SPECIAL[1:])
@pytest.mark.parametrize("first", SPECIAL[:3])
def test_a_column_says_one_thing(redis_url: str, first: str, second: str) -> None:
    if first == second:
        return
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("n", pa.int64())])
    named = "s" if "opColumn" in (first, second) else "n"
    options = {"url": redis_url, "key": "id", first: named, second: named}
    with pytest.raises(OptionError, match=f"{first}|{second}"):
        _ = DirectQuery(schema, **options).sink


@pytest.mark.parametrize(
    "way",
    [
        {"opColumn": "op", "ttlColumn": "n"},
        {"opColumn": "op", "model": "zset", "scoreColumn": "n"},
        {"opColumn": "op", "model": "set", "ttlColumn": "n"},
    ],
    ids=str,
)
@pytest.mark.parametrize("on_bad_row", ["fail", "deadLetter"])
def test_a_chunk_of_rows_that_do_nothing_is_applied(
    into: Make, keys: Keys, way: dict[str, str], on_bad_row: str
) -> None:
    aside = {"onBadRow": "deadLetter", "deadLetter": keys} if on_bad_row != "fail" else {}
    query = into(ROWS, **way, **aside, chunkRows="3")
    done = query.run(0, [row(at, "update_preimage") for at in range(7)])
    assert done.totals.aside == 0
    assert keys.client.keys(f"{keys}:*") == []


def test_rows_that_do_nothing_are_not_taken_for_stored_ones(lettered: Make, keys: Keys) -> None:
    """A target that refuses each row is at fault, however many preimages come between."""
    keys.client.mset({f"{keys}:{at}": "mine" for at in range(40)})
    query = lettered(opColumn="op", maxBadRows="10")
    images = ("update_preimage", "update_postimage")
    with pytest.raises(RowRefused, match="maxBadRows=10"):
        query.run(0, [row(at // 2, images[at % 2]) for at in range(80)])
    assert letters(query) == []
    keys.client.delete(*(f"{keys}:{at}" for at in range(40)))
    query.restart()
    query.run(0, [])
    assert letters(query) == []
    assert [keys.client.hget(f"{keys}:{at}", "v") for at in range(40)] == ["a"] * 40


def test_rows_of_tasks_count_before_the_server_refuses_more(lettered: Make, keys: Keys) -> None:
    keys.client.mset({f"{keys}:{at}": "mine" for at in range(8)})
    query = lettered(maxBadRows="10", chunkRows="20", opColumn="op")
    rows = [row(at) for at in range(20)] + [row(20 + at, op="?") for at in range(5)]
    with pytest.raises(RowRefused, match=r"13 of the 25 rows .*maxBadRows=10 allows 10") as stopped:
        query.run(0, rows)
    assert "5 x a task can't write it" in str(stopped.value)
    assert len(letters(query)) <= 10
    query.restart(maxBadRows="13")
    query.run(0, [])
    assert len(letters(query)) == 13


def invalid(kind: str) -> pa.RecordBatch:
    """Two rows, of which the second has a string that is not UTF-8, as Spark may give it."""
    raw = pa.array([b"fine", b"\xff\xfe"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 2, raw.buffers())
    numbers = pa.array([1, 2])
    return pa.RecordBatch.from_arrays([numbers, text, numbers], ["id", "v", kind])


@pytest.mark.parametrize("model", ["string", "list", "set"])
def test_a_string_that_is_no_utf8_is_a_bad_row_inside_json_too(
    into: Make, unique: str, model: str
) -> None:
    batch = invalid("n")
    aside = {"onBadRow": "deadLetter", "deadLetter": unique}
    with pytest.raises(BadRow, match="not valid UTF-8"):
        into(batch.schema, model=model).run_batches(0, [batch])
    query = into(batch.schema, model=model, **aside)
    assert query.run_batches(0, [batch]).totals.aside == 1
    (letter,) = letters(query)
    assert "not valid UTF-8" in letter.reason


def test_a_column_without_a_name_is_one_like_others(into: Make, keys: Keys) -> None:
    schema = pa.schema([("id", pa.int64()), ("", pa.string()), ("v", pa.string())])
    rows = [{"id": 1, "": "a", "v": "b"}]
    into(schema, model="string", onBadRow="deadLetter", deadLetter=keys).run(0, rows)
    assert json.loads(keys.client.get(f"{keys}:1")) == {"id": "1", "": "a", "v": "b"} | {"id": 1}


def test_as_many_columns_as_a_stream_may_have(lettered: Make, keys: Keys) -> None:
    names = [f"c{at}" for at in range(3899)]
    schema = pa.schema([("id", pa.int64()), *((name, pa.string()) for name in names)])
    query = lettered(schema, model="stream")
    query.run(0, [{"id": 1, **dict.fromkeys(names, "x")}, {"id": 1, "c7": "x"}])
    assert [len(entry) for _, entry in keys.client.xrange(f"{keys}:1")] == [3900, 2]
    wider = schema.append(pa.field("more", pa.string()))
    with pytest.raises(OptionError, match="3,901 columns"):
        _ = lettered(wider, model="stream").sink


def test_a_key_expires_no_more_where_its_row_says_nothing(into: Make, keys: Keys) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string()), ("t", pa.int32())])
    for model in ("hash", "string", "list", "set"):
        query = into(schema, model=model, ttlColumn="t")
        for epoch, left in enumerate((60, None)):
            query.run(epoch, [{"id": 1, "v": str(epoch), "t": left}])
        assert keys.client.ttl(f"{keys}:1") == -1, model
        keys.client.delete(f"{keys}:1")


def test_a_type_that_no_letter_can_hold_is_refused_at_the_start(lettered: Make) -> None:
    odd = pa.map_(pa.struct([("a", pa.int32())]), pa.int32())
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("m", odd)])
    with pytest.raises(OptionError, match="'m'"):
        _ = lettered(schema, writeMode="delete").sink


def test_notes_of_many_rows_cost_each_chunk_alike(lettered: Make, keys: Keys) -> None:
    """A note lies in a field of its own: it is not written again with each chunk behind it."""
    keys.client.mset({f"{keys}:{at}": "mine" for at in range(190)})
    query = lettered(maxBadRows="1000")
    receipts = query.stage(0, [row(at) for at in range(200)])
    sizes: list[int] = []
    applied = Delivery.apply_chunk

    def notes() -> dict[bytes, bytes]:
        with Redis.from_url(keys.url) as raw:
            held: Any = raw.hgetall(f"{{sparkonce}}:record:{query.name}")
        return {name: text for name, text in held.items() if name.startswith(b"bad")}

    def measured(delivery: Delivery, ordinal: int) -> bool:
        try:
            return applied(delivery, ordinal)
        finally:
            sizes.append(max(map(len, notes().values()), default=0))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Delivery, "apply_chunk", measured)
        query.commit(0, receipts)
    assert len(sizes) == 20
    assert max(sizes) < 3 * sizes[0]
    assert len(letters(query)) == 190
    assert notes() == {b"bad": b""}
