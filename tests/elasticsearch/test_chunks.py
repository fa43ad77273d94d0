"""The lines of a bulk request, the chunks that carry them, and rows that are put aside."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.elasticsearch.support import batch, encoder, sent

from pyspark_elasticsearch.server.bulk import operations
from pyspark_elasticsearch.write.chunks import chunk_name, dead_letters, packed, unpacked
from pyspark_elasticsearch.write.documents import script
from sparkonce.errors import BadRow
from sparkonce.values import letters

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.none() | st.integers(-(2**63), 2**63 - 1)),
        min_size=1,
        max_size=6,
    )
)
def test_increments_are_refused_only_where_the_sum_of_one_key_is_no_long(
    rows: list[tuple[str, int | None]],
) -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int64())])
    encode = encoder(schema, key="k", writeMode="increment")
    sums = {k: sum(n or 0 for other, n in rows if other == k) for k, _ in rows}
    given_rows = batch([{"k": k, "n": n} for k, n in rows], schema)
    if all(-(2**63) <= one < 2**63 for one in sums.values()):
        found = sent(encode, given_rows)
        added = {
            about["_id"]: document["script"]["params"]["a"]["n"] for _, about, document in found
        }
        assert {k: n or 0 for k, n in added.items()} == sums
    else:
        with pytest.raises(ValueError, match=r"'n'.*with id '[ab]' leaves the range of a long"):
            encode(given_rows)


@given(st.lists(st.tuples(TEXT, TEXT, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=9))
def test_lines_are_json_whatever_is_in_the_rows(rows: list[tuple[str, str, int]]) -> None:
    given_rows = [dict(zip("kjn", row, strict=True)) for row in rows]
    for mode in ("append", "upsert", "update", "delete"):
        options_ = {"writeMode": mode, **({} if mode == "append" else {"key": "k,j"})}
        found = sent(encoder(**options_), batch(given_rows))
        last = {(row["k"], row["j"]): row for row in given_rows}
        wanted = given_rows if mode == "append" else list(last.values())
        assert len(found) == len(wanted)
        for name, about, document in found:
            if mode == "upsert":
                assert (name, about["version"]) == ("index", 7)
            held = document["script"]["params"]["a"] if mode == "update" else document
            assert mode == "delete" or held in wanted


@pytest.mark.parametrize(
    "name",
    ["a\nb", "a\rb", "a\x01b", "a\x02b", "É", "ǅ", "_x", "-x", "+x", ".", "..", "", "x" * 256],
    ids=repr,
)
def test_value_that_makes_no_name_of_an_index_is_refused_before_the_decision(name: str) -> None:
    encode = encoder(key="j", index="{k}")
    with pytest.raises(BadRow, match="is not a valid name"):
        encode(batch([{"k": "fine", "j": "1", "n": 1}, {"k": name, "j": "2", "n": 2}]))


@pytest.mark.parametrize("name", ["own-ledger", "own-log", "bad"])
def test_value_that_names_an_index_of_the_connector_is_refused_before_the_decision(
    name: str,
) -> None:
    options_ = {"key": "j", "index": "{k}", "indexPrefix": "own"}
    encode = encoder(**options_, onBadRow="deadLetter", deadLetter="bad")
    rows = [{"k": "fine", "j": "1", "n": 1}, {"k": name, "j": "2", "n": 2}]
    chunk = unpacked(encode(batch(rows)))
    (letter,) = chunk.bad
    assert (chunk.operations, f"{name!r} is reserved" in letter.reason) == (1, True)


@pytest.mark.parametrize("days", [-719_163, 2_932_897, -1_000_000])
@pytest.mark.parametrize("mode", ["delete", "upsert"])
@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us")])
def test_date_outside_the_years_1_to_9999_makes_no_name_of_an_index(
    days: int, mode: str, kind: pa.DataType
) -> None:
    schema = pa.schema([("j", pa.string()), ("at", kind)])
    encode = encoder(schema, key="j", index="logs-{at:yyyy.MM.dd}", writeMode=mode)
    unit = 1 if kind == pa.date32() else 86_400_000_000
    at = pa.array([0, days * unit], pa.int32() if unit == 1 else pa.int64()).cast(kind)
    with pytest.raises(BadRow, match="'at' is outside the years 0001 to 9999"):
        encode(pa.record_batch([pa.array(["a", "b"]), at], schema))


@given(st.lists(st.tuples(TEXT, TEXT), unique=True, min_size=2, max_size=9))
def test_no_two_keys_have_one_id(keys: list[tuple[str, str]]) -> None:
    found = sent(encoder(key="k,j"), batch([{"k": k, "j": j, "n": 1} for k, j in keys]))
    assert len({about["_id"] for _, about, _ in found}) == len(keys)


def test_ids_of_appended_rows_name_chunk_and_row_and_are_the_same_for_ever() -> None:
    found = sent(encoder(), batch([{"k": "a", "j": "b", "n": n} for n in range(3)]))
    assert [about["_id"] for _, about, _ in found] == ["name.0.0", "name.0.1", "name.0.2"]
    assert chunk_name("0" * 32, 12) == "AAAAAAAAAAAAAAAAAAAAAA.12."
    assert chunk_name("no token", 0) == "no token.0."


def test_rows_of_one_key_are_added_up_in_a_chunk() -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int8()), ("x", pa.float32())])
    rows = [("a", 100, 0.5), ("b", 1, None), ("a", 100, 0.25), ("a", None, None)]
    made = batch([dict(zip("knx", row, strict=True)) for row in rows], schema)
    found = sent(encoder(schema, key="k", writeMode="increment"), made)
    added = {
        about["_id"]: (document["script"]["params"]["a"], document["upsert"])
        for _, about, document in found
    }
    assert added == {
        "a": ({"n": 200, "x": 0.75}, {"k": "a"}),
        "b": ({"n": 1, "x": None}, {"k": "b"}),
    }


def test_update_that_keeps_what_is_stored_takes_each_value_of_a_key_from_its_last_row() -> None:
    tags = pa.list_(pa.string())
    schema = pa.schema([("k", pa.string()), ("a", pa.string()), ("n", pa.int64()), ("t", tags)])
    rows = [("x", "A", None, None), ("y", None, None, []), ("x", None, 7, ["t"]), ("x", "B", 8, [])]
    rows += [("x", None, None, None)]
    encode = encoder(schema, key="k", writeMode="update", nulls="keep")
    found = sent(encode, batch([dict(zip("kant", row, strict=True)) for row in rows], schema))
    changes = {about["_id"]: document["script"]["params"]["a"] for _, about, document in found}
    assert changes == {"x": {"k": "x", "a": "B", "n": 8, "t": []}, "y": {"k": "y", "t": []}}


def test_chunk_without_rows_comes_back() -> None:
    chunk = unpacked(packed(pa.array([], pa.string()), []))
    assert (chunk.operations, chunk.lines, chunk.bad) == (0, b"", [])
    with pytest.raises(ValueError, match="buffer"):
        unpacked(b"no chunk")


MICROS = 1_600_000_000_123_456


@pytest.mark.parametrize(
    ("kind", "value", "version"),
    [
        (pa.int16(), 7, 7),
        (pa.int64(), 2**63 - 1, 2**63 - 1),
        (pa.timestamp("us", "UTC"), MICROS, MICROS),
        (pa.timestamp("us"), MICROS, MICROS),
        (pa.timestamp("us"), 0, 0),
        (pa.date32(), 1, 86_400_000_000),
    ],
    ids=str,
)
def test_version_is_the_number_or_the_microseconds_since_1970(
    kind: pa.DataType, value: int, version: int
) -> None:
    schema = pa.schema([("k", pa.string()), ("at", kind), ("op", pa.string())])
    encode = encoder(schema, key="k", versionColumn="at", opColumn="op")
    column = pa.array([value] * 2, pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    rows = pa.record_batch([pa.array(["a", "b"]), column, pa.array(["i", "d"])], schema)
    found = sent(encode, rows)
    told = [(name, about["version"], about["version_type"]) for name, about, _ in found]
    assert told == [("index", version, "external"), ("delete", version, "external")]
    *_, delete = operations(unpacked(encode(rows)).lines)
    (letter,) = dead_letters("why", delete, encode.documents)
    held = json.loads(letter.row)
    row = letters.of_row("why", rows.slice(1), schema).row
    assert held == {**json.loads(row), "op": "d"}


@pytest.mark.parametrize("mode", ["update", "increment"])
def test_script_has_its_guard_and_no_line_ends(mode: str) -> None:
    text = script(encoder(key="k", routing="j", writeMode=mode).documents)
    assert "mine.done.contains(params.o)" in text
    assert "\n" not in text


# -- rows that no document can be made of are put aside, and what their letters hold


ASIDE = {"onBadRow": "deadLetter", "deadLetter": "bad"}


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.date32(), pa.array([2_932_897], pa.int32()), "+10000-01-01"),
        (pa.timestamp("us"), pa.array([-(2**62)], pa.int64()), "-144169-06-28T09:59:32.612096"),
        (pa.string(), pa.array([b"a\xff"]), "Yf8="),
    ],
    ids=str,
)
def test_bad_row_is_put_aside_even_if_python_has_no_text_for_its_value(
    kind: pa.DataType, value: pa.Array, said: str
) -> None:
    schema = pa.schema([("k", pa.string()), ("at", kind)])
    column = value.view(kind)
    encode = encoder(schema, key="k", **ASIDE)
    chunk = unpacked(encode(pa.record_batch([pa.array(["a"]), column], schema)))
    (letter,) = chunk.bad
    k = "YQ==" if "k" in letter.base64 else "a"
    assert (chunk.operations, json.loads(letter.row)) == (0, {"k": k, "at": said})
    without = encoder(schema, key="k")
    with pytest.raises((BadRow, ValueError), match="column 'at'"):
        without(pa.record_batch([pa.array(["a"]), column], schema))
    with pytest.raises(BadRow, match="'k' is null"):
        without(pa.record_batch([pa.array([None], pa.string()), column], schema))


@pytest.mark.parametrize(("route", "said"), [("", "'j' is empty"), (None, "'j' is null")])
@pytest.mark.parametrize("mode", ["append", "upsert", "update", "delete"])
def test_row_without_a_routing_is_refused_not_put_where_its_id_leads(
    mode: str, route: str | None, said: str
) -> None:
    options_ = {"writeMode": mode, "routing": "j", **({} if mode == "append" else {"key": "k"})}
    rows = [{"k": "a", "j": "x", "n": 1}, {"k": "b", "j": route, "n": 2}]
    with pytest.raises(ValueError, match=said):
        encoder(**options_)(batch(rows))
    aside = encoder(**options_, **ASIDE)
    chunk = unpacked(aside(batch(rows)))
    assert (chunk.operations, len(chunk.bad)) == (1, 1)


def test_bad_rows_are_sorted_out_one_by_one() -> None:
    schema = pa.schema([("k", pa.string()), ("x", pa.float64())])
    rows = [{"k": f"{n}", "x": float(n)} for n in range(9)]
    rows[3]["k"], rows[7]["x"] = None, float("inf")
    encode = encoder(schema, key="k", **ASIDE)
    chunk = unpacked(encode(batch(rows, schema)))
    assert chunk.operations == 7
    assert [json.loads(one.row)["x"] for one in chunk.bad] == [3.0, "Infinity"]
    assert "'k' is null" in chunk.bad[0][0]
    with pytest.raises(BadRow):
        encoder(schema, key="k")(batch(rows, schema))


@pytest.mark.parametrize(
    ("kind", "value", "said"),
    [
        (pa.int64(), -1, "is null or negative"),
        (pa.int64(), None, "is null or negative"),
        (pa.timestamp("us", "UTC"), -1, "is null or before 1970"),
        (pa.date32(), -1, "is null or before 1970"),
        (pa.date32(), None, "is null or before 1970"),
    ],
    ids=str,
)
def test_row_whose_version_no_document_can_have_is_a_bad_row(
    kind: pa.DataType, value: int | None, said: str
) -> None:
    schema = pa.schema([("k", pa.string()), ("at", kind)])
    whole = pa.int32() if kind == pa.date32() else pa.int64()
    rows = pa.record_batch([pa.array(["a", "b"]), pa.array([5, value], whole).cast(kind)], schema)
    with pytest.raises(ValueError, match=f"column 'at', of option versionColumn, {said} in a row"):
        encoder(schema, key="k", versionColumn="at")(rows)
    chunk = unpacked(encoder(schema, key="k", versionColumn="at", **ASIDE)(rows))
    assert (chunk.operations, [json.loads(one.row)["k"] for one in chunk.bad]) == (1, ["b"])


DELETED = pa.schema(
    [("s", pa.string()), ("x", pa.binary()), ("d", pa.decimal128(9, 2)), ("o", pa.string())]
)


@pytest.mark.parametrize(
    ("given", "row", "made"),
    [
        ({"key": "s", "writeMode": "update"}, ("a:%", b"", 1, "?"), None),
        ({"key": "s,d", "opColumn": "o"}, ("a:%", b"", 1, "DELETE"), ("a:%", "-", 1, "d")),
        (
            {"key": "s", "routing": "o", "writeMode": "delete"},
            ("%", b"", 1, "r"),
            ("%", "-", "-", "r"),
        ),
    ],
    ids=str,
)
def test_letter_of_an_operation_has_what_was_sent_of_its_row(
    given: dict[str, str], row: tuple[Any, ...], made: tuple[Any, ...] | None
) -> None:
    encode = encoder(DELETED, **given)
    found = unpacked(encode(batch([dict(zip("sxdo", row, strict=True))], DELETED)))
    (one,) = operations(found.filled("", 1, '"params":{'))
    (letter,) = dead_letters("why", one, encode.documents)
    held = json.loads(letter.row)
    wanted = {"s": row[0], "x": row[1], "d": row[2], "o": row[3]}
    if made is not None:
        wanted = {n: value for n, value in zip("sxdo", made, strict=True) if value != "-"}
    if "x" in wanted:
        wanted["x"] = base64.b64encode(wanted["x"]).decode()
    assert held == wanted


def test_letter_of_an_increment_has_its_routing() -> None:
    encode = encoder(key="k", routing="j", writeMode="increment")
    row = {"k": "a", "j": "r", "n": 1}
    (one,) = operations(unpacked(encode(batch([row]))).filled("", 1, '"params":{'))
    (letter,) = dead_letters("why", one, encode.documents)
    assert json.loads(letter.row) == row
