"""What a commit has learned of the target stays true until its transaction ends."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery, ones
from integration.support.mysql import Table, client
from pymysql import OperationalError

from pyspark_mysql.write import delivery
from sparkonce.errors import BadRow, StoreError, StoreRefused


@pytest.fixture
def query(table: Table) -> MySqlQuery:
    table.create("id BIGINT PRIMARY KEY, n BIGINT")
    made = table.checked(COUNTER, key="id", writeMode="increment")
    made.run(0, [{"id": 1, "n": 1}])
    return made


def test_a_unique_key_is_not_added_behind_the_back_of_a_commit(
    table: Table, query: MySqlQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a second unique key a row could be added to another's; the commit has looked by then."""
    altered = threading.Event()

    def alter() -> None:
        with client(table.url) as cursor:
            cursor.execute(f"ALTER TABLE {table} ADD UNIQUE KEY other (n)")
        altered.set()

    altering = threading.Thread(target=alter)
    look = delivery.writer_for

    def look_and_alter(*args: Any) -> Any:
        found = look(*args)
        altering.start()
        assert not altered.wait(1), "the table was altered in mid-transaction"
        return found

    monkeypatch.setattr(delivery, "writer_for", look_and_alter)
    query.run(1, [{"id": 2, "n": 1}, {"id": 1, "n": 1}])
    altering.join()
    assert table.rows("id, n", "id") == ((1, 2), (2, 1))


@pytest.mark.parametrize("role", ["log", "letters"])
def test_an_engine_is_not_altered_behind_the_back_of_a_commit(
    table: Table, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.create("id BIGINT PRIMARY KEY, n BIGINT")
    options = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    query = table.checked(COUNTER, **options)
    other = {"log": "sparkonce_log", "letters": f"{table}_bad"}[role]
    look = delivery.writer_for

    def look_and_alter(*args: Any) -> Any:
        table.run("SET SESSION lock_wait_timeout = 1")
        with pytest.raises(OperationalError, match="Lock wait timeout"):
            table.run(f"ALTER TABLE {other} ENGINE=InnoDB")
        return look(*args)

    monkeypatch.setattr(delivery, "writer_for", look_and_alter)
    query.run(0, [{"id": 1, "n": 1}])


@pytest.mark.parametrize("mode", ["upsert", "increment"])
def test_a_key_that_is_dropped_in_mid_query_is_missed(table: Table, mode: str) -> None:
    """Without it every row would be inserted anew."""
    table.create("id BIGINT PRIMARY KEY, n BIGINT")
    query = table.query(COUNTER, key="id", writeMode=mode)
    query.run(0, [{"id": 1, "n": 1}])
    table.run(f"ALTER TABLE {table} DROP PRIMARY KEY")
    with pytest.raises(StoreRefused, match=r"not a unique key of.*altered the table after"):
        query.run(1, [{"id": 1, "n": 2}])
    assert table.rows() == ((1, 1),)


def test_a_column_that_is_narrowed_in_mid_query_rounds_nothing(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY, n DECIMAL(10,2)")
    schema = pa.schema([("id", pa.int64()), ("n", pa.decimal128(10, 2))])
    query = table.query(schema, key="id")
    query.run(0, [{"id": 1, "n": Decimal("1.00")}])
    table.run(f"ALTER TABLE {table} MODIFY n DECIMAL(10,0)")
    with pytest.raises(StoreRefused, match=r"'n' of type decimal\(10,0\).*altered the table"):
        query.run(1, [{"id": 2, "n": Decimal("1.75")}])
    table.run(f"ALTER TABLE {table} MODIFY n DECIMAL(10,2)")
    query.run(1, [{"id": 2, "n": Decimal("1.75")}])
    assert table.rows("n", "id") == ((Decimal("1.00"),), (Decimal("1.75"),))


def test_table_that_is_altered_or_renamed_in_mid_query(counters: Table) -> None:
    query = counters.counting()
    query.sink.check()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(10)))
    for harm, cure, said in (
        (
            "ALTER TABLE {} CHANGE n m BIGINT",
            "ALTER TABLE {} CHANGE m n BIGINT",
            "'n' of the query",
        ),
        ("ALTER TABLE {} ADD w INT NOT NULL", "ALTER TABLE {} DROP w", "'w'"),
        ("RENAME TABLE {0} TO {0}_x", "RENAME TABLE {0}_x TO {0}", "doesn't exist"),
    ):
        counters.run(harm.format(counters))
        with pytest.raises(StoreRefused, match=said) as refused:
            query.commit(1, receipts)
        assert "dropped, renamed or altered" in str(refused.value)
        counters.run(cure.format(counters))
    query.commit(1, receipts)
    assert counters.counts() == Counter(dict.fromkeys(range(10), 2))


def test_table_that_is_dropped_in_mid_query_is_refused_until_it_is_there(counters: Table) -> None:
    query = counters.counting()
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(5)))
    counters.run(f"DROP TABLE {counters}")
    with pytest.raises(StoreRefused, match="dropped, renamed or altered"):
        query.commit(1, receipts)
    counters.create("id BIGINT PRIMARY KEY, n BIGINT")
    assert query.commit(1, receipts).decision.epoch == 1
    assert counters.counts() == Counter(range(5))


BETWEEN_CHUNKS = {
    "narrowed": ("MODIFY n TINYINT UNSIGNED", "row with id=1: .*Out of range"),
    "taken away": ("DROP n", "'n' of the query is not in the table"),
    "rounding": ("MODIFY n YEAR", "a YEAR can't hold a sum"),
    "another unique key": ("ADD UNIQUE (n)", "another stored row has its value"),
    "without transactions": ("ENGINE=MyISAM", "has the engine MyISAM"),
}


@pytest.mark.parametrize("case", BETWEEN_CHUNKS)
def test_a_target_that_is_altered_between_two_chunks_is_looked_at_again(
    table: Table, case: str
) -> None:
    """With a transaction a chunk nothing keeps it from being altered in between."""
    harm, said = BETWEEN_CHUNKS[case]
    table.create("id BIGINT PRIMARY KEY, n BIGINT")
    options = {"writeMode": "increment", "atomicity": "chunk", "chunkRows": "1"}
    query = table.checked(COUNTER, key="id", **options)
    query.run(0, [{"id": 1, "n": 5}])
    own = query.sink.store
    apply = own.apply

    def altering(manifest: Any, *_: Any) -> Any:
        return apply(manifest, lambda _: table.run(f"ALTER TABLE {table} {harm}"))

    own.apply = altering
    second = {"id": 2, "n": 5} if "unique" in case else {"id": 1, "n": -9}
    try:
        with pytest.raises(StoreError, match=said):
            query.run(1, [{"id": 9, "n": 1}, second])
    finally:
        del own.apply
    assert table.rows("COUNT(*)") == ((2,),), (
        "the first chunk has taken effect, and nothing of the other"
    )


def test_a_target_is_looked_at_once_an_epoch(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.create("id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT")
    options = {"writeMode": "append", "atomicity": "chunk", "chunkRows": "1"}
    query = table.checked(COUNTER, **options)
    looks, look = [], delivery.writer_for
    monkeypatch.setattr(delivery, "writer_for", lambda *args: looks.append(args) or look(*args))
    query.run(0, [{"id": n, "n": n} for n in range(1, 6)])
    assert len(looks) == 1
    assert table.count() == 5


WORDS = pa.schema([("id", pa.int64()), ("word", pa.string())])
WIDE = [{"id": 1, "word": "a"}, {"id": 2, "word": "ab  "}, {"id": 3, "word": "abc "}]


@pytest.fixture(params=["epoch", "chunk"])
def words(request: pytest.FixtureRequest, table: Table) -> MySqlQuery:
    table.create("id BIGINT, word VARCHAR(4)")
    options = {"atomicity": request.param, "chunkRows": "1"}
    return table.query(WORDS, writeMode="append", **options)


def test_rows_that_were_checked_against_another_table_are_not_decided(
    table: Table, words: MySqlQuery
) -> None:
    """The server would cut the space, of which the tasks knew that there was room for it."""
    receipts = words.stage(0, WIDE)
    table.run(f"ALTER TABLE {table} MODIFY word VARCHAR(3)")
    with pytest.raises(StoreRefused, match=r"'word' .* was varchar\(4\).* and is varchar\(3\)"):
        words.commit(0, receipts)
    words.checked = None  # as Spark makes another writer for the commit
    with pytest.raises(StoreRefused, match="altered while tasks staged rows for it"):
        words.commit(0, receipts)
    words.restart()
    with pytest.raises(BadRow, match=r"id=2.* longer than the column"):
        words.run(0, WIDE)
    table.run(f"ALTER TABLE {table} MODIFY word VARCHAR(5)")
    words.run(0, WIDE)
    assert [{"id": key, "word": word} for key, word in table.rows("id, word", "id")] == WIDE


@pytest.mark.parametrize("words", ["chunk"], indirect=True)
def test_a_decided_epoch_waits_until_its_table_is_as_it_was(
    table: Table, words: MySqlQuery
) -> None:
    own = words.sink.store
    apply = own.apply

    def altering(manifest: Any, *_: Any) -> Any:
        narrow = f"ALTER TABLE {table} MODIFY word VARCHAR(3)"
        return apply(manifest, lambda _: table.run(narrow))

    own.apply = altering
    try:
        with pytest.raises(StoreRefused, match=r"'word' .* alter the column back"):
            words.run(0, WIDE)
    finally:
        del own.apply
    table.run(f"ALTER TABLE {table} MODIFY word VARCHAR(4)")
    words.restart()
    words.run(0, WIDE)
    assert [{"id": key, "word": word} for key, word in table.rows("id, word", "id")] == WIDE
