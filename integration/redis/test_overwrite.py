"""Mode overwrite in Redis: the keys of the template go, then rows come, whatever dies between."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
import redis
from integration.support.epochs import DirectQuery

from pyspark_redis.journal import scripts
from pyspark_redis.target import keys
from sparkonce.errors import OptionError
from sparkonce.operate.admin import Admin

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
OLD, NEW = range(2500), range(2000, 2600)


def rows(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": i} for i in ids]


@pytest.fixture
def query(
    redis_url: str, unique: str, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> DirectQuery:
    """An overwrite of keys that were written before, beside others that only look like them."""
    monkeypatch.setattr(keys, "SCANNED", 100)
    prefix = f"{unique}[a-z]:"
    DirectQuery(SCHEMA, url=redis_url, key=f"{prefix}{{id}}").run(0, rows(OLD))
    client.set(f"{unique}b:1", "another pattern")
    client.set(f"{unique}", "no prefix")
    made = DirectQuery(SCHEMA, url=redis_url, key=f"{prefix}{{id}}", chunkRows="100")
    made.overwrite = True
    return made


def held(client: redis.Redis, unique: str) -> set[str]:
    return set(client.scan_iter(f"{unique}*", count=10_000))


def replaced(unique: str) -> set[str]:
    return {f"{unique}[a-z]:{i}" for i in NEW} | {f"{unique}b:1", unique}


def test_rows_take_the_place_of_all_keys_of_the_template(
    query: DirectQuery, client: redis.Redis, unique: str
) -> None:
    query.run(0, rows(NEW))
    assert held(client, unique) == replaced(unique)
    query.run(1)
    assert held(client, unique) == {f"{unique}b:1", unique}, "no row is written, so none is left"


@pytest.mark.parametrize("step", [0, 1, 5, 20])
def test_what_dies_while_it_empties_or_fills_is_finished(
    query: DirectQuery, client: redis.Redis, unique: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = query.sink.store.session
    run, calls = session.run, iter(range(1000))

    def dying(text: str, *given: Any) -> Any:
        if text != scripts.decide() and text != scripts.swap() and next(calls) == step:
            raise ZeroDivisionError("the driver dies")
        return run(text, *given)

    receipts = query.stage(0, rows(NEW))
    monkeypatch.setattr(session, "run", dying)
    with pytest.raises(ZeroDivisionError):
        query.commit(0, receipts)
    monkeypatch.undo()
    admin = Admin(query.sink.store)
    admin.recover(admin.sink(query.name))
    assert held(client, unique) == replaced(unique)


def test_a_request_to_empty_that_comes_late_deletes_nothing(
    query: DirectQuery, client: redis.Redis, unique: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, sent = query.sink.store.session, []
    run = session.run

    def noting(text: str, *given: Any) -> Any:
        if text == scripts.clear():
            sent.append(given)
        return run(text, *given)

    monkeypatch.setattr(session, "run", noting)
    query.run(0, rows(NEW))
    late = [run(scripts.clear(), *given) for given in sent]
    assert len(late) > 10
    assert set(late) == {0}
    assert held(client, unique) == replaced(unique)


def test_another_sparkonce_loses_none_of_its_keys(
    redis_url: str, client: redis.Redis, unique: str
) -> None:
    """Else it would apply its last epoch again."""
    aside = {"onBadRow": "deadLetter", "deadLetter": "bad"}
    other = DirectQuery(
        SCHEMA,
        url=redis_url,
        key=f"n-{unique}:{{id}}",
        keyPrefix=f"{unique}-b",
        writeMode="increment",
        **aside,
    )
    client.set(f"n-{unique}:3", "mine")
    other.run(0, rows(range(6)))
    other.stage(1, rows(range(6)))
    client.hset(f"{{{unique}}}:7", "n", 1)
    pattern = f"{{{unique}*"
    before = {key: client.dump(key) for key in client.scan_iter(pattern) if "-b}:" in key}
    made = DirectQuery(SCHEMA, url=redis_url, key=f"{{{{{unique}{{id}}")
    made.overwrite = True
    made.run(0, rows(range(2)))
    after = {key: client.dump(key) for key in client.scan_iter(pattern)}
    assert before.items() <= after.items()
    assert after.keys() - before.keys() == {f"{{{unique}0", f"{{{unique}1"}
    other.restart()
    other.run(0, rows(range(6)))
    assert client.hget(f"n-{unique}:5", "n") == "5"
    client.delete(*after)


@pytest.mark.parametrize(
    ("options", "said"),
    [({"key": "id"}, "a fixed text"), ({"key": "x:{id}", "writeMode": "delete"}, "contradict")],
)
def test_an_overwrite_that_could_delete_all_or_write_nothing_is_refused(
    redis_url: str, options: dict[str, str], said: str
) -> None:
    query = DirectQuery(SCHEMA, url=redis_url, **options)
    query.overwrite = True
    with pytest.raises(OptionError, match=said):
        assert query.sink
