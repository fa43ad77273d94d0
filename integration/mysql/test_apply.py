"""What rows become in MySQL and MariaDB, and what happens where the server refuses one."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import COUNTER, MySqlQuery
from integration.support.mysql import Table
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect, private_binary
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from sparkonce.errors import BadRow, OptionError, StoreRefused

pytestmark = pytest.mark.variants
ROWS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
TABLE = "id BIGINT PRIMARY KEY, name VARCHAR(20), x DOUBLE"


def row(id_: int | None, name: str | None = "a", x: float | None = 1.5) -> dict[str, Any]:
    return {"id": id_, "name": name, "x": x}


def test_append_inserts_each_row_once(table: Table) -> None:
    query = table.make(ROWS, "id BIGINT, name TEXT, x DOUBLE")
    query.run(0, [row(1), row(1)], [row(2, None, None)])
    query.run(0, [row(7)])
    assert table.stored() == [(1, "a", 1.5), (1, "a", 1.5), (2, None, None)]


def test_append_of_a_duplicate_names_it_and_nothing_of_the_epoch_takes_effect(table: Table) -> None:
    query = table.make(ROWS, TABLE)
    query.run(0, [row(5)])
    with pytest.raises(BadRow, match=r"row with id=5, name='b', x=1.5e0.*Duplicate entry") as bad:
        query.run(1, [row(1), row(2)], [row(3), row(5, "b"), row(4)])
    assert "no row of epoch 1 took effect" in str(bad.value)
    assert table.stored("id") == [(5,)]
    query.restart()
    query.run(1, [row(6)])
    assert table.stored("id") == [(5,), (6,)]


def test_upsert_writes_every_column_and_the_last_row_of_a_key_wins(table: Table) -> None:
    query = table.make(ROWS, TABLE, key="id")
    query.run(0, [row(1, "first"), row(2)], [row(1, "last", None)])
    query.run(1, [row(2, "again", -0.25)])
    assert table.stored() == [(1, "last", None), (2, "again", -0.25)]


def test_null_is_stored_or_kept_as_told(table: Table) -> None:
    query = table.make(ROWS, TABLE, key="id")
    query.run(0, [row(1)])
    query.restart(nulls="keep")
    query.run(1, [row(1, None, 2.0), row(2, None, None)])
    assert table.stored() == [(1, "a", 2.0), (2, None, None)]
    query.restart(nulls="write")
    query.run(2, [row(1, None, None)])
    assert table.stored()[0] == (1, None, None)


def test_increment_adds_exactly_and_nulls_add_nothing(table: Table) -> None:
    schema = pa.schema(
        [("id", pa.int64()), ("n", pa.int64()), ("d", pa.decimal128(20, 3)), ("x", pa.float64())]
    )
    definition = "id BIGINT PRIMARY KEY, n BIGINT NOT NULL, d DECIMAL(20,3), x DOUBLE, w INT"
    query = table.make(schema, definition, key="id", writeMode="increment")
    big, penny = 2**62 + 1, Decimal("0.001")
    query.run(
        0, [{"id": 1, "n": big, "d": penny, "x": 0.25}, {"id": 1, "n": None, "d": penny, "x": None}]
    )
    query.run(1, [{"id": 1, "n": -1, "d": None, "x": 0.25}])
    assert table.stored() == [(1, 2**62, Decimal("0.002"), 0.5, None)]


def test_increment_of_a_stored_null_begins_at_zero(table: Table) -> None:
    query = table.make(COUNTER, "id BIGINT PRIMARY KEY, n BIGINT", key="id", writeMode="increment")
    table.run(f"INSERT INTO {table} VALUES (1, NULL)")
    query.run(0, [{"id": 1, "n": 3}, {"id": 1, "n": 4}])
    assert table.stored() == [(1, 7)]


def test_sum_beyond_its_column_is_refused_and_says_so(table: Table) -> None:
    query = table.make(COUNTER, "id BIGINT PRIMARY KEY, n TINYINT", key="id", writeMode="increment")
    query.run(0, [{"id": 1, "n": 100}])
    with pytest.raises(BadRow, match=r"row with id=1.*column 'n'"):
        query.run(1, [{"id": 2, "n": 1}, {"id": 1, "n": 100}])
    assert table.stored() == [(1, 100)]


def test_composite_keys_of_any_type(table: Table) -> None:
    at = [1357016400123456, 1357016400123457]
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("who", pa.string()), ("n", pa.int32())])
    definition = (
        "`at` DATETIME(6), who VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, n INT,"
        " PRIMARY KEY (`at`, who)"
    )
    query = table.make(schema, definition, key="who,at")
    names = zip(at * 2, "aA\\'", strict=True)
    rows = [{"at": t, "who": who, "n": n} for n, (t, who) in enumerate(names)]
    query.run(0, rows, [{**rows[0], "n": 9}])
    assert sorted(n for (n,) in table.stored("n")) == [1, 2, 3, 9]
    query.restart(writeMode="delete")
    query.run(1, rows[1:])
    assert [(who, n) for who, n in table.stored("who, n")] == [("a", 9)]


def test_keys_are_equal_as_their_collation_says(table: Table) -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int32())])
    definition = "k VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, n INT"
    query = table.make(schema, definition, key="k", writeMode="increment")
    query.run(0, [{"k": k, "n": 1} for k in ("Zoë", "zoe", "ZOE ")])
    assert table.stored() == [("Zoë", 3)]


def test_generated_and_auto_increment_columns_are_left_alone(table: Table) -> None:
    definition = (
        "seq INT AUTO_INCREMENT UNIQUE, id BIGINT PRIMARY KEY, n BIGINT,"
        " twice BIGINT AS (n * 2) STORED, made DATE DEFAULT '2020-01-01' NOT NULL"
    )
    query = table.make(COUNTER, definition, key="id")
    query.run(0, [{"id": 10, "n": 1}])
    query.run(1, [{"id": 10, "n": 4}])
    assert table.stored("seq, id, twice") == [(1, 10, 8)]


def test_zero_is_stored_in_an_auto_increment_column(table: Table) -> None:
    query = table.make(COUNTER, "id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT", key="id")
    query.run(0, [{"id": 0, "n": 1}])
    query.run(1, [{"id": 0, "n": 2}])
    assert table.stored() == [(0, 2)]


def test_names_with_odd_characters_are_quoted(mysql: Cursor, mysql_url: str, unique: str) -> None:
    name, column = f"{unique} `x.y`'\"\\%s", "a `b`'\"\\;--%s"
    quoted = [text.replace("`", "``").replace("%", "%%") for text in (name, column)]
    mysql.execute(f"CREATE TABLE `{quoted[0]}` (id INT PRIMARY KEY, `{quoted[1]}` INT)", ())
    option = "`" + name.replace("`", "``") + "`"
    schema = pa.schema([("id", pa.int32()), (column, pa.int32())])
    for epoch, mode in enumerate(("append", "upsert", "increment")):
        query = MySqlQuery(
            schema, url=mysql_url, dbtable=option, key="id", writeMode=mode, sinkId=f"s{epoch}"
        )
        query.sink.check()
        query.run(0, [{"id": int(mode == "append"), column: 2}])
    mysql.execute(f"SELECT * FROM `{quoted[0]}` ORDER BY 1", ())
    assert mysql.fetchall() == ((0, 4), (1, 2))


def test_table_is_created_from_the_schema_with_the_key_as_its_primary_key(table: Table) -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int64()), ("tags", pa.list_(pa.string()))])
    options = {"url": table.url, "dbtable": table, "key": "k"}
    query = MySqlQuery(schema, createTable="true", **options)
    query.sink.check()
    query.run(0, [{"k": k, "n": 1, "tags": ["x"]} for k in ("a", "A", "a ", "á")])
    assert len(table.stored()) == 4, "a new table's keys are equal as Spark's are"
    MySqlQuery(schema, createTable="true", chunkRows="7", **options).sink.check()


def test_ledger_may_lie_in_another_database(unique: str, table: Table) -> None:
    table.run(f"CREATE DATABASE {unique}_ledger")
    query = table.make(COUNTER, "id BIGINT PRIMARY KEY, n INT", ledgerSchema=f"{unique}_ledger")
    query.run(0, [{"id": 1, "n": 1}])
    assert {
        name for (name,) in table.run(f"SELECT name FROM {unique}_ledger.sparkonce_ledger")
    } == {query.name, ""}
    assert table.stored() == [(1, 1)]


def test_database_with_an_odd_name(mysql: Cursor, mysql_url: str, unique: str) -> None:
    name = f"{unique} %s `x`"
    quoted = "`" + name.replace("`", "``") + "`"
    mysql.execute(f"CREATE DATABASE {quoted}")
    query = MySqlQuery(
        ROWS,
        url=mysql_url,
        dbtable=f"{quoted}.t",
        key="id",
        createTable="true",
        sequenceColumn="id",
    )
    query.sink.check()
    query.run(0, [row(1)])
    query.run(1, [row(1, "b")])
    assert query.name in query.sink.store.names()
    mysql.execute(f"SELECT name FROM {quoted}.t")
    assert mysql.fetchall() == (("b",),)


@pytest.mark.parametrize("granted", [True, False])
def test_tables_that_may_not_be_made_are_made_by_the_printed_ddl(
    table: Table, unique: str, granted: bool
) -> None:
    table.create("id BIGINT PRIMARY KEY, n INT")
    ((home,),) = table.run("SELECT DATABASE()")
    letters = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    table.query(COUNTER, **letters).sink.check()
    table.run(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    table.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {unique}")
    table.run(f"GRANT INSERT ON {table}_bad TO {unique}", f"CREATE DATABASE {unique}_ledger")
    rights = f"GRANT SELECT, INSERT, UPDATE, DELETE ON {unique}_ledger.* TO {unique}"
    if granted:
        table.run(rights)
    url = table.url.replace("root@", f"{unique}:pw@")
    own = f"{unique}_ledger"
    query = table.query(COUNTER, url=url, ledgerSchema=own, **letters)
    with pytest.raises(StoreRefused, match=r"do not exist.*command denied.*sparkonce ddl mysql"):
        query.sink.check()
    table.run(f"USE {unique}_ledger")
    for statement in MySqlConnector().ddl():
        table.run(statement)
    table.run(rights)
    table.run(f"USE {home}")
    query.sink.store.session.pool.close_idle()  # such rights are read when one connects
    query.sink.check()
    assert query.run(0, [{"id": 1, "n": 1}]).totals.rows == 1


NO_CASE = "--lower-case-table-names=1"


def test_a_target_has_one_name_where_names_have_no_case(mysql_name: str) -> None:
    binary = or_skip(lambda: private_binary(mysql_name))
    install, command = ((*words, NO_CASE) for words in (binary.install, binary.command))
    binary = replace(binary, install=install, command=command)
    with ExitStack() as stack:
        server = stack.enter_context(or_skip(lambda: MySqlProcess(binary)))
        client = stack.enter_context(connect(server.url))
        cursor = stack.enter_context(client.cursor())
        cursor.execute("CREATE TABLE orders (id BIGINT, n BIGINT)")
        names = set()
        for table in ("orders", "Orders", "SPARKONCE_TEST.ORDERS"):
            query = MySqlQuery(COUNTER, url=server.url, dbtable=table, sinkId="one")
            checked = query.sink.check().plan
            query.checked = checked
            names |= {query.name, checked.target, checked.detail.table, checked.stored["table"][1]}
        assert len(names) == 4


def rows(ids: range) -> list[dict[str, int]]:
    return [{"id": i, "n": i} for i in ids]


@pytest.fixture(params=[{}, {"key": "id"}], ids=["append", "upsert"])
def query(request: pytest.FixtureRequest, table: Table) -> MySqlQuery:
    """An overwrite of a table that has rows."""
    made = table.make(COUNTER, "id BIGINT PRIMARY KEY, n TINYINT UNSIGNED", **request.param)
    made.run(0, rows(range(100)))
    made.overwrite = True
    made.sink.check()
    return made


def test_rows_take_the_place_of_all_of_the_table(query: MySqlQuery, table: Table) -> None:
    query.run(1, rows(range(50, 120)))
    assert sorted(table.stored()) == [(i, i) for i in range(50, 120)]
    query.run(2)
    assert table.stored() == [], "no row is written, so none is left"


def test_a_row_that_is_refused_leaves_the_table_as_it_was(query: MySqlQuery, table: Table) -> None:
    with pytest.raises(BadRow, match="no row of epoch 1 took effect"):
        query.run(1, rows(range(200, 300)))
    assert sorted(table.stored()) == [(i, i) for i in range(100)]


def test_overwriting_chunk_by_chunk_is_refused(table: Table) -> None:
    query = table.make(COUNTER, "id BIGINT PRIMARY KEY, n BIGINT", key="id", atomicity="chunk")
    query.overwrite = True
    with pytest.raises(OptionError, match="atomicity=chunk"):
        assert query.sink


def test_a_table_that_a_foreign_key_keeps_from_being_emptied_is_refused_by_name(
    table: Table,
) -> None:
    itself = f"FOREIGN KEY (n) REFERENCES {table} (id)"
    query = table.make(COUNTER, f"id BIGINT PRIMARY KEY, n BIGINT, {itself}", writeMode="append")
    query.run(0, [{"id": 1, "n": None}, {"id": 2, "n": 1}])
    query.overwrite = True
    with pytest.raises(StoreRefused, match=r"can't be emptied, and no row .* took effect"):
        query.run(1, [{"id": 3, "n": None}])
    assert table.stored() == [(1, None), (2, 1)]
