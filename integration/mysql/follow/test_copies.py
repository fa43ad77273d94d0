"""A database that is followed and copied by the sink: every table equals its copy."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql import each_epoch, feed, read, twin
from integration.support.mysql_drawn_columns import SIMPLE
from pymysql.cursors import Cursor
from tools.chaos.shop import Shop

from pyspark_mysql.follow.rows_as_json import SCHEMA

SHOWN = {
    "UUID": ["'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"],
    "INET4": ["'1.2.3.0'", "'0.0.0.0'"],
    "INET6": ["'::'", "'2001:db8::'", "'::ffff:1.2.3.4'"],
}
"""Types of MariaDB that its log has as bytes."""


@pytest.fixture(autouse=True)
def full(set_global: Callable[[str, object], None]) -> None:
    set_global("binlog_row_metadata", "FULL")


@pytest.fixture
def shop(mysql: Cursor, unique: str) -> Iterator[tuple[str, str]]:
    """A database, and one for the copies."""
    both = f"{unique}", f"{unique}_copy"
    for one in both:
        mysql.execute(f"CREATE DATABASE {one}")
    yield both
    for one in both:
        mysql.execute(f"DROP DATABASE {one}")


def renamed(changes: pa.Table, names: tuple[str, str]) -> list[pa.RecordBatch]:
    """The changes, for the database of the copies."""
    tables = pc.replace_substring(changes["_table"], f"{names[0]}.", f"{names[1]}.")
    place = changes.schema.get_field_index("_table")
    return changes.set_column(place, "_table", tables).combine_chunks().to_batches()


def _kinds(mysql: Cursor) -> dict[str, str]:
    """The types of the server by names of tables. The sink refuses columns that round."""
    kinds = {f"t{at}": one for at, one in enumerate(SIMPLE) if one != "DOUBLE(10,2)"}
    kinds |= {one: f"VARCHAR(9) CHARACTER SET {one}" for one in ("gbk", "sjis")}
    mysql.execute("SELECT VERSION()")
    is_mariadb = "MariaDB" in str(mysql.fetchall())
    return kinds | ({kind.lower(): kind for kind in SHOWN} if is_mariadb else {})


def _copying(url: str, ledger: str, rows_of_chunk: str) -> MySqlQuery:
    """A query that writes the rows of a change stream to the tables that they name."""
    return MySqlQuery(
        SCHEMA,
        url=url,
        dbtable="{_table}",
        rowColumn="_row",
        opColumn="_op",
        ledgerSchema=ledger,
        chunkRows=rows_of_chunk,
    )


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 6))])
def test_tables_of_every_type_equal_their_copies(
    url: str, mysql: Cursor, shop: tuple[str, str], seed: int
) -> None:
    chance, kinds = random.Random(seed), _kinds(mysql)
    mysql.execute("SET SESSION time_zone = '+00:00'")
    for database, (name, kind) in product(shop, kinds.items()):
        mysql.execute(f"CREATE TABLE {database}.{name} (id INT PRIMARY KEY, v {kind})")
    made = feed(url, f"{shop[0]}.*")
    begin = made.begin()
    query = _copying(url, shop[1], str(chance.choice([7, 1000])))
    number = 0
    for _ in range(3):
        for name, kind in chance.sample([*kinds.items()], len(kinds)):
            values = [*(SIMPLE | SHOWN).get(kind, ["'日本 a'", "'a'", "''"]), "NULL"]
            for _ in range(chance.randrange(1, 6)):
                id_, value = chance.randrange(5), chance.choice(values)
                table = f"{shop[0]}.{name}"
                mysql.execute(
                    chance.choice(
                        [
                            f"REPLACE INTO {table} VALUES ({id_}, {value})",
                            f"UPDATE IGNORE {table} SET v = {value} WHERE id <> {id_}",
                            f"DELETE FROM {table} WHERE id = {id_}",
                        ]
                    )
                )
        for epoch in each_epoch(made, begin, chance.choice([None, 10])):
            query.commit(number, query.stage_batches(number, renamed(read(made, *epoch), shop)))
            number, begin = number + 1, epoch[1]
    different = {}
    for name, kind in kinds.items():
        both: list[Any] = []
        for database in shop:
            mysql.execute(f"SELECT id, v, CAST(v AS BINARY) FROM {database}.{name} ORDER BY id")
            both.append(mysql.fetchall())
        if both[0] != both[1]:
            different[kind] = both
    assert not different


@pytest.mark.parametrize("seed", [1, *slow_cases(*range(2, 9))])
def test_a_database_that_is_altered_meanwhile_equals_its_copy(
    url: str, mysql: Cursor, shop: tuple[str, str], seed: int
) -> None:
    """With drawn statements, restarts of the stream, tasks that run twice, and late drivers."""
    chance, source, copy = random.Random(seed), *shop
    drawn = Shop(chance, source, copy)

    def run(*statements: str) -> None:
        for one in statements:
            mysql.execute(one)

    def stream() -> Any:
        return feed(
            url,
            f"{source}.*",
            startingPosition="snapshot",
            onSchemaChange="continue",
            onTruncate="row",
        )

    run(*drawn.tables_of_both(), *(drawn.change() for _ in range(60)))
    query = _copying(url, copy, "9")
    made, number = stream(), 0
    position = made.begin()
    for step in range(12):
        if step > 3:  # each table has its snapshot
            run(*(drawn.alteration() if chance.random() < 0.5 else ()))
        run(*(drawn.change() for _ in range(chance.randrange(1, 9))))
        while (end := made.advance(position, made.latest(), chance.choice([None, 40]))) != position:
            rows = renamed(read(made, position, end), shop)
            if chance.random() < 0.3:  # the driver dies, and the next one reads the epoch again
                query.stage_batches(number, rows)
                run(*(drawn.change() for _ in range(3)))
                made = stream()
                again = renamed(read(made, position, end), shop)
                assert sorted(map(str, _rows(again))) == sorted(map(str, _rows(rows)))
                query.restart()
                rows = again
            late = twin(query)
            query.commit(number, query.stage_batches(number, rows))
            if chance.random() < 0.3:
                late.commit(number, late.stage_batches(number, []))
            position, number = end, number + 1
    for name in drawn.tables:
        mysql.execute(f"SELECT * FROM {source}.{name} ORDER BY id")
        columns = [one[0] for one in mysql.description]
        wanted = mysql.fetchall()
        mysql.execute(f"SELECT {', '.join(columns)} FROM {copy}.{name} ORDER BY id")
        assert mysql.fetchall() == wanted, name


def _rows(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]
