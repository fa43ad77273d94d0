"""Change streams: inserts, updates and deletes in one epoch, in order or by a sequence."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from decimal import Decimal
from itertools import count, product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from integration.support.epochs import Make, MySqlQuery
from integration.support.histories import drawn
from integration.support.marks import slow_cases
from integration.support.mysql import Table

from pyspark_mysql.write import gathering
from sparkonce.errors import BadRow, OptionError, StoreRefused

CHANGES = pa.schema(
    [("id", pa.string()), ("op", pa.string()), ("at", pa.int64()), ("v", pa.string())]
)
MAP = pa.map_(pa.string(), pa.int64())
DEFINITION = (
    "id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY,"
    " at BIGINT, v VARCHAR(9) NOT NULL, extra INT DEFAULT 7"
)


@pytest.fixture
def make(table: Table) -> Make:
    """A query of changes, into a table whose keys are compared without case."""
    table.create(f"{DEFINITION}")

    def make(**options: str) -> MySqlQuery:
        given = {"opColumn": "op", **options}
        return table.checked(CHANGES, key="id", **given)

    return make


@pytest.fixture
def stored(table: Table) -> Callable[[], dict[str, str]]:
    def stored() -> dict[str, str]:
        return dict(table.rows("LOWER(id), v"))

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


@pytest.mark.parametrize("op", [None, "X", ""])
def test_unknown_operation_is_refused_by_name(make: Make, stored: Any, op: str | None) -> None:
    shown = "null" if op is None else repr(op)
    with pytest.raises(BadRow, match=rf"'op' holds {shown}, which is not an operation.*id='b'"):
        make().run(0, [change("a", "I"), change("b", op)])
    assert stored() == {}


def test_sequence_alone_orders_an_upsert(table: Table, stored: Any) -> None:
    table.create(f"{DEFINITION}")
    schema = pa.schema([("id", pa.string()), ("at", pa.int64()), ("v", pa.string())])
    query = table.checked(schema, key="id", sequenceColumn="AT")
    query.run(0, [{"id": "a", "at": 2, "v": "2"}], [{"id": "A", "at": 1, "v": "1"}])
    assert stored() == {"a": "2"}


def test_null_sequence_is_refused_by_name(make: Make) -> None:
    with pytest.raises(BadRow, match="Column 'at' is null"):
        make(sequenceColumn="at").run(0, [change("a", "I", "x", None)])


def test_row_that_the_target_refuses_leaves_nothing(make: Make, stored: Any) -> None:
    query = make()
    refused = r"row with id='b': .*'v' cannot be null.*no row of epoch 0 took effect"
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
    table: Table, rule: str, by: str
) -> None:
    """A row that let go of another one, which then was deleted, would be deleted with it."""
    keyed, other = "id VARCHAR(9) PRIMARY KEY", f"{table}_other"
    parent = table if by == "itself" else other
    table.create(f"{keyed}, v VARCHAR(9), at BIGINT")
    table.run(
        f"CREATE TABLE {other} ({keyed}, r VARCHAR(9),"
        f" FOREIGN KEY (r) REFERENCES {table} (id) ON DELETE CASCADE)"
    )
    query = table.checked(CHANGES, key="id", opColumn="op")
    constraint = f"FOREIGN KEY (v) REFERENCES {parent} (id) ON DELETE {rule}"
    table.run(f"ALTER TABLE {table} ADD CONSTRAINT {table}_f {constraint}")
    refused = "has a foreign key that leads back to it, with ON DELETE CASCADE or SET NULL"
    try:
        with pytest.raises(StoreRefused, match=refused):
            query.run(0, [change("a", "I", None)])
        query.sink.store.session.pool.close_idle()
        with pytest.raises(OptionError, match=refused):
            query.sink.check()
    finally:
        table.run(f"ALTER TABLE {table} DROP FOREIGN KEY {table}_f", f"DROP TABLE {other}")
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
    table: Table, bad: str, sequence: dict[str, str]
) -> None:
    """Sources say of a row that is gone whatever it held, or nothing."""
    table.create(f"{NARROW}")
    options = {"key": "id", "opColumn": "op", **sequence}
    options |= {"onBadRow": bad, "deadLetter": f"{table}_bad"} if bad == "deadLetter" else {}
    schema = WIDE if sequence else WIDE.remove(WIDE.get_field_index("at"))
    query = table.checked(schema, **options)

    def changed(id_: str, op: str, at: int, values: dict[str, Any]) -> dict[str, Any]:
        return {"id": id_, "op": op, "at": at, **values}

    query.run(0, [changed(id_, "I", 1, GOOD) for id_ in "abcd"])
    query.run(
        1,
        [changed("a", "D", 1, MISFIT), changed("b", "D", 1, dict.fromkeys(MISFIT))],
        [changed("c", "D", 1, MISFIT), changed("c", "I", 2, {**GOOD, "n": None})],
    )
    kept = ("abc", 0.5, "9")
    assert table.rows("id, v, x, e, n, m", "id") == (
        ("c", *kept, None, "{}"),
        ("d", *kept, 1, "{}"),
    )
    if bad == "deadLetter":
        assert table.count("_bad") == 0


SCHEMA = pa.schema([(name, pa.string()) for name in ("id", "op", "v", "w")] + [("at", pa.int64())])
FOLDED_COLUMNS = "v VARCHAR(9), w VARCHAR(9), at BIGINT, extra INT DEFAULT 7"


FOLDED = (
    f"id VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, {FOLDED_COLUMNS}"
)

EXACT = f"id VARBINARY(9) PRIMARY KEY, {FOLDED_COLUMNS}"
VALUES = st.one_of(st.none(), st.sampled_from("xyz"))


DRAWN_CHANGE = st.tuples(
    st.sampled_from("aAb"), st.sampled_from("IUD"), VALUES, VALUES, st.integers(0, 3)
)

EPOCHS = st.lists(st.lists(DRAWN_CHANGE, max_size=10), min_size=1, max_size=3)
Stored = dict[str, tuple[Any, ...]]
WAYS = [*product((True, False), (FOLDED,)), (True, EXACT)]
DELETED = st.lists(st.sampled_from("aAb"), max_size=2)
_numbers = count()


@pytest.fixture
def rows(table: Table) -> Callable[..., list[tuple[Any, ...]]]:
    def rows(columns: str = "*") -> list[tuple[Any, ...]]:
        return list(table.rows(f"{columns}", "1"))

    return rows


def one_by_one(
    stored: Stored, epoch: list[Any], equal: Callable[[str], str], *, sorts: bool
) -> Stored:
    """What an epoch should make of the rows of the target.

    A row that is new in the end is spelled as the last one of its key.
    """
    kept = {key: spelled for key, (spelled, *_) in stored.items()}
    # Sorting is stable: of equal sequences the later row comes last.
    for key, op, *new, at in sorted(epoch, key=lambda row: row[4] if sorts else 0):
        if op == "D":
            kept.pop(equal(key), None)
            stored.pop(equal(key), None)
            continue
        extra = stored.get(equal(key), (7,))[-1]
        stored[equal(key)] = (kept.get(equal(key), key), *new, at, extra)
    return stored


@pytest.mark.parametrize("way", [*slow_cases(*WAYS[1:]), WAYS[0]])
@given(epochs=EPOCHS, deleted=DELETED)
@example(
    epochs=[[("a", "I", "x", "y", 0)], [("a", "D", None, None, 1), ("a", "I", None, "z", 2)]],
    deleted=["A"],
)
@example(
    epochs=[[("a", "I", "x", None, 2), ("A", "I", None, "y", 3), ("a", "D", None, None, 1)]],
    deleted=[],
)
@example(
    epochs=[[("a", "I", "x", None, 1), ("A", "I", "z", "y", 3), ("a", "D", None, None, 1)]],
    deleted=["b"],
)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_an_epoch_does_what_its_changes_say_one_by_one(
    table: Table, rows: Any, way: Any, epochs: Any, deleted: Any
) -> None:
    by_sequence, definition = way
    table.run(f"DROP TABLE IF EXISTS {table}")
    table.create(f"{definition}")
    equal, kind = (str.lower, pa.string()) if definition == FOLDED else (str, pa.binary())
    target = {"url": table.url, "dbtable": table, "key": "id", "chunkRows": "3"}
    options = {"opColumn": "op"}
    if by_sequence:
        options["sequenceColumn"] = "at"
    query = MySqlQuery(SCHEMA.set(0, pa.field("id", kind)), **target, **options)
    deleting = MySqlQuery(pa.schema([("id", kind)]), **target, writeMode="delete")
    for made in (query, deleting):
        made.query_id = f"{made.query_id[:8]}{next(_numbers)}"
    expected: Stored = {}
    for epoch, changes in enumerate(epochs):
        expected = one_by_one(expected, changes, equal, sorts=by_sequence)
        made = [dict(zip(SCHEMA.names, (c[0], c[1], *c[2:]), strict=True)) for c in changes]
        query.run(epoch, made[: len(made) // 2], made[len(made) // 2 :])
        assert found(rows) == sorted(expected.values())
        # Columns that the query lacks are left alone, unless the row is deleted on the way.
        table.run(f"UPDATE {table} SET extra = 9")
        expected = {key: (*row[:-1], 9) for key, row in expected.items()}
    deleting.run(0, [{"id": key} for key in deleted])
    gone = set(map(equal, deleted))
    assert found(rows) == sorted(row for key, row in expected.items() if key not in gone)


def found(rows: Callable[..., list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    return sorted(rows("CAST(id AS CHAR), v, w, at, extra"))


def test_winners_are_deleted_and_written_some_at_a_time(
    table: Table, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "FEWEST", 3)
    monkeypatch.setattr(gathering, "MOST", 7)
    table.create(f"{FOLDED}")
    options = {"key": "id", "opColumn": "op", "sequenceColumn": "at"}
    query = table.checked(SCHEMA, **options)
    made = [
        {"id": f"{at % 50}", "op": "D" if at % 7 == 0 else "I", "v": f"{at}", "at": at // 10}
        for at in range(500)
    ]
    late = sorted(made, key=lambda row: (-row["at"], int(row["v"])))
    query.run(0, late[:200], late[200:])
    left = {row["id"]: row["v"] for row in made if row["op"] == "I" and int(row["v"]) >= 450}
    assert dict(rows("id, v")) == left


def test_epoch_may_take_longer_than_the_time_out(table: Table, rows: Any) -> None:
    """Each statement is bounded by it; the trigger stands for some millions of rows."""
    table.create(f"{FOLDED}")
    pause = "FOR EACH ROW SET @x = SLEEP(0.001)"
    table.run(f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} {pause}")
    query = table.checked(SCHEMA, key="id", opColumn="op", timeout="2")
    query.run(0, [{"id": str(n), "op": "c"} for n in range(3000)])
    assert len(rows("id")) == 3000


def test_sequence_that_the_table_lacks_is_compared_and_not_stored(table: Table, rows: Any) -> None:
    table.create("id VARCHAR(9) PRIMARY KEY, v VARCHAR(9)")
    schema = pa.schema([("id", pa.string()), ("v", pa.string()), ("lsn", pa.decimal128(20, 3))])
    query = table.checked(schema, key="id", sequenceColumn="LSN")
    late, early = (
        {"id": "a", "v": v, "lsn": Decimal(n)} for v, n in (("late", "1.002"), ("old", "1.001"))
    )
    query.run(0, [late, early], [early])
    query.run(1, [{"id": "b", "v": "first", "lsn": 0}, {"id": "b", "v": "x", "lsn": -1}])
    assert rows() == [("a", "late"), ("b", "first")]


def test_sequence_is_compared_as_the_query_has_it_not_as_the_table_keeps_it(
    table: Table, rows: Any
) -> None:
    """The column cuts the fractions by which the rows differ."""
    table.create("id BIGINT PRIMARY KEY, ts DATETIME, v VARCHAR(9)")
    schema = pa.schema([("id", pa.int64()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.string())])
    query = table.checked(schema, key="id", sequenceColumn="ts")
    at = datetime.datetime(2024, 5, 6, 7, 8, 9, 900_000, datetime.timezone.utc)
    earlier = at.replace(microsecond=100_000)
    query.run(0, [{"id": 1, "ts": at, "v": "last"}, {"id": 1, "ts": earlier, "v": "first"}])
    assert rows() == [(1, datetime.datetime(2024, 5, 6, 7, 8, 9), "last")]


def test_sequence_that_is_missing_in_the_query_is_refused(table: Table) -> None:
    query = table.query(SCHEMA, key="id", sequenceColumn="att")
    with pytest.raises(OptionError, match="did you mean 'at'"):
        query.sink.check()


def test_generated_columns_follow_what_is_written(table: Table, rows: Any) -> None:
    table.run(
        f"CREATE TABLE {table} (n INT AUTO_INCREMENT UNIQUE, id VARCHAR(9) PRIMARY KEY,"
        " twice BIGINT AS (at * 2) STORED, shown VARCHAR(20) AS (CONCAT(id, v)) VIRTUAL,"
        " v VARCHAR(9), w VARCHAR(9), at BIGINT)"
    )
    options = {"key": "id", "opColumn": "op", "sequenceColumn": "at"}
    query = table.checked(SCHEMA, **options)
    a, b = ({"id": key, "op": "I", "v": "v", "at": at} for key, at in (("a", 1), ("b", 2)))
    query.run(0, [a, b])
    query.run(1, [{**a, "op": "D", "at": 3}, {**b, "at": 4, "v": "w"}])
    assert rows("id, twice, shown") == [("b", 8, "bw")]


@pytest.mark.parametrize("options", [{"opColumn": "op"}, {"sequenceColumn": "at"}])
def test_long_keys_that_begin_alike_are_told_apart(
    mysql_name: str, table: Table, rows: Any, options: dict[str, str]
) -> None:
    """By itself MariaDB compares no more than 1024 bytes of a TEXT, which can be a key there."""
    key = "TEXT UNIQUE NOT NULL" if mysql_name == "mariadb" else "VARCHAR(760) PRIMARY KEY"
    table.create(f"id {key}, v INT")
    columns = {"id": pa.string(), "op": pa.string(), "v": pa.int32(), "at": pa.int32()}
    unused = "at" if "opColumn" in options else "op"
    schema = pa.schema([column for column in columns.items() if column[0] != unused])
    query = table.checked(schema, key="id", **options)
    made = [{"id": "ü" * 750 + str(n % 7), "op": "u", "v": n, "at": n} for n in range(500)]
    query.run(0, made)
    last = {row["id"][750:]: row["v"] for row in made}
    assert dict(rows("SUBSTR(id, 751), v")) == last


@pytest.mark.parametrize("sequence", [{}, {"sequenceColumn": "at"}])
@pytest.mark.parametrize("hot", [False, True])
def test_repeated_keys_cost_little(
    table: Table, rows: Any, hot: bool, sequence: dict[str, str]
) -> None:
    """It takes 0.3 to 1 s, and 10 s where a server looks at all rows of a key for each of them."""
    table.create("id BIGINT PRIMARY KEY, v VARCHAR(9), at BIGINT")
    schema = SCHEMA.set(0, pa.field("id", pa.int64())).remove(3)
    query = table.checked(schema, key="id", opColumn="op", **sequence)
    keys = 7 if hot else 20_000
    made = pa.table(
        {
            "id": [n % keys for n in range(40_000)],
            "op": ["d" if n % 5 == 0 else "u" for n in range(40_000)],
            "v": ["x"] * 40_000,
            "at": range(40_000),
        },
        schema,
    )
    receipts = query.stage_batches(0, made.to_batches())
    began = time.monotonic()
    query.commit(0, receipts)
    assert time.monotonic() - began < 6
    kept = sum((40_000 - keys + n) % 5 > 0 for n in range(keys))
    assert rows("COUNT(*)") == [(kept,)]


def test_sequence_alone_needs_no_right_to_delete(table: Table, rows: Any) -> None:
    table.create(f"{FOLDED}")
    table.run(f"CREATE USER {table} IDENTIFIED BY 'pw'")
    table.run(f"GRANT CREATE, CREATE TEMPORARY TABLES ON *.* TO {table}")
    table.run(f"GRANT SELECT, INSERT, UPDATE ON {table} TO {table}")
    for name in ("ledger", "log"):
        table.run(f"GRANT SELECT, INSERT, UPDATE, DELETE ON sparkonce_{name} TO {table}")
    schema = pa.schema([field for field in SCHEMA if field.name != "op"])
    url = table.url.replace("root", f"{table}:pw", 1)
    query = table.checked(schema, url=url, key="id", sequenceColumn="at")
    query.run(0, [{"id": "a", "v": "2", "at": 2}, {"id": "a", "v": "1", "at": 1}])
    assert rows("id, v") == [("a", "2")]


HISTORY = pa.schema([("id", pa.int64()), ("name", pa.string()), ("op", pa.string())])


@pytest.mark.parametrize("seed", [0, 1, *slow_cases(*range(2, 40))])
def test_a_truncate_empties_the_table_in_its_place(table: Table, seed: int) -> None:
    history = drawn(seed, "")
    table.create("id BIGINT PRIMARY KEY, name VARCHAR(9)")
    query = table.query(HISTORY, key="id", opColumn="op", chunkRows=str(1 + seed % 5))
    for epoch, parts in enumerate(history.epochs):
        found = [[{name: one[name] for name in HISTORY.names} for one in part] for part in parts]
        query.run(epoch, *found)
    assert dict(table.rows("id, name")) == history.stored[""]


def test_a_truncate_with_a_sequence_is_refused(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY, name VARCHAR(9)")
    query = table.query(HISTORY, key="id", opColumn="op", sequenceColumn="id")
    with pytest.raises(OptionError, match="'t', a TRUNCATE or DROP"):
        query.stage(0, [{"id": None, "name": None, "op": "t"}])


def test_a_truncate_takes_effect_only_with_its_epoch(table: Table) -> None:
    table.create("id BIGINT PRIMARY KEY, name VARCHAR(2) NOT NULL")
    query = table.query(HISTORY, key="id", opColumn="op")
    query.run(0, [{"id": 1, "name": "a", "op": "c"}])
    with pytest.raises(BadRow):
        query.run(
            1,
            [
                {"id": None, "name": None, "op": "t"},
                {"id": 2, "name": "too long", "op": "c"},
            ],
        )
    assert table.stored() == [(1, "a")]
