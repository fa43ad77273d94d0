"""Entries of streams: their ids by option ``idColumn``, and how many a stream keeps."""

from __future__ import annotations

import pyarrow as pa
import pytest
from integration.support.epochs import Make
from integration.support.redis import Keys

from sparkonce.errors import BadRow

pytestmark = pytest.mark.variants
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.string())])


def test_a_stream_keeps_about_so_many_entries(into: Make, keys: Keys) -> None:
    streams = into(SCHEMA, model="stream", maxLength="50")
    streams.run(0, [{"id": 0, "v": str(at)} for at in range(1000)])
    assert 50 <= keys.client.xlen(f"{keys}:0") < 200


IDS = {pa.string(): ["1-0", "1-7", "9", "18446744073709551615-3"], pa.int64(): [1, 2, 9, 2**62]}


@pytest.mark.parametrize("kind", IDS, ids=str)
def test_entries_have_the_ids_of_a_column(into: Make, keys: Keys, kind: pa.DataType) -> None:
    schema = SCHEMA.append(pa.field("at", kind))
    streams = into(schema, model="stream", idColumn="at")
    rows_ = [{"id": at % 2, "v": str(one), "at": one} for at, one in enumerate(IDS[kind])]
    streams.run(0, rows_[:2], rows_[2:])
    for key in range(2):
        wanted = [str(one["at"]) for one in rows_ if one["id"] == key]
        full = [one if "-" in one else f"{one}-0" for one in wanted]
        found = keys.client.xrange(f"{keys}:{key}")
        assert found == [
            (at, {"id": str(key), "v": one}) for at, one in zip(full, wanted, strict=True)
        ]


@pytest.mark.parametrize("id_", [None, "", "*", "5-*", "-", "+", "5-", "x", "5 ", "-1", "5-0\n"])
def test_a_text_that_is_no_id_is_a_bad_row(into: Make, id_: str | None) -> None:
    schema = SCHEMA.append(pa.field("at", pa.string()))
    query = into(schema, model="stream", idColumn="at")
    with pytest.raises(BadRow, match=r"Column 'at'|idColumn"):
        query.stage(0, [{"id": 0, "v": "a", "at": "4-0"}, {"id": 0, "v": "a", "at": id_}])


@pytest.mark.parametrize("id_", ["0", "0-0", "18446744073709551616-0", "5-99999999999999999999"])
def test_an_id_that_only_the_server_refuses_is_a_dead_letter(
    into: Make, keys: Keys, id_: str
) -> None:
    schema = SCHEMA.append(pa.field("at", pa.string()))
    letters = {"onBadRow": "deadLetter", "deadLetter": keys.rpartition(":")[2]}
    query = into(schema, model="stream", idColumn="at", maxBadRows="5", **letters)
    query.run(0, [{"id": 0, "v": str(at), "at": at} for at in ("4-1", id_, "4-1", "4-2")])
    assert [at for at, _ in keys.client.xrange(f"{keys}:0")] == ["4-1", "4-2"]
