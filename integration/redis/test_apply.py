"""What rows become in Redis, and what happens where the server refuses one."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, DirectQuery
from integration.support.redis import Keys
from redis import Redis

from pyspark_redis.journal import scripts
from sparkonce.errors import BadRow, OptionError, RowRefused, StoreRefused
from sparkonce.operate.admin import Admin
from sparkonce.protocol import Follows

pytestmark = pytest.mark.variants
SUMS = pa.schema([("id", pa.int64()), ("a", pa.int64()), ("b", pa.float64())])
LARGEST = 1.7976931348623157e308


@pytest.fixture
def counters(keys: Keys) -> DirectQuery:
    return keys.query(SUMS, writeMode="increment")


@pytest.fixture
def hashes(keys: Keys) -> DirectQuery:
    schema = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
    return keys.query(schema)


def ones(ids: range) -> list[dict[str, Any]]:
    return [{"id": i, "a": 1, "b": 0.5} for i in ids]


def test_upsert_writes_every_column_and_the_last_row_of_a_key_wins(
    hashes: DirectQuery, keys: Keys
) -> None:
    hashes.run(
        0, [{"id": 1, "name": "first", "x": 1.5}], [{"id": 1, "name": "last", "x": float("nan")}]
    )
    assert keys.client.hgetall(f"{keys}:1") == {"id": "1", "name": "last", "x": "nan"}


def test_null_deletes_its_field_or_keeps_it_as_told(hashes: DirectQuery, keys: Keys) -> None:
    hashes.run(0, [{"id": 1, "name": "a", "x": 1.0}])
    hashes.restart(nulls="keep")
    hashes.run(1, [{"id": 1, "name": None, "x": 2.0}])
    assert keys.client.hgetall(f"{keys}:1") == {"id": "1", "name": "a", "x": "2"}
    hashes.restart(nulls="write")
    hashes.run(2, [{"id": 1, "name": None, "x": None}])
    assert keys.client.hgetall(f"{keys}:1") == {"id": "1"}


@pytest.mark.parametrize("columns", [1, 49, 50, 51, 120])
def test_hash_of_many_columns(keys: Keys, columns: int) -> None:
    names = ["id", *(f"c'\"\\\n{n}" for n in range(columns))]
    query = DirectQuery(
        pa.schema([(name, pa.int64()) for name in names]), url=keys.url, key=f"{keys}:{{id}}"
    )
    row = {name: at for at, name in enumerate(names)}
    query.run(0, [row, {**row, "id": 7, names[-1]: None}])
    expected = {name: str(value) for name, value in row.items()}
    assert keys.client.hgetall(f"{keys}:0") == expected
    assert keys.client.hgetall(f"{keys}:7") == {
        name: value for name, value in {**expected, "id": "7"}.items() if name != names[-1]
    }


def test_increment_adds_integers_exactly_and_nulls_add_nothing(
    counters: DirectQuery, keys: Keys
) -> None:
    big = 2**62 + 1
    counters.run(0, [{"id": 1, "a": big, "b": 0.25}, {"id": 1, "a": None, "b": None}])
    counters.run(1, [{"id": 1, "a": -1, "b": 0.25}])
    assert keys.client.hgetall(f"{keys}:1") == {"a": str(2**62), "b": "0.5"}


def test_delete_removes_hashes_and_nothing_else(keys: Keys) -> None:
    keys.client.hset(f"{keys}:1", "x", "1")
    keys.client.rpush(f"{keys}:2", "x")
    query = DirectQuery(
        pa.schema([("id", pa.int64())]), url=keys.url, key=f"{keys}:{{id}}", writeMode="delete"
    )
    with pytest.raises(RowRefused, match="WRONGTYPE"):
        query.run(0, [{"id": 9}, {"id": 1}, {"id": 2}])
    assert keys.client.keys(f"{keys}:*") == [f"{keys}:2"]


def test_values_of_a_column_key_never_collide(keys: Keys) -> None:
    schema = pa.schema([("p", pa.string()), ("q", pa.string()), ("r", pa.string())])
    rows = [{"p": keys, "q": q, "r": r} for q, r in (("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"))]
    query = DirectQuery(schema, url=keys.url, key="p,q,r")
    query.run(0, rows)
    with Redis.from_url(keys.url, decode_responses=True) as client:
        assert sorted(client.keys(f"{keys}:*")) == sorted(
            [f"{keys}:a%3Ab:c", f"{keys}:a:b%3Ac", f"{keys}:a%253Ab:c"]
        )


def test_a_server_and_its_database_are_one_target_however_a_url_writes_them(keys: Keys) -> None:
    place, _, database = keys.url.rpartition("/")
    local = place.replace("127.0.0.1", "localhost")
    for url in (keys.url, f"{local}/{database}", f"{place}/00{database}"):
        given = {"url": url, "key": f"{keys}:{{id}}", "sinkId": keys}
        query = DirectQuery(SUMS, **given, writeMode="increment")
        query.query_id, query.follows = "nightly", Follows.GROWS
        query.run(7, [{"id": 1, "a": 5, "b": 0.5}])
    assert keys.client.hget(f"{keys}:1", "a") == "5"


def test_row_that_would_overwrite_the_ledger_is_refused(redis_url: str) -> None:
    query = DirectQuery(pa.schema([("id", pa.string())]), url=redis_url, key="id")
    with pytest.raises(BadRow, match=r"key '\{sparkonce\}:names', which is one of"):
        query.run(0, [{"id": "fine"}, {"id": "{sparkonce}:names"}])


def test_null_key_and_infinite_increment_are_refused_before_the_decision(
    counters: DirectQuery, keys: Keys
) -> None:
    with pytest.raises(BadRow, match="Column 'id' is null"):
        counters.run(0, ones(range(3)), [{"id": None, "a": 1, "b": 1.0}])
    with pytest.raises(BadRow, match="Column 'b' holds inf"):
        counters.run(0, ones(range(3)), [{"id": 1, "a": 1, "b": float("inf")}])
    assert keys.client.keys(f"{keys}:*") == []


def test_recover_counts_the_rows_that_it_applies_alone(
    counters: DirectQuery, client: Redis, unique: str
) -> None:
    counters.options.update({"chunkRows": "100"})
    client.set(f"{unique}:217", "in the way")
    with pytest.raises(RowRefused):
        counters.run(0, ones(range(300)))
    client.delete(f"{unique}:217")
    counters.restart()
    admin, told = Admin(counters.sink.store), list[int]()
    admin.recover(admin.sink(counters.name), told.append)
    assert told == [100]  # of three chunks, of which two were applied before


@pytest.mark.parametrize("added", [1e308, -1e308, 1.7976931348623157e308])
def test_a_sum_that_is_no_double_is_refused_and_goes_on_once_there_is_room(
    counters: DirectQuery, keys: Keys, added: float
) -> None:
    key, row = f"{keys}:1", {"id": 1, "a": 1, "b": added}
    counters.run(0, [row])
    with pytest.raises(RowRefused, match="range of a double"):
        counters.run(1, [row])
    assert keys.client.hget(key, "a") == "1"
    assert float(keys.client.hget(key, "b")) == added
    keys.client.hset(key, "b", "0")
    counters.restart()
    counters.run(1)
    assert keys.client.hget(key, "a") == "2"
    assert float(keys.client.hget(key, "b")) == added


def test_advice_goes_by_what_happened_not_by_a_columns_name(keys: Keys) -> None:
    schema = pa.schema([("id", pa.int64()), ("OOM", pa.float64())])
    query = keys.query(schema, writeMode="increment")
    query.run(0, [{"id": 1, "OOM": 1e308}])
    with pytest.raises(RowRefused, match="set that field to a smaller number"):
        query.run(1, [{"id": 1, "OOM": 1e308}])


def test_a_counter_that_holds_an_infinity_is_refused_and_says_so(
    counters: DirectQuery, keys: Keys
) -> None:
    keys.client.hset(f"{keys}:1", "b", "inf")
    with pytest.raises(RowRefused, match="the field holds an infinity"):
        counters.run(0, ones(range(1, 2)))


def test_a_database_that_is_not_there_is_named(keys: Keys) -> None:
    url = f"{keys.url.rpartition('/')[0]}/9999"
    query = DirectQuery(pa.schema([("id", pa.int64())]), url=url, key=f"{keys}:{{id}}")
    with pytest.raises(StoreRefused, match="fewer databases"):
        query.run(0, [{"id": 1}])


@pytest.mark.parametrize("added", [1e290, 9e269])
def test_no_number_of_small_additions_leads_out_of_the_doubles(
    counters: DirectQuery, keys: Keys, added: float
) -> None:
    counters.run(0, [{"id": 1, "a": 1, "b": LARGEST}])
    with contextlib.suppress(RowRefused):
        counters.run(1, [{"id": 1, "a": 1, "b": added}] * 3000)
    assert float(keys.client.hget(f"{keys}:1", "b")) == LARGEST


@pytest.mark.parametrize("place", ["value", "key", "nested"])
def test_text_that_is_not_utf8_is_a_bad_row(keys: Keys, place: str) -> None:
    """Binary columns hold any bytes; strings don't, though Spark lets them."""
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    good, raw = pa.array(["x"]), pa.array([b"\xff"])
    nested = pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), bad)
    columns = {
        "id": bad if place == "key" else good,
        "v": {"value": bad, "nested": nested}.get(place, good),
        "raw": raw,
    }
    rows = pa.RecordBatch.from_pydict(columns)
    query = keys.query(rows.schema)
    with pytest.raises(BadRow, match="a string is not valid UTF-8"):
        query.stage_batches(0, [rows])
    fine = pa.RecordBatch.from_pydict({"id": good, "v": good, "raw": raw})
    DirectQuery(fine.schema, url=keys.url, key=f"{keys}:{{raw}}").run_batches(0, [fine])
    with Redis.from_url(keys.url) as client:
        assert client.hget(f"{keys}:".encode() + b"\xff", "raw") == b"\xff"


def test_flushed_script_cache_is_filled_again(counters: DirectQuery, keys: Keys) -> None:
    counters.run(0, ones(range(10)))
    keys.client.script_flush()
    counters.run(1, ones(range(10, 20)))
    keys.client.script_flush()
    counters.run(1)
    assert len(keys.client.keys(f"{keys}:*")) == 20


BEFORE, AFTER = range(2500), range(2000, 2600)


def rows(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": i} for i in ids]


@pytest.fixture
def overwriting(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> DirectQuery:
    """An overwrite of keys that were written before, beside others that only look like them."""
    monkeypatch.setattr("pyspark_redis.target.keys.SCANNED", 100)
    prefix = f"{keys}[a-z]:"
    DirectQuery(COUNTER, url=keys.url, key=f"{prefix}{{id}}").run(0, rows(BEFORE))
    keys.client.set(f"{keys}b:1", "another pattern")
    keys.client.set(f"{keys}", "no prefix")
    made = DirectQuery(COUNTER, url=keys.url, key=f"{prefix}{{id}}", chunkRows="100")
    made.overwrite = True
    return made


def held(client: Redis, unique: str) -> set[str]:
    return set(client.scan_iter(f"{unique}*", count=10_000))


def replaced(unique: str) -> set[str]:
    return {f"{unique}[a-z]:{i}" for i in AFTER} | {f"{unique}b:1", unique}


def test_rows_take_the_place_of_all_keys_of_the_template(
    overwriting: DirectQuery, keys: Keys
) -> None:
    overwriting.run(0, rows(AFTER))
    assert held(keys.client, keys) == replaced(keys)
    overwriting.run(1)
    assert held(keys.client, keys) == {f"{keys}b:1", keys}, "no row is written, so none is left"


@pytest.mark.parametrize("step", [0, 1, 5, 20])
def test_what_dies_while_it_empties_or_fills_is_finished(
    overwriting: DirectQuery, keys: Keys, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = overwriting.sink.store.session
    run, calls = session.run, iter(range(1000))

    def dying(text: str, *given: Any) -> Any:
        if text != scripts.decide() and text != scripts.swap() and next(calls) == step:
            raise ZeroDivisionError("the driver dies")
        return run(text, *given)

    receipts = overwriting.stage(0, rows(AFTER))
    monkeypatch.setattr(session, "run", dying)
    with pytest.raises(ZeroDivisionError):
        overwriting.commit(0, receipts)
    monkeypatch.undo()
    admin = Admin(overwriting.sink.store)
    admin.recover(admin.sink(overwriting.name))
    assert held(keys.client, keys) == replaced(keys)


def test_a_request_to_empty_that_comes_late_deletes_nothing(
    overwriting: DirectQuery, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, sent = overwriting.sink.store.session, []
    run = session.run

    def noting(text: str, *given: Any) -> Any:
        if text == scripts.clear():
            sent.append(given)
        return run(text, *given)

    monkeypatch.setattr(session, "run", noting)
    overwriting.run(0, rows(AFTER))
    late = [run(scripts.clear(), *given) for given in sent]
    assert len(late) > 10
    assert set(late) == {0}
    assert held(keys.client, keys) == replaced(keys)


def test_another_sparkonce_loses_none_of_its_keys(keys: Keys) -> None:
    """Else it would apply its last epoch again."""
    aside = {"onBadRow": "deadLetter", "deadLetter": "bad"}
    other = DirectQuery(
        COUNTER,
        url=keys.url,
        key=f"n-{keys}:{{id}}",
        keyPrefix=f"{keys}-b",
        writeMode="increment",
        **aside,
    )
    keys.client.set(f"n-{keys}:3", "mine")
    other.run(0, rows(range(6)))
    other.stage(1, rows(range(6)))
    keys.client.hset(f"{{{keys}}}:7", "n", 1)
    pattern = f"{{{keys}*"
    before = {key: keys.client.dump(key) for key in keys.client.scan_iter(pattern) if "-b}:" in key}
    made = DirectQuery(COUNTER, url=keys.url, key=f"{{{{{keys}{{id}}")
    made.overwrite = True
    made.run(0, rows(range(2)))
    after = {key: keys.client.dump(key) for key in keys.client.scan_iter(pattern)}
    assert before.items() <= after.items()
    assert after.keys() - before.keys() == {f"{{{keys}0", f"{{{keys}1"}
    other.restart()
    other.run(0, rows(range(6)))
    assert keys.client.hget(f"n-{keys}:5", "n") == "5"
    keys.client.delete(*after)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"key": "id"}, "a fixed text"), ({"key": "x:{id}", "writeMode": "delete"}, "contradict")],
)
def test_an_overwrite_that_could_delete_all_or_write_nothing_is_refused(
    redis_url: str, options: dict[str, str], said: str
) -> None:
    overwriting = DirectQuery(COUNTER, url=redis_url, **options)
    overwriting.overwrite = True
    with pytest.raises(OptionError, match=said):
        assert overwriting.sink
