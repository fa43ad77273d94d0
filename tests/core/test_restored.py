"""Rows come back from their dead letters as they were, or not at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from tests.core.test_letters import FORMS, letter

from sparkonce.values import restored, schema_text

BEYOND = ('"+', '"-0001', '"-290308', '{"a": 1, "a"')
"""What no store takes: years that no date has there, a map with a key twice."""


@pytest.mark.parametrize(("ddl", "value", "form"), FORMS, ids=str)
def test_a_row_comes_back_from_its_letter(ddl: str, value: Any, form: str) -> None:
    schema = schema_text.parse(f"k int, v {ddl}")
    made = letter(ddl, value)
    if form.startswith(BEYOND):
        with pytest.raises(ValueError, match=r"is no |there twice"):
            restored.batch([(made.row, made.base64)], schema)
        return
    batch = restored.batch([(made.row, made.base64)], schema)
    assert batch.schema == schema
    assert batch.column("k").to_pylist() == [7]
    assert batch.column("v").equals(pa.array([value], schema.field("v").type))


def test_strings_in_base64_are_decoded() -> None:
    schema = schema_text.parse("v array<string>")
    batch = restored.batch([('{"v": ["YQ==", null]}', ["v"]), ('{"v": ["YQ=="]}', [])], schema)
    assert batch.column("v").to_pylist() == [["a", None], ["YQ=="]]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ('{"k": 7', "Expecting"),
        ('{"k": 7}', "the schema has 'v', and it has not"),
        ('{"k": 7, "v": {"a": 1}, "x": 1}', "it has 'x', and the schema has not"),
        ('{"k": 7, "v": {"b": 1}}', "the schema has 'v.a', and it has not"),
        ('{"k": 7, "v": {"a": "x"}}', "is no "),
        ('{"k": 7, "k": 8, "v": null}', "there twice"),
    ],
)
def test_a_row_that_is_none_of_the_schema_is_refused(row: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        restored.batch([(row, ())], schema_text.parse("k int, v struct<a:int>"))


def test_columns_may_be_lacking_or_left_out_by_name() -> None:
    schema = schema_text.parse("k int, v int")
    rows = [('{"k": 7}', ()), ('{"k": 8, "v": 1, "op": "d"}', ())]
    batch = restored.batch(rows, schema, lacking=["v"], without=["op"])
    assert batch.to_pylist() == [{"k": 7, "v": None}, {"k": 8, "v": 1}]
