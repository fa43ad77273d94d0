"""Texts that end with white space for which there is no room are found, and no others."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pyspark_mysql.bends import Bends
from pyspark_mysql.chunks import ChunkEncoder, Rows, decode
from pyspark_mysql.columns import Column
from pyspark_mysql.cuts import cuts_of
from pyspark_mysql.models.table import TableRows
from sparkonce.change import Append

NAMES = ("a", "b")
DETAIL = TableRows(
    ("d", "t"), Append(), (), NAMES, dict.fromkeys(NAMES, "string"), aside=False, schema=""
)
WHITE = "\t\n\v\f\r "
TEXTS = st.one_of(
    st.none(), st.text(st.sampled_from("a'\\,()é\U0001f600€\0\xa0" + WHITE), max_size=6)
)


def encoded(texts: list[tuple[str | None, str | None]]) -> Rows:
    columns = [pa.array(column, pa.string()) for column in zip(*texts, strict=True)]
    return decode(ChunkEncoder(DETAIL)(pa.record_batch(columns, ["a", "b"]))).rows


def found(
    texts: list[tuple[str | None, str | None]], column: str, room: int, charset: str
) -> list[int]:
    cuts = cuts_of(DETAIL, [Column("B", column, column, 0, collation=f"{charset}_bin", room=room)])
    return sorted(Bends([], cuts).find(encoded(texts)))


def ends_white(text: str | None) -> bool:
    return text is not None and text != "" and text[-1] in WHITE


@settings(deadline=None, database=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1), st.integers(1, 5))
def test_room_is_counted_in_characters_or_bytes_and_a_char_keeps_no_space(
    texts: list[tuple[str | None, str | None]], room: int
) -> None:
    spaced = [(at, text) for at, (_, text) in enumerate(texts) if text and ends_white(text)]
    longer = [at for at, text in spaced if len(text) > room]
    assert found(texts, "varchar", room, "utf8mb4") == longer
    assert found(texts, "tinytext", room, "latin1") == longer
    larger = [at for at, text in spaced if len(text.encode()) > room]
    assert found(texts, "tinytext", room, "utf8mb4") == larger
    assert found(texts, "char", room, "utf8mb4") == sorted(
        {*longer, *(at for at, text in spaced if text[-1] == " ")}
    )


@pytest.mark.parametrize(("column", "charset"), [("longtext", "utf8mb4"), ("varchar", "utf16")])
def test_what_is_never_cut_is_not_looked_at(column: str, charset: str) -> None:
    assert found([("x", "abc ")], column, 1, charset) == []


def test_wide_rows_of_padded_texts_are_each_looked_at_once() -> None:
    """As a column of another database's CHAR fills them; a commit must not wait for it."""
    names = [f"c{number}" for number in range(1000)]
    detail = replace(DETAIL, columns=tuple(names), kinds=dict.fromkeys(names, "string"))
    cells = [pa.array(["a value "] * 48)] * len(names)
    rows = decode(ChunkEncoder(detail)(pa.record_batch(cells, names))).rows
    columns = [Column(name, "varchar", "", 0, collation="utf8mb4_bin", room=9) for name in names]
    began = time.process_time()
    assert Bends([], cuts_of(detail, columns)).find(rows) == {}
    assert time.process_time() - began < 3
