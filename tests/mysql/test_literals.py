"""SQL literals and chunks: a value is never SQL, and a chunk can be cut between any two rows."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_mysql.server.literals import LITERAL, identifier, literals, string
from pyspark_mysql.write.chunks import CODEC, ChunkEncoder, decode
from pyspark_mysql.write.plan import TableRows
from sparkonce.change import Increment, Upsert
from sparkonce.errors import BadRow

TRICKY = st.text(st.sampled_from("'\\\"`;-,()\0\n\x1a%_aé\U0001f600"))
TEXTS = st.lists(st.one_of(st.none(), TRICKY, st.text(st.characters(codec="utf-8"))), min_size=1)
BYTES = st.lists(st.one_of(st.none(), st.binary()), min_size=1)


def meaning(literal: bytes) -> str | None:
    """What MySQL reads, with or without NO_BACKSLASH_ESCAPES; fails where that matters."""
    if literal == b"NULL":
        return None
    if literal.startswith(b"_utf8mb4 X'"):
        return bytes.fromhex(literal[11:-1].decode()).decode()
    inside = re.fullmatch(rb"'((?:[^'\\]|'')*)'", literal, re.DOTALL)
    assert inside, literal
    return inside[1].replace(b"''", b"'").decode()


@given(TEXTS)
def test_text_is_read_back_whatever_the_sql_mode(texts: list[str | None]) -> None:
    found = literals(pa.array(texts, pa.string())).to_pylist()
    assert [meaning(literal) for literal in found] == texts


@given(TEXTS, st.integers(0, 5))
def test_slice_has_the_literals_of_its_own_rows(texts: list[str | None], start: int) -> None:
    whole = literals(pa.array(texts, pa.string()))
    assert literals(pa.array(texts, pa.string()).slice(start)).equals(whole.slice(start))


@given(BYTES)
def test_bytes_are_hexadecimal(values: list[bytes | None]) -> None:
    found = literals(pa.array(values, pa.binary())).to_pylist()
    assert found == [b"NULL" if v is None else b"X'" + v.hex().encode() + b"'" for v in values]


def test_string_that_is_not_utf8_is_refused() -> None:
    broken = pa.array([b"fine", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(ValueError, match="not valid UTF-8"):
        literals(broken)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([True, False], pa.bool_(), ["1", "0"]),
        ([-128], pa.int8(), ["-128"]),
        ([0.1, 1e300, -0.0, 5e-324], pa.float64(), ["0.1e0", "1e+300", "-0e0", "5e-324"]),
        ([Decimal("-0.000000000000000001")], pa.decimal128(38, 18), ["-0.000000000000000001"]),
        ([-719162, 2932896], pa.date32(), ["'0001-01-01'", "'9999-12-31'"]),
        ([-1], pa.timestamp("us", "UTC"), ["'1969-12-31T23:59:59.999999'"]),
        ([0], pa.timestamp("us"), ["'1970-01-01T00:00:00.000000'"]),
        ([3_600_000_001_000], pa.time64("ns"), ["'01:00:00.000001'"]),
        ([5], pa.duration("us"), ["5"]),
        ([None], pa.null(), ["NULL"]),
        ([["it's"], []], pa.list_(pa.string()), ["'[\"it''s\"]'", "'[]'"]),
    ],
)
def test_literal_of_each_type(values: list[object], kind: pa.DataType, expected: list[str]) -> None:
    found = literals(pa.array(values, kind)).to_pylist()
    assert [literal.decode() for literal in found] == expected


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_number_that_is_not_finite_is_refused(value: float, kind: pa.DataType) -> None:
    with pytest.raises(ValueError, match=str(value)):
        literals(pa.array([1.0, None, value], kind))


def test_identifier_is_quoted() -> None:
    assert identifier("a`b", 'c"; --') == '`a``b`.`c"; --`'
    assert string("it's") == "'it''s'"


SCHEMA = pa.schema([("k", pa.string()), ("b", pa.binary()), ("n", pa.float64())])
KINDS = {"k": "string", "b": "binary", "n": "double"}
DETAIL = TableRows(("d", "t"), Upsert(("k",)), ("k",), tuple(KINDS), KINDS, aside=False, schema="")
ASIDE = replace(DETAIL, aside=True, schema="k string, b binary, n double")
ROWS = st.lists(st.tuples(TRICKY, st.one_of(st.none(), st.binary()), st.integers(0, 9)), min_size=1)


def chunk(rows: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = [pa.array([row[at] for row in rows], f.type) for at, f in enumerate(SCHEMA)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def read(text: bytes) -> list[tuple[bytes, ...]]:
    """The literals of a VALUES list, read from left to right."""
    rows, at = [], 0
    while at < len(text):
        found: list[bytes] = []
        assert text[at : at + 1] == b"("
        while text[at : at + 1] in (b"(", b",") and len(found) < 3:
            match = LITERAL.match(text, at + 1)
            assert match
            found.append(match[0])
            at = match.end()
        assert text[at : at + 1] == b")"
        rows.append(tuple(found))
        at += 2
    return rows


@given(ROWS, st.integers(1, 200))
def test_chunk_is_its_rows_however_it_is_cut(rows: list[tuple[object, ...]], most: int) -> None:
    batch = chunk(rows)
    whole = decode(ChunkEncoder(DETAIL)(batch)).rows
    expected = list(zip(*(literals(batch.column(c)).to_pylist() for c in batch.schema.names)))  # noqa: B905
    assert read(bytes(whole.text)) == expected
    parts = list(whole.within(most))
    assert [row for part in parts for row in read(bytes(part.text))] == expected
    assert all(len(part) == 1 or len(part.text) < most for part in parts)
    first, second = whole[: most % len(rows)], whole[most % len(rows) :]
    assert read(bytes(first.lines[:-1])) + read(bytes(second.text)) == expected
    assert len(whole.literals()) == 3


def test_slice_of_a_batch_is_encoded_alone() -> None:
    batch = chunk([(f"k{i}", None, i) for i in range(10)])
    assert read(bytes(decode(ChunkEncoder(DETAIL)(batch.slice(3, 2))).rows.text)) == [
        (b"'k3'", b"NULL", b"3e0"),
        (b"'k4'", b"NULL", b"4e0"),
    ]


def test_a_chunk_has_lengths_what_it_says_of_itself_and_rows() -> None:
    packed = ChunkEncoder(DETAIL)(chunk([("a", b"\1", 1), ("'", b"", 2)]))
    raw = CODEC.decompress(packed[8:], int.from_bytes(packed[:8], "little"), asbytes=True)
    about = b'{"bad": [], "nulls": [], "empties": false}'
    head = struct.pack("<4I", 2, len(about), 16, 15)
    assert raw == head + about + b"('a',X'01',1e0),('''',X'',2e0),"


def test_null_to_add_is_zero() -> None:
    adds = Increment(("k",), ("n",))
    encode = ChunkEncoder(replace(DETAIL, change=adds, columns=("k", "n")))
    text = decode(encode(chunk([("a", b"", 1), ("b", b"", None)]))).rows.text
    assert bytes(text) == b"('a',1e0),('b',0e0)"


def test_null_key_is_refused_by_name() -> None:
    with pytest.raises(BadRow, match="Column 'k' is null"):
        ChunkEncoder(DETAIL)(chunk([("a", b"", 1), (None, b"", 2)]))


def test_bad_rows_are_put_aside_with_their_reasons() -> None:
    batch = chunk([("a", b"", 1), (None, b"", 2), ("c", b"", float("nan")), ("d", b"", 4)])
    read_ = decode(ChunkEncoder(ASIDE)(batch))
    assert read(bytes(read_.rows.text)) == [(b"'a'", b"X''", b"1e0"), (b"'d'", b"X''", b"4e0")]
    first, second = read_.bad
    assert "Column 'k' is null" in first.reason
    assert "column 'n': nan" in second.reason
    assert json.loads(first.row) == {"k": None, "b": "", "n": 2.0}
    assert (json.loads(second.row)["n"], second.key) == ("NaN", '{"k": "c"}')


def test_chunk_of_bad_rows_alone_has_no_text() -> None:
    read_ = decode(ChunkEncoder(ASIDE)(chunk([(None, b"", 2)] * 3)))
    assert (list(read_.rows.within(100)), len(read_.bad)) == ([], 3)
