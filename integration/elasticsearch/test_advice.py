"""What an error advises is what helps, and odd names of columns are as good as others."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from elasticsearch import Elasticsearch
from integration.support.documents import documents, has_script_processor
from integration.support.epochs import ElasticsearchQuery

from sparkonce.errors import OptionError, RowRefused

COUNTS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
MOST = 2**63 - 1
Make = Callable[..., ElasticsearchQuery]
ONE = [{"id": 1, "n": 1}]


def test_sum_that_leaves_its_range_is_no_fault_of_the_mapping(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    query = into_index(COUNTS, key="id", writeMode="increment")
    elastic.index(index=index, id="1", document={"id": 1, "n": MOST})
    with pytest.raises(RowRefused, match="leaves the range of a long") as refused:
        query.run(0, ONE)
    assert "can't be added" in refused.value.why
    assert "mend what the document holds" in refused.value.todo


def test_what_an_index_or_pipeline_names_and_is_gone_is_told_before_the_decision(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    if not has_script_processor(elastic):
        pytest.skip("the server lacks the processors")
    called, missing = f"{index}-in", {"name": f"{index}-no", "ignore_missing_pipeline": True}
    script = {"lang": "painless", "source": "ctx.n += 1"}
    processors = [{"pipeline": missing}, {"pipeline": {"name": called}}]
    elastic.ingest.put_pipeline(id=called, processors=[{"script": script}])
    elastic.ingest.put_pipeline(id=index, processors=processors)
    try:
        query = into_index(COUNTS)
        elastic.indices.put_settings(index=index, settings={"index.final_pipeline": index})
        query.run(0, ONE)
        elastic.ingest.delete_pipeline(id=called)
        with pytest.raises(OptionError, match=f"no ingest pipeline '{called}'"):
            query.run(1, ONE)
        elastic.ingest.put_pipeline(id=called, processors=[])
        query.run(1, ONE)
        assert sorted(row["n"] for row in documents(elastic, index).values()) == [1, 2]
    finally:
        elastic.indices.put_settings(index=index, settings={"index.final_pipeline": None})
        for name in (index, called):
            elastic.options(ignore_status=404).ingest.delete_pipeline(id=name)


def test_index_of_dead_letters_that_is_deleted_is_made_anew_with_its_mappings(
    into_index: Make, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    """A first letter would guess them: `row` a text, or an object."""
    query = into_index(
        COUNTS, key="id", writeMode="increment", onBadRow="deadLetter", deadLetter=bad_index
    )
    elastic.index(index=index, id="1", document={"id": 1, "n": MOST})
    query.run(0, ONE)
    made = elastic.indices.get_mapping(index=bad_index)[bad_index]
    elastic.indices.delete(index=bad_index)
    query.run(1, ONE)
    assert elastic.indices.get_mapping(index=bad_index)[bad_index] == made
    assert [one["epoch"] for one in documents(elastic, bad_index).values()] == [1]


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_bad_row_with_columns_named_as_the_request_of_an_update_is_put_aside(
    into_index: Make, elastic: Elasticsearch, index: str, bad_index: str, mode: str
) -> None:
    names = ["id", "script", "scripted_upsert", "n"]
    schema = pa.schema([(name, pa.string()) for name in names])
    columns = {name: {"type": "long" if name == "n" else "keyword"} for name in names}
    elastic.indices.create(index=index, mappings={"properties": columns})
    key = {"key": "id"} if mode == "upsert" else {}
    given = {"onBadRow": "deadLetter", "deadLetter": bad_index, "createIndex": "false"}
    query = into_index(schema, writeMode=mode, **key, **given)
    good = {**{name: name for name in names}, "n": "1"}
    query.run(0, [good, {**good, "id": "bad", "n": "no number"}])
    (letter,) = documents(elastic, bad_index).values()
    assert json.loads(letter["row"]) == {**good, "id": "bad", "n": "no number"}
    assert list(documents(elastic, index).values()) == [good]


def test_no_index_is_left_where_a_column_is_refused(
    into_index: Make, elastic: Elasticsearch, index: str, bad_index: str
) -> None:
    schema = pa.schema([("a", pa.string()), ("a.b", pa.string())])
    with pytest.raises(OptionError, match=r"can.t merge a non object|cannot be changed") as refused:
        into_index(schema, onBadRow="deadLetter", deadLetter=bad_index)
    assert "rename the column" in refused.value.todo
    assert not elastic.indices.get(index=f"{index}*")


def test_column_with_a_dot_is_found_where_the_mapping_keeps_dots(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    fields: dict[str, Any] = {"a.b": {"type": "keyword"}}
    mappings = {"dynamic": "strict", "subobjects": False, "properties": fields}
    elastic.indices.create(index=index, mappings=mappings)
    query = into_index(pa.schema([("a.b", pa.string())]), createIndex="false")
    query.run(0, [{"a.b": "x"}])
    assert list(documents(elastic, index).values()) == [{"a.b": "x"}]
