"""Literals that must not be sent are found in the text of a chunk, whatever stands around them."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysql.bends import MOST_REPEATS, NUMBER, Bend, Bends
from pyspark_mysql.chunks import ChunkEncoder, Rows, decode
from pyspark_mysql.models.table import TableRows
from sparkonce.change import Append

DETAIL = TableRows(("d", "t"), Append(), (), (), {}, aside=False, schema="")
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["NULL", "7", " +7", "7 ", "\v07", "7\v", "-7", "x7", "7,7", "'7'", "7','7"]),
    st.text(st.sampled_from("'\\\"`,()\0\n\v 7-NULé\U0001f600")),
)


def encoded(columns: list[list[str | None]]) -> Rows:
    names = [str(place) for place in range(len(columns))]
    batch = pa.record_batch([pa.array(column, pa.string()) for column in columns], names)
    return decode(ChunkEncoder(replace(DETAIL, columns=tuple(names)))(batch)).rows


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1), st.integers(0, 2), st.data())
def test_rows_are_found_by_the_literal_of_the_column(
    values: list[tuple[str | None, ...]], place: int, data: st.DataObject
) -> None:
    rows = encoded([list(column) for column in zip(*values, strict=True)])
    pattern, taken = data.draw(st.sampled_from([("NULL", ""), (NUMBER, ""), (NUMBER, "'7'")]))
    found = Bends([Bend(place, "v", pattern, "", "", taken)]).find(rows)
    each = [rows[at:].literals()[place] for at in range(len(rows))]
    matching = [at for at, text in enumerate(each) if re.fullmatch(pattern, text)]
    assert sorted(found) == [at for at in matching if not re.fullmatch(taken, each[at])]


@given(st.integers(1, 9), st.sets(st.integers(0, 8)))
def test_rows_are_cut_around_those_that_are_left_out(count: int, out: set[int]) -> None:
    out = {number for number in out if number < count}
    rows = encoded([[str(number) for number in range(count)]])
    left = b"".join(bytes(part.lines) for part in rows.without(out))
    assert left == b"".join(b"('%d')," % n for n in range(count) if n not in out)


@pytest.mark.parametrize("place", [0, 999, MOST_REPEATS, 1016])
def test_last_of_all_columns_that_a_table_can_have_is_looked_at(place: int) -> None:
    columns = [["it's", "it's"] for _ in range(1017)]
    columns[place] = ["1", None]
    assert list(Bends([Bend(place, "v", "NULL", "", "")]).find(encoded(columns))) == [1]
