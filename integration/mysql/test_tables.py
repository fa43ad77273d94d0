"""Rows of one query in several tables, by a template in option dbtable: all in one transaction."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import Table, twin

from sparkonce.errors import BadRow, OptionError, StoreRefused, StoreUnsafe

pytestmark = pytest.mark.variants
SCHEMA = pa.schema(
    [("t", pa.string()), ("op", pa.string()), ("id", pa.int64()), ("v", pa.string())]
)
FORM = "id BIGINT PRIMARY KEY, v VARCHAR(9)"
Into = Callable[..., MySqlQuery]


def change(t: str | None, id_: int | None, v: str | None = "x", op: str = "u") -> dict[str, Any]:
    return {"t": t, "op": op, "id": id_, "v": v}


@pytest.fixture
def into(table: Table) -> Into:
    """A checked query of changes into the tables of this name and a suffix."""

    def make(**options: str) -> MySqlQuery:
        given = {"key": "id", "opColumn": "op", "dbtable": f"{table}_{{t}}", **options}
        return table.checked(SCHEMA, **{name: value for name, value in given.items() if value})

    return make


def create(table: Table, *suffixes: str, form: str = FORM) -> None:
    for suffix in suffixes:
        table.run(f"CREATE TABLE `{table}_{suffix}` ({form})")


def stored(table: Table, suffix: str) -> list[tuple[Any, ...]]:
    return sorted(table.run(f"SELECT * FROM `{table}_{suffix}`"))


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 10))])
def test_each_table_gets_its_rows_once_whatever_is_sent_again(
    table: Table, into: Into, seed: int
) -> None:
    """Drawn writes, deletes and emptyings, in drawn chunks, with epochs that are sent again."""
    chance, names = random.Random(seed), "abcd"
    create(table, *names)
    query = into(chunkRows=str(chance.randrange(1, 5)))
    wanted = {name: dict[int, str | None]() for name in names}
    for epoch in range(6):
        rows = []
        for _ in range(chance.randrange(12)):
            name, id_ = chance.choice(names), chance.randrange(4)
            op = chance.choice("uuuidst")
            v = chance.choice([None, "", f"e{epoch}", "'\\`"])
            rows.append(change(name, id_, v, op))
            if op == "t":
                wanted[name].clear()
            elif op == "d":
                wanted[name].pop(id_, None)
            elif op != "s":
                wanted[name][id_] = v
        late = twin(query)
        query.run(epoch, rows)
        late.run(epoch, [change("a", 1, "late")])
    for name in names:
        assert stored(table, name) == sorted(wanted[name].items()), name


def test_epoch_takes_effect_in_all_tables_or_in_none(table: Table, into: Into) -> None:
    create(table, "a", "b")
    table.run(f"ALTER TABLE {table}_b ADD CONSTRAINT CHECK (v <> 'bad')")
    query = into()
    query.run(0, [change("a", 1), change("b", 1)])
    with pytest.raises(BadRow, match="can't store the row with id=2"):
        query.run(1, [change("a", 2), change("b", 2, "bad")])
    assert stored(table, "a") == stored(table, "b") == [(1, "x")]
    query.restart()
    query.run(1, [change("a", 3), change("b", 3)])
    assert stored(table, "a") == stored(table, "b") == [(1, "x"), (3, "x")]


@pytest.mark.parametrize(
    ("bad", "error", "said"),
    [
        (None, OptionError, r"_b does not exist.*createTable"),
        ("id BIGINT, v VARCHAR(9)", OptionError, "key='id' is not a unique key"),
        ("id BIGINT PRIMARY KEY", OptionError, r"'v'"),
        ("id BIGINT PRIMARY KEY, v INT", OptionError, "'v'"),
        (f"{FORM}) ENGINE=MyISAM COMMENT='", StoreUnsafe, "MyISAM"),
    ],
)
def test_table_that_does_not_fit_stops_the_epoch_before_its_decision(
    table: Table, into: Into, bad: str | None, error: type[Exception], said: str
) -> None:
    create(table, "a")
    if bad and "COMMENT" in bad:
        table.run(f"CREATE TABLE {table}_b ({FORM}) ENGINE=MyISAM")
    elif bad:
        create(table, "b", form=bad)
    query = into()
    with pytest.raises(error, match=said):
        query.run(0, [change("a", 1), change("b", 1)])
    query.restart()
    assert stored(table, "a") == []
    query.run(0, [change("a", 2)])
    assert stored(table, "a") == [(2, "x")]


@pytest.mark.parametrize(
    "altering",
    ["MODIFY v VARCHAR(3)", "DROP PRIMARY KEY", "DROP COLUMN v", "RENAME TO {}_c", "ENGINE=MyISAM"],
)
def test_table_that_is_altered_between_check_and_decision_stops_the_epoch(
    table: Table, into: Into, altering: str
) -> None:
    create(table, "a", "b")
    query = into()
    receipts = query.stage(0, [change("a", 1), change("b", 1, "four")])
    table.run(f"ALTER TABLE {table}_b {altering.format(table)}")
    with pytest.raises((StoreRefused, StoreUnsafe), match=r"restart the query|engine"):
        query.commit(0, receipts)
    assert stored(table, "a") == []


def test_missing_tables_are_created_without_the_columns_that_name_them(
    table: Table, into: Into
) -> None:
    query = into(createTable="true")
    query.run(0, [change("a", 1), change("b", 1), change("c", 0, op="s")])
    query.run(1, [change("a", 1, op="d"), change("d", 2)])
    assert [stored(table, name) for name in "abd"] == [[], [(1, "x")], [(2, "x")]]
    names = table.run(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
        f" AND table_name LIKE '{table}%'"
    )
    assert sorted(name for (name,) in names) == [f"{table}_{name}" for name in "abd"]


def test_column_that_names_a_table_is_stored_where_the_table_has_it(
    table: Table, into: Into
) -> None:
    create(table, "a")
    create(table, "b", form=f"t VARCHAR(9) NOT NULL, {FORM}")
    into().run(0, [change("a", 1), change("b", 1)])
    assert (stored(table, "a"), stored(table, "b")) == ([(1, "x")], [("b", 1, "x")])


BAD = [None, "", ".", "a.b.c", "x" * 65, "ends ", "😀", "sparkonce_x", "{table}_bad"]


@pytest.mark.parametrize("name", BAD)
def test_row_without_a_valid_table_is_put_aside(table: Table, into: Into, name: str | None) -> None:
    create(table, "a")
    name = name and name.replace("{table}", table)
    given = {"dbtable": "{t}", "onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    rows = [change(f"{table}_a", 1), change(name, 2), change(f"{table}_a", 3)]
    into(**given).run(0, rows)
    ((row, reason),) = table.run(f"SELECT row_data, reason FROM {table}_bad")
    assert json.loads(row) == rows[1]
    assert "no target" in reason
    assert stored(table, "a") == [(1, "x"), (3, "x")]
    if name != f"{table}_bad":
        with pytest.raises(BadRow, match=r"no target.*id=2"):
            into(dbtable="{t}", sinkId="other").run(0, rows)


def test_row_that_the_server_rejects_is_put_aside_with_its_table(table: Table, into: Into) -> None:
    create(table, "a", "b")
    table.run(f"ALTER TABLE {table}_b ADD CONSTRAINT CHECK (v <> 'bad')")
    query = into(onBadRow="deadLetter", deadLetter=f"{table}_bad")
    query.run(0, [change("b", 1, "bad"), change("a", 1, "bad"), change("b", 2)])
    ((row,),) = table.run(f"SELECT row_data FROM {table}_bad")
    assert json.loads(row) == change("b", 1, "bad")
    assert (stored(table, "a"), stored(table, "b")) == ([(1, "bad")], [(2, "x")])


@pytest.mark.parametrize("given", [{"key": "", "opColumn": ""}, {"writeMode": "delete"}])
def test_other_write_modes(table: Table, into: Into, given: dict[str, str]) -> None:
    create(table, "a", "b")
    for name in "ab":
        table.run(f"INSERT INTO {table}_{name} VALUES (1, 'old'), (2, 'old')")
    query = into(**{"opColumn": "", **given})
    appends = "key" in given
    if appends:
        create(table, "c", form="op VARCHAR(9), id BIGINT, v VARCHAR(9)")
        query.run(0, [change("c", 1), change("c", 1)])
        assert stored(table, "c") == [("u", 1, "x")] * 2
    else:
        query.run(0, [change("a", 1), change("b", 2)])
        assert (stored(table, "a"), stored(table, "b")) == ([(2, "old")], [(1, "old")])


def test_names_may_have_the_database(table: Table, into: Into) -> None:
    database = table.run("SELECT DATABASE()")[0][0]
    create(table, "a")
    into(dbtable="{t}").run(0, [change(f"{database}.{table}_a", 1), change(f"{table}_a", 2)])
    query = into(dbtable=f"{database}.{table}_{{t}}", sinkId="second")
    query.run(0, [change("a", 3)])
    assert stored(table, "a") == [(1, "x"), (2, "x"), (3, "x")]


@pytest.mark.parametrize("between", ["u", "d", "t"])
def test_rows_of_a_table_keep_their_order_under_two_names(
    table: Table, into: Into, between: str
) -> None:
    database = table.run("SELECT DATABASE()")[0][0]
    create(table, "a")
    short, full = f"{table}_a", f"{database}.{table}_a"
    rows = [change(short, 1, "1"), change(full, 1, "2", between), change(short, 1, "3")]
    into(dbtable="{t}").run(0, rows)
    assert stored(table, "a") == [(1, "3")]


def test_letters_have_all_columns_of_a_template(table: Table) -> None:
    """The server rejects rows long after the template has made their names."""
    schema = pa.schema(
        [("a", pa.string()), ("day", pa.date32()), ("id", pa.int64()), ("v", pa.string())]
    )
    aside = {"key": "id", "onBadRow": "deadLetter", "deadLetter": f"{table}_bad"}
    rows = [{"a": "x", "day": 20000, "id": id_, "v": "bad"} for id_ in (1, 2)]
    named = {"dbtable": f"{table}_{{a}}_{{day:yyyy}}", **aside}
    table.checked(schema, createTable="true", **named).run(0, [{**rows[0], "v": "good"}])
    name = f"{table}_x_2024"
    assert [row[0] for row in table.run(f"SHOW COLUMNS FROM {name}")] == ["a", "day", "id", "v"]
    table.run(f"ALTER TABLE {name} ADD CHECK (v <> 'bad')")
    table.checked(schema, sinkId="s", **named).run(0, rows)
    letters = table.run(f"SELECT row_data FROM {table}_bad")
    assert [json.loads(row)["a"] for (row,) in letters] == ["x", "x"]
    assert {json.loads(row)["day"] for (row,) in letters} == {"2024-10-04"}


def test_dates_make_names(table: Table) -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("id", pa.int64())])
    given = {"dbtable": f"{table}_{{at:yyyyMM}}", "createTable": "true", "key": "id"}
    table.checked(schema, **given).run(0, [{"at": 1_700_000_000_000_000, "id": 1}])
    assert [id_ for _, id_ in stored(table, "202311")] == [1]


@pytest.mark.parametrize("columns", ["id", "v"])
def test_tables_that_a_foreign_key_links_are_refused(
    table: Table, into: Into, columns: str
) -> None:
    create(table, "a", "b")
    table.run(
        f"ALTER TABLE {table}_a MODIFY v BIGINT"
        if columns == "v"
        else f"ALTER TABLE {table}_a COMMENT ''",
        f"ALTER TABLE {table}_a ADD FOREIGN KEY ({columns}) REFERENCES {table}_b (id)",
    )
    query = into()
    for name in "ab" if columns == "id" else "b":
        with pytest.raises(OptionError, match="A foreign key links"):
            query.run(0, [change(name, 1)])
    table.run(f"DROP TABLE {table}_a")
    query.run(0, [change("b", 1)])


@pytest.mark.parametrize("between", [0, 1])
def test_tables_whose_rows_follow_through_another_are_refused(
    table: Table, into: Into, between: int
) -> None:
    create(table, "a")
    cascade = "ON DELETE CASCADE"
    parent = f"{table}_a"
    for at in range(between):
        table.run(
            f"CREATE TABLE {table}x{at} (id BIGINT PRIMARY KEY, p BIGINT,"
            f" FOREIGN KEY (p) REFERENCES {parent} (id) {cascade})"
        )
        parent = f"{table}x{at}"
    create(table, "b", form=f"{FORM}, p BIGINT, FOREIGN KEY (p) REFERENCES {parent} (id) {cascade}")
    with pytest.raises(OptionError, match="A foreign key links"):
        into().run(0, [change("a", 1)])


def test_tables_of_one_name_that_a_foreign_key_links_are_refused(table: Table, into: Into) -> None:
    database = table.run("SELECT DATABASE()")[0][0]
    create(table, "a")
    other = f"{table}_db"
    table.run(f"CREATE DATABASE {other}")
    linked = f"p BIGINT, FOREIGN KEY (p) REFERENCES {database}.{table}_a (id)"
    table.run(f"CREATE TABLE {other}.{table}_a ({FORM}, {linked})")
    for one in (database, other):
        with pytest.raises(OptionError, match="A foreign key links"):
            into(dbtable="{t}").run(0, [change(f"{one}.{table}_a", 1)])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"atomicity": "chunk", "opColumn": ""}, "atomicity=chunk and a template"),
        ({"dbtable": "x_{lacks}"}, "'lacks'"),
        ({"dbtable": "x_{id:yyyy}"}, "date or timestamp needs a format"),
        ({"dbtable": "x_{t"}, "balanced braces|backticks"),
        ({"dbtable": "a.b.{t}"}, "orders, shop.orders"),
    ],
)
def test_options_that_contradict_it_are_refused(
    into: Into, given: dict[str, str], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        into(**given)


def test_name_with_braces_between_backticks_is_one_table(table: Table) -> None:
    create(table, "{t}")
    with pytest.raises(OptionError, match="Column 't' of the query is not in the table"):
        table.checked(SCHEMA, dbtable=f"`{table}_{{t}}`", key="id", opColumn="op")
