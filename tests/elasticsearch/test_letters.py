"""Rows that no document can be made of are put aside, and what their letters hold."""

from __future__ import annotations

import base64
import json
from typing import Any

import pyarrow as pa
import pytest
from tests.elasticsearch.encoded import batch, encoder

from pyspark_elasticsearch.server.bulk import operations
from pyspark_elasticsearch.write.chunks import letter as of_lines
from pyspark_elasticsearch.write.chunks import unpacked
from sparkonce.errors import BadRow

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
    held = json.loads(of_lines("why", one, encode.documents).row)
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
    assert json.loads(of_lines("why", one, encode.documents).row) == row
