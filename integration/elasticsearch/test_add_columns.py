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


@pytest.mark.parametrize(
    "field",
    [{"type": "long_range"}, {"type": "flattened"}, {"type": "object", "enabled": False}],
    ids=str,
)
def test_field_that_takes_objects_as_a_whole_stays_as_it_is(index: Index, field: Any) -> None:
    properties = {"id": {"type": "long"}, "o": field}
    index.client.indices.create(index=index, mappings={"properties": properties})
    kind = pa.struct([("gte", INT), ("lte", INT)])
    query = index.into(pa.schema([("id", INT), ("o", kind)]), key="id", **ADDS)
    query.run(0, [{"id": 1, "o": {"gte": 1, "lte": 2}}])
    assert mapped(index)["properties"] == properties


def test_index_without_objects_is_refused_unaltered(index: Index) -> None:
    mappings = {"dynamic": "strict", "subobjects": False, "properties": {"id": {"type": "long"}}}
    index.client.indices.create(index=index, mappings=mappings)
    schema = pa.schema([("id", INT), ("p.q", INT), ("o", INNER)])
    with pytest.raises(OptionError, match="subobjects=false"):
        index.into(schema, key="id", **ADDS)
    assert {*mapped(index)["properties"]} == {"id"}
    index.into(schema.remove(2), key="id", **ADDS).run(0, [{"id": 1, "p.q": 2}])
    assert index.documents() == {"1": {"id": 1, "p.q": 2}}


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
