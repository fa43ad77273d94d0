"""What a commit has learned of the target stays true until its transaction ends."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.counters import counting, counts, ones
from integration.support.epochs import MySqlQuery
from integration.support.servers.mysql import connect
from pymysql import OperationalError
from pymysql.cursors import Cursor

from pyspark_mysql.write import delivery
from sparkonce.errors import BadRow, StoreError, StoreRefused, StoreUnsafe

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def query(mysql: Cursor, mysql_url: str, table: str) -> MySqlQuery:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    made = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, key="id", writeMode="increment")
    made.sink.check()
    made.run(0, [{"id": 1, "n": 1}])
    return made


def test_an_engine_without_transactions_is_refused_in_mid_query(
    mysql: Cursor, table: str, query: MySqlQuery
) -> None:
    mysql.execute(f"ALTER TABLE {table} ENGINE=MyISAM")
    with pytest.raises(StoreUnsafe, match="MyISAM"):
        query.run(1, [{"id": 1, "n": 1}])
    mysql.execute(f"ALTER TABLE {table} ENGINE=InnoDB")
    query.run(1, [{"id": 1, "n": 1}])
    mysql.execute(f"SELECT n FROM {table}")
    assert mysql.fetchall() == ((2,),)


def test_a_unique_key_is_not_added_behind_the_back_of_a_commit(
    mysql: Cursor, mysql_url: str, table: str, query: MySqlQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a second unique key a row could be added to another's; the commit has looked by then."""
    altered = threading.Event()

    def alter() -> None:
        with connect(mysql_url) as client, client.cursor() as cursor:
            cursor.execute(f"ALTER TABLE {table} ADD UNIQUE KEY other (n)")
        altered.set()

    altering = threading.Thread(target=alter)
    look = delivery.Applier

    def look_and_alter(*args: Any) -> Any:
        found = look(*args)
        altering.start()
        assert not altered.wait(1), "the table was altered in mid-transaction"
        return found

    monkeypatch.setattr(delivery, "Applier", look_and_alter)
    query.run(1, [{"id": 2, "n": 1}, {"id": 1, "n": 1}])
    altering.join()
    mysql.execute(f"SELECT id, n FROM {table} ORDER BY id")
    assert mysql.fetchall() == ((1, 2), (2, 1))


@pytest.mark.parametrize("role", ["log", "letters"])
def test_an_engine_is_not_altered_behind_the_back_of_a_commit(
    mysql: Cursor, mysql_url: str, table: str, role: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    options = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, **options)
    query.sink.check()
    other = {"log": "sparkonce_log", "letters": f"{table}_bad"}[role]
    look = delivery.Applier

    def look_and_alter(*args: Any) -> Any:
        mysql.execute("SET SESSION lock_wait_timeout = 1")
        with pytest.raises(OperationalError, match="Lock wait timeout"):
            mysql.execute(f"ALTER TABLE {other} ENGINE=InnoDB")
        return look(*args)

    monkeypatch.setattr(delivery, "Applier", look_and_alter)
    query.run(0, [{"id": 1, "n": 1}])
    mysql.execute(f"DROP TABLE {table}_bad")


@pytest.mark.parametrize("mode", ["upsert", "increment"])
def test_a_key_that_is_dropped_in_mid_query_is_missed(
    mysql: Cursor, mysql_url: str, table: str, mode: str
) -> None:
    """Without it every row would be inserted anew."""
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, key="id", writeMode=mode)
    query.run(0, [{"id": 1, "n": 1}])
    mysql.execute(f"ALTER TABLE {table} DROP PRIMARY KEY")
    with pytest.raises(StoreRefused, match=r"no unique key of the table.*altered since"):
        query.run(1, [{"id": 1, "n": 2}])
    mysql.execute(f"SELECT * FROM {table}")
    assert mysql.fetchall() == ((1, 1),)


def test_a_column_that_is_narrowed_in_mid_query_rounds_nothing(
    mysql: Cursor, mysql_url: str, table: str
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n DECIMAL(10,2))")
    schema = pa.schema([("id", pa.int64()), ("n", pa.decimal128(10, 2))])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id")
    query.run(0, [{"id": 1, "n": Decimal("1.00")}])
    mysql.execute(f"ALTER TABLE {table} MODIFY n DECIMAL(10,0)")
    with pytest.raises(StoreRefused, match=r"'n' of type decimal\(10,0\).*altered since"):
        query.run(1, [{"id": 2, "n": Decimal("1.75")}])
    mysql.execute(f"ALTER TABLE {table} MODIFY n DECIMAL(10,2)")
    query.run(1, [{"id": 2, "n": Decimal("1.75")}])
    mysql.execute(f"SELECT n FROM {table} ORDER BY id")
    assert mysql.fetchall() == ((Decimal("1.00"),), (Decimal("1.75"),))


def test_table_that_is_altered_or_renamed_in_mid_query(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    query = counting(mysql_url, counters)
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
        mysql.execute(harm.format(counters))
        with pytest.raises(StoreRefused, match=said) as refused:
            query.commit(1, receipts)
        assert "dropped, renamed or altered" in str(refused.value)
        mysql.execute(cure.format(counters))
    query.commit(1, receipts)
    assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), 2))


def test_table_that_is_dropped_in_mid_query_is_refused_until_it_is_there(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    query = counting(mysql_url, counters)
    query.run(0, ones(range(10)))
    receipts = query.stage(1, ones(range(5)))
    mysql.execute(f"DROP TABLE {counters}")
    with pytest.raises(StoreRefused, match="dropped, renamed or altered"):
        query.commit(1, receipts)
    mysql.execute(f"CREATE TABLE {counters} (id BIGINT PRIMARY KEY, n BIGINT)")
    assert query.commit(1, receipts).decision.epoch == 1
    assert counts(mysql, counters) == Counter(range(5))


BETWEEN_CHUNKS = {
    "narrowed": ("MODIFY n TINYINT UNSIGNED", "row with id=1: .*Out of range"),
    "taken away": ("DROP n", "'n' of the query is not in the table"),
    "rounding": ("MODIFY n YEAR", "a year is no sum"),
    "another unique key": ("ADD UNIQUE (n)", "another stored row's value in another unique key"),
    "without transactions": ("ENGINE=MyISAM", "has the engine MyISAM"),
}


@pytest.mark.parametrize("case", BETWEEN_CHUNKS)
def test_a_target_that_is_altered_between_two_chunks_is_looked_at_again(
    mysql: Cursor, mysql_url: str, table: str, case: str
) -> None:
    """With a transaction a chunk nothing keeps it from being altered in between."""
    harm, said = BETWEEN_CHUNKS[case]
    mysql.execute(f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, n BIGINT)")
    options = {"writeMode": "increment", "atomicity": "chunk", "chunkRows": "1"}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, key="id", **options)
    query.sink.check()
    query.run(0, [{"id": 1, "n": 5}])
    own = query.sink.store
    apply = own.apply

    def altering(manifest: Any, *_: Any) -> Any:
        return apply(manifest, lambda _: mysql.execute(f"ALTER TABLE {table} {harm}"))

    own.apply = altering
    second = {"id": 2, "n": 5} if "unique" in case else {"id": 1, "n": -9}
    try:
        with pytest.raises(StoreError, match=said):
            query.run(1, [{"id": 9, "n": 1}, second])
    finally:
        del own.apply
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchall() == ((2,),), "the first chunk has taken effect, and nothing of the other"


def test_a_target_is_looked_at_once_an_epoch(
    mysql: Cursor, mysql_url: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT)")
    options = {"writeMode": "append", "atomicity": "chunk", "chunkRows": "1"}
    query = MySqlQuery(COUNTER, url=mysql_url, dbtable=table, **options)
    query.sink.check()
    looks, look = [], delivery.Applier
    monkeypatch.setattr(delivery, "Applier", lambda *args: looks.append(args) or look(*args))
    query.run(0, [{"id": n, "n": n} for n in range(1, 6)])
    assert len(looks) == 1
    mysql.execute(f"SELECT COUNT(*) FROM {table}")
    assert mysql.fetchall() == ((5,),)


WORDS = pa.schema([("id", pa.int64()), ("word", pa.string())])
WIDE = [{"id": 1, "word": "a"}, {"id": 2, "word": "ab  "}, {"id": 3, "word": "abc "}]


@pytest.fixture(params=["epoch", "chunk"])
def words(request: pytest.FixtureRequest, mysql: Cursor, mysql_url: str, table: str) -> MySqlQuery:
    mysql.execute(f"CREATE TABLE {table} (id BIGINT, word VARCHAR(4))")
    options = {"atomicity": request.param, "chunkRows": "1"}
    return MySqlQuery(WORDS, url=mysql_url, dbtable=table, writeMode="append", **options)


def test_rows_that_were_checked_against_another_table_are_not_decided(
    mysql: Cursor, table: str, words: MySqlQuery
) -> None:
    """The server would cut the space, of which the tasks knew that there was room for it."""
    receipts = words.stage(0, WIDE)
    mysql.execute(f"ALTER TABLE {table} MODIFY word VARCHAR(3)")
    with pytest.raises(StoreRefused, match=r"'word' .* was varchar\(4\).* and is varchar\(3\)"):
        words.commit(0, receipts)
    words.checked = None  # as Spark makes another writer for the commit
    with pytest.raises(StoreRefused, match="altered while rows for it were staged"):
        words.commit(0, receipts)
    words.restart()
    with pytest.raises(BadRow, match=r"id=2.* longer than the column"):
        words.run(0, WIDE)
    mysql.execute(f"ALTER TABLE {table} MODIFY word VARCHAR(5)")
    words.run(0, WIDE)
    mysql.execute(f"SELECT id, word FROM {table} ORDER BY id")
    assert [{"id": key, "word": word} for key, word in mysql.fetchall()] == WIDE


@pytest.mark.parametrize("words", ["chunk"], indirect=True)
def test_a_decided_epoch_waits_until_its_table_is_as_it_was(
    mysql: Cursor, table: str, words: MySqlQuery
) -> None:
    own = words.sink.store
    apply = own.apply

    def altering(manifest: Any, *_: Any) -> Any:
        narrow = f"ALTER TABLE {table} MODIFY word VARCHAR(3)"
        return apply(manifest, lambda _: mysql.execute(narrow))

    own.apply = altering
    try:
        with pytest.raises(StoreRefused, match=r"'word' .* alter the column back"):
            words.run(0, WIDE)
    finally:
        del own.apply
    mysql.execute(f"ALTER TABLE {table} MODIFY word VARCHAR(4)")
    words.restart()
    words.run(0, WIDE)
    mysql.execute(f"SELECT id, word FROM {table} ORDER BY id")
    assert [{"id": key, "word": word} for key, word in mysql.fetchall()] == WIDE
