"""Character sets in the binary log: each text is as a plain read of the table has it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from integration.support.mysql import Table, changes, client, read, values
from pymysql.cursors import Cursor

from sparkonce.errors import StoreRefused

pytestmark = pytest.mark.variants


@pytest.fixture(autouse=True)
def named(set_global: Callable[[str, object], None]) -> None:
    set_global("binlog_row_metadata", "FULL")


@pytest.fixture
def sets(mysql: Cursor) -> dict[str, int]:
    """The server's character sets, and how many bytes a character has at most."""
    mysql.execute("SELECT character_set_name, maxlen FROM information_schema.character_sets")
    return {name: int(most) for name, most in mysql.fetchall()}


def test_each_byte_of_each_set_of_one_byte_is_as_a_read_has_it(
    table: Table, sets: dict[str, int]
) -> None:
    names = [one for one, most in sets.items() if most == 1 and one not in ("ascii", "binary")]
    columns = ", ".join(f"{one} VARCHAR(1) CHARACTER SET {one}" for one in names)
    table.create(f"id INT PRIMARY KEY, {columns}")
    made, begin = table.follow()
    each = (f"({at}" + f", x'{at:02x}'" * len(names) + ")" for at in range(256))
    table.run(f"INSERT INTO {table} VALUES {', '.join(each)}")
    there, found = values(table.source()), read(made, begin)
    assert len(names) > 20
    for name in names:
        assert found[name].to_pylist() == there[name].to_pylist(), name


def test_each_character_of_each_set_of_two_bytes_is_as_a_read_has_it(
    table: Table, sets: dict[str, int]
) -> None:
    names = [one for one, most in sets.items() if most == 2 and one != "ucs2"]
    assert {"sjis", "cp932", "big5", "gbk", "euckr"} <= {*names}
    columns = ", ".join(f"{one} VARCHAR(200) CHARACTER SET {one}" for one in names)
    table.create(f"id INT PRIMARY KEY, {columns}")
    made, begin = table.follow()
    with client(table.url, sql_mode="") as writer:  # characters that a set lacks become a sign
        for first in range(0, 0x10000, 150):
            text = "".join(map(chr, range(first, first + 150))).encode(errors="ignore").hex()
            each = f", CONVERT(x'{text}' USING utf8mb4)" * len(names)
            writer.execute(f"INSERT IGNORE INTO {table} VALUES ({first}{each})")
    there, found = values(table.source()).sort_by("id"), read(made, begin)
    for name in names:
        assert found[name].to_pylist() == there[name].to_pylist(), name
        assert len({*"".join(there[name].to_pylist())}) > 5000, name


@pytest.mark.parametrize("name", ["sjis", "cp932", "big5", "gbk", "gb2312", "euckr"])
def test_a_choice_in_a_set_of_two_bytes_is_as_a_read_has_it(table: Table, name: str) -> None:
    table.create(f"id INT PRIMARY KEY, v ENUM('日本', '?') CHARACTER SET {name}")
    made, begin = table.follow()
    table.run(f"INSERT INTO {table} VALUES (1, '日本'), (2, '?')")
    assert changes(made, begin, None, "v") == [("c", "日本"), ("c", "?")]


def test_columns_of_other_sets_of_several_bytes_are_refused(
    table: Table, sets: dict[str, int]
) -> None:
    names = [one for one, most in sets.items() if most > 2 and not one.startswith("utf")]
    assert {"ujis", "eucjpms"} <= {*names}
    columns = ", ".join(f"{one} VARCHAR(9) CHARACTER SET {one}" for one in names)
    table.create(f"id INT PRIMARY KEY, {columns}")
    for name in names:
        made = table.feed(pa.schema([(name, pa.string())]))
        at = made.latest()
        with pytest.raises(StoreRefused, match=f"Column '{name}' of character set {name} can't"):
            made.between(at, at)
