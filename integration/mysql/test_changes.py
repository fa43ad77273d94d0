"""Change streams: inserts, updates and deletes in one epoch, in order or by a sequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow, OptionError, StoreRefused

CHANGES = pa.schema(
    [("id", pa.string()), ("op", pa.string()), ("at", pa.int64()), ("v", pa.string())]
)
MAP = pa.map_(pa.string(), pa.int64())
DEFINITION = (
    "id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY,"
    " at BIGINT, v VARCHAR(9) NOT NULL, extra INT DEFAULT 7"
)
Make = Callable[..., MySqlQuery]


@pytest.fixture
def make(mysql: Cursor, mysql_url: str, table: str) -> Make:
    """A query of changes, into a table whose keys are compared without case."""
    mysql.execute(f"CREATE TABLE {table} ({DEFINITION})")

    def make(**options: str) -> MySqlQuery:
        given = {"opColumn": "op", **options}
        query = MySqlQuery(CHANGES, url=mysql_url, dbtable=table, key="id", **given)
        query.sink.check()
        return query

    return make


@pytest.fixture
def stored(mysql: Cursor, table: str) -> Callable[[], dict[str, str]]:
    def stored() -> dict[str, str]:
        mysql.execute(f"SELECT LOWER(id), v FROM {table}")
        return dict(mysql.fetchall())

    return stored


def change(id_: str, op: str, v: str | None = "x", at: int | None = 0) -> dict[str, Any]:
    return {"id": id_, "op": op, "at": at, "v": v}


@pytest.mark.parametrize(
    ("insert", "update", "delete"),
    [("I", "U", "D"), ("c", "u", "d"), ("r", "u", "D"), ("insert", "update_postimage", "delete")],
)
def test_flavours_of_operations(
    make: Make, stored: Any, insert: str, update: str, delete: str
) -> None:
    query = make()
    query.run(0, [change("a", insert), change("b", insert)], [change("c", insert)])
    query.run(1, [change("a", update, "y"), change("b", delete, None)], [change("d", delete)])
    assert stored() == {"a": "y", "c": "x"}


def test_preimages_do_nothing(make: Make, stored: Any) -> None:
    query = make()
    query.run(0, [change("a", "update_preimage", "old"), change("a", "update_postimage", "new")])
    query.run(1, [change("a", "update_postimage", "newer"), change("a", "update_preimage", "new")])
    ledger = query.run(2, [change("a", "update_preimage", "newer")])
    assert (stored(), ledger.decision.epoch) == ({"a": "newer"}, 2)


def test_last_change_of_a_key_wins_in_the_collation_of_its_column(make: Make, stored: Any) -> None:
    query = make(chunkRows="2")
    query.run(
        0,
        [change("A", "I"), change("a", "D"), change("á", "I", "1"), change("b", "I")],
        [change("B", "D"), change("Á", "U", "2"), change("c", "D"), change("C", "I")],
    )
    assert stored() == {"á": "2", "c": "x"}, "spelled as the row that wins"


def test_columns_that_the_query_lacks_are_left_alone(make: Make, mysql: Cursor, table: str) -> None:
    query = make()
    query.run(0, [change("a", "I")])
    mysql.execute(f"UPDATE {table} SET extra = 9")
    query.run(1, [change("a", "U", "y"), change("b", "I")])
    mysql.execute(f"SELECT id, v, extra FROM {table} ORDER BY id")
    assert mysql.fetchall() == (("a", "y", 9), ("b", "x", 7))


@pytest.mark.parametrize("op", [None, "X", ""])
def test_unknown_operation_is_refused_by_name(make: Make, stored: Any, op: str | None) -> None:
    shown = "null" if op is None else repr(op)
    with pytest.raises(BadRow, match=rf"'op' holds {shown}, which is no operation.*id='b'"):
        make().run(0, [change("a", "I"), change("b", op)])
    assert stored() == {}


def test_highest_sequence_wins_across_chunks_deletes_included(make: Make, stored: Any) -> None:
    query = make(sequenceColumn="at", chunkRows="1")
    query.run(
        0,
        [change("a", "D", None, 5), change("b", "I", "old", 1), change("c", "I", "1", 3)],
        [change("A", "U", "late", 4), change("B", "U", "new", 2), change("c", "U", "2", 3)],
    )
    assert stored() == {"b": "new", "c": "2"}


def test_sequence_is_compared_within_an_epoch(make: Make, stored: Any) -> None:
    query = make(sequenceColumn="at")
    query.run(0, [change("a", "I", "first", 9)])
    query.run(1, [change("a", "U", "second", 1)])
    assert stored() == {"a": "second"}


def test_sequence_alone_orders_an_upsert(
    mysql: Cursor, mysql_url: str, table: str, stored: Any
) -> None:
    mysql.execute(f"CREATE TABLE {table} ({DEFINITION})")
    schema = pa.schema([("id", pa.string()), ("at", pa.int64()), ("v", pa.string())])
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, key="id", sequenceColumn="AT")
    query.sink.check()
    query.run(0, [{"id": "a", "at": 2, "v": "2"}], [{"id": "A", "at": 1, "v": "1"}])
    assert stored() == {"a": "2"}


def test_null_sequence_is_refused_by_name(make: Make) -> None:
    with pytest.raises(BadRow, match="Column 'at' is null"):
        make(sequenceColumn="at").run(0, [change("a", "I", "x", None)])


def test_row_that_the_target_refuses_leaves_nothing(make: Make, stored: Any) -> None:
    query = make()
    refused = r"row with id='b': .*'v' cannot be null.*nothing of epoch 0 took effect"
    with pytest.raises(BadRow, match=refused):
        query.run(0, [change("a", "I"), change("b", "I", None), change("c", "I")])
    with pytest.raises(BadRow, match=r"row with id='b' .*longer than the column"):
        query.run(0, [change("a", "I"), change("b", "I", "x" * 10)])
    assert stored() == {}
    query.restart()
    query.run(0, [change("c", "I")])
    assert stored() == {"c": "x"}


RULES = ["CASCADE", "SET NULL"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("by", ["itself", "another table"])
def test_table_in_which_a_delete_changes_other_rows_is_refused(
    mysql: Cursor, mysql_url: str, table: str, rule: str, by: str
) -> None:
    """A row that let go of another one, which then was deleted, would be deleted with it."""
    keyed, other = "id VARCHAR(9) PRIMARY KEY", f"{table}_other"
    parent = table if by == "itself" else other
    mysql.execute(f"CREATE TABLE {table} ({keyed}, v VARCHAR(9), at BIGINT)")
    mysql.execute(
        f"CREATE TABLE {other} ({keyed}, r VARCHAR(9),"
        f" FOREIGN KEY (r) REFERENCES {table} (id) ON DELETE CASCADE)"
    )
    query = MySqlQuery(CHANGES, url=mysql_url, dbtable=table, key="id", opColumn="op")
    query.sink.check()
    constraint = f"FOREIGN KEY (v) REFERENCES {parent} (id) ON DELETE {rule}"
    mysql.execute(f"ALTER TABLE {table} ADD CONSTRAINT {table}_f {constraint}")
    refused = "has a foreign key that leads back to it, with ON DELETE CASCADE or SET NULL"
    try:
        with pytest.raises(StoreRefused, match=refused):
            query.run(0, [change("a", "I", None)])
        query.sink.store.session.pool.close_idle()
        with pytest.raises(OptionError, match=refused):
            query.sink.check()
    finally:
        mysql.execute(f"ALTER TABLE {table} DROP FOREIGN KEY {table}_f")
        mysql.execute(f"DROP TABLE {other}")
    query.run(0, [change("a", "I", None)])


WIDE = pa.schema(
    [
        *(("id", pa.string()), ("op", pa.string()), ("at", pa.int64()), ("v", pa.string())),
        *(("x", pa.float64()), ("e", pa.string()), ("n", pa.int64()), ("m", MAP)),
    ]
)
NARROW = "id VARCHAR(9) PRIMARY KEY, v VARCHAR(3), x DOUBLE, e ENUM('1', '9'), n TINYINT, m JSON"
GOOD = {"v": "abc", "x": 0.5, "e": "9", "n": 1, "m": []}
MISFIT = {"v": "abcd ", "x": float("nan"), "e": "2", "n": 300, "m": [("a", 1), ("a", 2)]}


@pytest.mark.parametrize("bad", ["fail", "deadLetter"])
@pytest.mark.parametrize("sequence", [{}, *slow_cases({"sequenceColumn": "at"})])
def test_only_the_key_of_a_delete_is_looked_at(
    mysql: Cursor, mysql_url: str, table: str, bad: str, sequence: dict[str, str]
) -> None:
    """Sources say of a row that is gone whatever it held, or nothing."""
    mysql.execute(f"CREATE TABLE {table} ({NARROW})")
    options = {"key": "id", "opColumn": "op", **sequence}
    options |= {"onBadRow": bad, "deadLetter": f"{table}_bad"} if bad == "deadLetter" else {}
    schema = WIDE if sequence else WIDE.remove(WIDE.get_field_index("at"))
    query = MySqlQuery(schema, url=mysql_url, dbtable=table, **options)
    query.sink.check()

    def changed(id_: str, op: str, at: int, values: dict[str, Any]) -> dict[str, Any]:
        return {"id": id_, "op": op, "at": at, **values}

    query.run(0, [changed(id_, "I", 1, GOOD) for id_ in "abcd"])
    query.run(
        1,
        [changed("a", "D", 1, MISFIT), changed("b", "D", 1, dict.fromkeys(MISFIT))],
        [changed("c", "D", 1, MISFIT), changed("c", "I", 2, {**GOOD, "n": None})],
    )
    mysql.execute(f"SELECT id, v, x, e, n, m FROM {table} ORDER BY id")
    kept = ("abc", 0.5, "9")
    assert mysql.fetchall() == (("c", *kept, None, "{}"), ("d", *kept, 1, "{}"))
    if bad == "deadLetter":
        mysql.execute(f"SELECT * FROM {table}_bad")
        assert mysql.fetchall() == ()
        mysql.execute(f"DROP TABLE {table}_bad")
