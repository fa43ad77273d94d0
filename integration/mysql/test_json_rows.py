"""Rows that are JSON objects, by option rowColumn: whole databases, whose tables differ."""

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

from sparkonce.errors import BadRow, OptionError

pytestmark = pytest.mark.variants
SCHEMA = pa.schema([(name, pa.string()) for name in ("t", "op", "row", "more")])
FORM = "id BIGINT PRIMARY KEY, v VARCHAR(9) DEFAULT 'new', n INT DEFAULT 7"
Into = Callable[..., MySqlQuery]


def change(t: str, row: Any, op: str = "u") -> dict[str, Any]:
    text = row if row is None or isinstance(row, str) else json.dumps(row)
    return {"t": t, "op": op, "row": text, "more": "not stored"}


@pytest.fixture
def into(table: Table) -> Into:
    """A checked query of changes into the tables of this name and a suffix."""

    def make(**options: str) -> MySqlQuery:
        given = {"opColumn": "op", "rowColumn": "row", "dbtable": f"{table}_{{t}}", **options}
        return table.checked(SCHEMA, **{name: value for name, value in given.items() if value})

    return make


def create(table: Table, suffix: str, form: str = FORM) -> None:
    table.run(f"CREATE TABLE `{table}_{suffix}` ({form})")


def stored(table: Table, suffix: str) -> list[tuple[Any, ...]]:
    return sorted(table.run(f"SELECT * FROM `{table}_{suffix}`"), key=str)


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 12))])
def test_rows_with_drawn_members_change_what_they_have(table: Table, into: Into, seed: int) -> None:
    """A column that a row lacks keeps its value, or gets its default; a null is written."""
    chance, names = random.Random(seed), "ab"
    for name in names:
        create(table, name)
    query = into(chunkRows=str(chance.randrange(1, 6)))
    wanted = {name: dict[int, dict[str, Any]]() for name in names}
    for epoch in range(5):
        rows = []
        for _ in range(chance.randrange(12)):
            name, id_ = chance.choice(names), chance.randrange(3)
            row: dict[str, Any] = {"id": id_}
            if chance.random() < 0.7:
                row["v"] = chance.choice([None, "", '"n":', "\\n", "é"])
            if chance.random() < 0.7:
                row[chance.choice("nN")] = chance.choice([None, 1, -5])
            members = [*row.items()]
            chance.shuffle(members)
            op = chance.choice("uuuuidt")
            text = json.dumps(dict(members), indent=chance.choice([None, 1]))
            deletes = [text, json.dumps({"id": id_}), json.dumps({"id": id_, "gone": [1]})]
            rows.append(change(name, chance.choice(deletes) if op == "d" else text, op))
            if op == "t":
                wanted[name].clear()
            elif op == "d":
                wanted[name].pop(id_, None)
            else:
                new = {"v": "new", "n": 7, **wanted[name].get(id_, {})}
                wanted[name][id_] = {**new, **{key.lower(): to for key, to in row.items()}}
        late = twin(query)
        query.run(epoch, rows)
        late.run(epoch, [change("a", {"id": 1, "v": "late"})])
    for name in names:
        found = {id_: {"id": id_, "v": v, "n": n} for id_, v, n in stored(table, name)}
        assert found == wanted[name], name


def test_delete_and_new_row_in_one_epoch_gives_defaults_again(table: Table, into: Into) -> None:
    create(table, "a")
    query = into()
    query.run(0, [change("a", {"id": 1, "v": "old", "n": 1})])
    query.run(1, [change("a", {"id": 1}, "d"), change("a", {"id": 1, "v": "x"})])
    assert stored(table, "a") == [(1, "x", 7)]


def test_key_is_that_of_each_table(table: Table, into: Into) -> None:
    create(table, "a", "id INT, k INT, v INT, PRIMARY KEY (k)")
    create(table, "b", "id INT, k INT, v INT, PRIMARY KEY (id, k)")
    row = {"id": 1, "k": 1, "v": 1}
    rows = [change(name, {**row, "id": id_}) for name in "ab" for id_ in (1, 2)]
    into().run(0, rows)
    assert (stored(table, "a"), stored(table, "b")) == ([(2, 1, 1)], [(1, 1, 1), (2, 1, 1)])
    create(table, "c", "id INT, v INT")
    with pytest.raises(OptionError, match="key"):
        into(sinkId="s").run(0, [change("c", {"id": 1, "v": 1})])


@pytest.mark.parametrize("key", ["OrderID", "id", "ID"])
@pytest.mark.parametrize("spelled", ["OrderID", "ID", "id"])
def test_delete_is_done_however_its_key_is_spelled(
    table: Table, into: Into, key: str, spelled: str
) -> None:
    create(table, "a", f"{key} BIGINT PRIMARY KEY, v VARCHAR(9)")
    spelled = key if key == "OrderID" or spelled == "OrderID" else spelled
    query = into()
    query.run(0, [change("a", {key: at, "v": "x"}) for at in (1, 2, 3)])
    query.run(1, [change("a", {spelled: 1}, "d")])
    query.run(2, [change("a", {key: 4, "v": "x"}), change("a", {spelled: 2, "gone": 1}, "d")])
    assert [id_ for id_, _ in stored(table, "a")] == [3, 4]


def test_column_with_the_name_of_the_operations_keeps_its_own_values(
    table: Table, into: Into
) -> None:
    create(table, "a", "op VARCHAR(9) PRIMARY KEY, v INT")
    query = into()
    query.run(0, [change("a", {"op": name, "v": 1}) for name in ("k1", "k2", "k3")])
    query.run(1, [change("a", {"op": "k2"}, "d"), change("a", {"op": "k3", "v": 3})])
    assert stored(table, "a") == [("k1", 1), ("k3", 3)]


def test_row_without_a_column_that_needs_a_value_is_put_aside(table: Table, into: Into) -> None:
    create(table, "a", "id BIGINT PRIMARY KEY, v VARCHAR(9) NOT NULL, n INT")
    query = into(onBadRow="deadLetter", deadLetter=f"{table}_bad")
    rows = [{"id": 2, "v": "x"}, {"id": 3}, {"id": 1, "n": 5}]
    query.run(0, [change("a", row) for row in rows])
    query.run(1, [change("a", {"id": 2}, "d")])
    reasons = table.run(f"SELECT reason FROM {table}_bad")
    assert (len(reasons), stored(table, "a")) == (2, [])
    assert all("lacks 'v'" in reason for (reason,) in reasons)


def test_invisible_columns_are_written(table: Table, into: Into) -> None:
    create(table, "a", "id BIGINT PRIMARY KEY, v INT, h INT INVISIBLE DEFAULT 4")
    rows = [{"id": 1, "v": 1}, {"id": 2, "v": 2, "h": 5}]
    into().run(0, [change("a", row) for row in rows])
    assert table.run(f"SELECT id, h FROM {table}_a ORDER BY 1") == ((1, 4), (2, 5))


@pytest.mark.parametrize("key", ["ID", "g", "lacks"])
def test_option_key_names_a_column_of_the_table(table: Table, into: Into, key: str) -> None:
    create(table, "a", "id BIGINT PRIMARY KEY, g INT AS (id + 1) STORED UNIQUE, v INT")
    query = into(key=key)
    if key == "ID":
        query.run(0, [change("a", {"id": 1, "v": 2})])
        assert stored(table, "a") == [(1, 2, 2)]
        return
    with pytest.raises(OptionError, match=f"Option key names column '{key}'"):
        query.run(0, [change("a", {"id": 1, "v": 2})])


def test_column_with_a_reserved_name_is_refused(table: Table, into: Into) -> None:
    create(table, "a", "id BIGINT PRIMARY KEY, sparkonce_row INT")
    with pytest.raises(OptionError, match="'sparkonce_row' has a name that the connector needs"):
        into().run(0, [change("a", {"id": 1, "sparkonce_row": 9})])


def test_time_that_the_server_rejects_can_be_written_again(table: Table, into: Into) -> None:
    create(table, "a", "id BIGINT PRIMARY KEY, v TIME(2), CHECK (v > '00:00:00')")
    query = into(onBadRow="deadLetter", deadLetter=f"{table}_bad")
    query.run(0, [change("a", {"id": 1, "v": "-112:30:01.25"})])
    ((row,),) = table.run(f"SELECT row_data FROM {table}_bad")
    assert json.loads(json.loads(row)["row"]) == {"id": 1, "v": "-112:30:01.25"}


def test_columns_that_the_server_computes_are_left_out(table: Table, into: Into) -> None:
    create(table, "a", "id INT PRIMARY KEY, g INT GENERATED ALWAYS AS (id + 1) STORED, v INT")
    into().run(0, [change("a", {"id": 1, "g": 5, "v": 1})])
    assert stored(table, "a") == [(1, 2, 1)]


BAD = [None, "", "x", "[1]", "1", '{"id":1} x', '{"id":1},"x":{}', '{"id":"a"}', '{"id":1.5}']
BAD += ['{"v":"no key"}', '{"id":null}', '{"id":3,"lacks":1}', '{"id":3,"v":"longer than 9"}']
BAD += ['{"id":3,"n":99999999999}', '{"id":3,"id":4}', '{"id":3,"ID":3}', "{}"]
BAD += ['{"id":3,"v":' + "[" * 9999]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("op", ["op", ""])
def test_row_that_does_not_fit_is_put_aside_as_it_came(
    table: Table, into: Into, bad: str | None, op: str
) -> None:
    create(table, "a")
    aside = {"onBadRow": "deadLetter", "deadLetter": f"{table}_bad", "opColumn": op}
    rows = [change("a", {"id": 1, "v": "x"}), change("a", bad), change("a", {"id": 2, "v": "x"})]
    into(**aside).run(0, rows)
    ((row,),) = table.run(f"SELECT row_data FROM {table}_bad")
    found = json.loads(row)
    assert {name: found[name] for name in ("t", "op")} == {"t": "a", "op": "u"} or not op
    assert found["row"] == bad or json.loads(found["row"]) == json.loads(bad or "")
    assert table.run(f"SELECT partition_id FROM {table}_bad") == ((0,),)
    assert [id_ for id_, *_ in stored(table, "a")] == [1, 2]
    with pytest.raises((BadRow, OptionError)):
        into(sinkId="other", opColumn=op).run(0, rows)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dbtable": "{table}_a"}, "rowColumn needs a template"),
        ({"dbtable": "{table}_{t}{more}"}, "rowColumn needs a template of one column"),
        ({"createTable": "true"}, "rowColumn and createTable"),
        ({"sequenceColumn": "more"}, "rowColumn and sequenceColumn"),
        ({"writeMode": "increment", "opColumn": "", "key": "id"}, "rowColumn and writeMode"),
        ({"rowColumn": "lacks"}, "'lacks'"),
    ],
)
def test_options_that_contradict_it_are_refused(
    table: Table, into: Into, given: dict[str, str], said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        into(**{name: value.replace("{table}", table) for name, value in given.items()})
