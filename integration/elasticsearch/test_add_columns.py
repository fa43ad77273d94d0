"""Columns that a query has and its index lacks, by option addColumns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from integration.support.elasticsearch import STAMPED, Index

from sparkonce.errors import OptionError

pytestmark = pytest.mark.variants
INT, STR = pa.int64(), pa.string()
ADDS = {"addColumns": "true", "createIndex": "false"}
INNER = pa.struct([("a", INT), ("b", pa.struct([("c", STR)]))])


def mapped(index: Index) -> Any:
    return index.client.indices.get_mapping(index=index)[index]["mappings"]


@pytest.mark.parametrize("dynamic", ["strict", "true", "false"])
def test_query_with_new_columns_maps_them(index: Index, dynamic: str) -> None:
    old = {"id": {"type": "long"}, "o": {"properties": {"a": {"type": "long"}}}}
    index.client.indices.create(index=index, mappings={"dynamic": dynamic, "properties": old})
    columns = [("id", INT), ("o", INNER), ("t", STR), ("p.q", INT), ("d", pa.decimal128(9, 2))]
    query = index.into(pa.schema(columns), key="id", **ADDS)
    fields = mapped(index)["properties"]
    assert fields["o"]["properties"]["b"]["properties"]["c"]["type"] == "keyword"
    assert (fields["t"]["type"], fields["d"]["type"]) == ("keyword", "keyword")
    assert fields["p"]["properties"]["q"]["type"] == "long"
    row = {"id": 1, "o": {"a": 1, "b": {"c": "x"}}, "t": "x", "p.q": 1, "d": None}
    query.run(0, [row])
    assert index.documents() == {"1": row}
    again = index.into(pa.schema(columns), key="id", sinkId="again", **ADDS)
    again.run(0, [row])


def test_without_the_option_a_strict_index_refuses_them(index: Index) -> None:
    index.client.indices.create(index=index, mappings={"dynamic": "strict"})
    with pytest.raises(OptionError, match="'id' of the query is not in the mapping"):
        index.into(pa.schema([("id", INT)]), createIndex="false")


def test_field_of_a_strict_object_is_added(index: Index) -> None:
    inner = {"type": "nested", "dynamic": "strict", "properties": {"a": {"type": "long"}}}
    index.client.indices.create(
        index=index, mappings={"dynamic": "strict", "properties": {"o": inner}}
    )
    schema = pa.schema([("o", pa.list_(pa.struct([("a", INT), ("b", INT)])))])
    index.into(schema, **ADDS).run(0, [{"o": [{"a": 1, "b": 2}]}])
    found = mapped(index)["properties"]["o"]
    assert (found["type"], {*found["properties"]}) == ("nested", {"a", "b"})


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (pa.null(), {}, "can't add column 'v' of type void"),
        (pa.struct([("x", pa.null())]), {}, r"can't add column 'v' of type struct"),
        (INT, {"index": "x-{id}"}, "addColumns and index="),
        (STR, {"rowColumn": "v"}, "addColumns and rowColumn"),
    ],
)
def test_what_can_not_be_added_is_refused(
    index: Index, kind: pa.DataType, given: dict[str, str], said: str
) -> None:
    index.client.indices.create(index=index)
    with pytest.raises(OptionError, match=said):
        index.into(pa.schema([("id", INT), ("v", kind)]), **{**ADDS, **given})
    assert not mapped(index)


def test_index_without_room_for_fields_is_refused(index: Index) -> None:
    limit = {"index.mapping.total_fields.limit": 2}
    index.client.indices.create(index=index, settings=limit)
    schema = pa.schema([(f"c{at}", INT) for at in range(3)])
    with pytest.raises(OptionError, match=r"addColumns: adding c0, c1, c2 .* failed.*limit"):
        index.into(schema, **ADDS)


def test_data_stream_is_refused(index: Index, stream: str) -> None:
    schema = STAMPED.append(pa.field("new", INT))
    with pytest.raises(OptionError, match=r"can't add .*new to .*a data stream"):
        index.into(schema, index=stream, **ADDS)
