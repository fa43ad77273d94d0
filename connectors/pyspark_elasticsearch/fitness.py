"""Options that don't fit each other or the schema, refused before any server is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch import names
from pyspark_elasticsearch.guarded import GUARD, SCRIPTED
from sparkonce import checks, operations
from sparkonce.errors import OptionError

METADATA = (
    *("_data_stream_timestamp", "_field_names", "_id", "_ignored", "_ignored_source", "_index"),
    *("_inference_fields", "_nested_path", "_routing", "_seq_no", "_source", "_tier", "_version"),
)
"""Fields that no document can set, in some release or other."""


def require_no_contradiction(
    mode: str, key: Sequence[str], parts: Sequence[names.Part], options: Mapping[str, Any]
) -> None:
    """Refuse options that exclude or need each other.

    Args:
        mode: of writing, also where the options leave it out.
        key: columns of the id.
        parts: of the template that option ``index`` is; empty if it is none.
        options: as parsed.

    Raises:
        OptionError: it says which.
    """
    checks.refuse((*_of_modes(mode, key, options), *_of_targets(mode, parts, options)))
    checks.require_dead_letter(options, "an index", "orders-bad")


def _of_modes(
    mode: str, key: Sequence[str], options: Mapping[str, Any]
) -> Iterator[checks.Contradiction]:
    both = f"Options writeMode={mode} and {{}} contradict each other"
    yield (
        mode != "append" and not key,
        f"Option key is missing, and writeMode={mode} needs it",
        "it says which document a row is about",
        'add .option("key", ...), the columns that name a row',
    )
    yield (
        mode == "append" and key,
        both.format("key"),
        "a document that is there already could be this very row, sent before, or another",
        "leave key out, or use writeMode=upsert",
    )
    yield (
        mode != "update" and options["nulls"] == "keep",
        both.format("nulls=keep"),
        "nulls says what an update does with a null; an upsert writes the whole document",
        "leave nulls out, or use writeMode=update",
    )
    for option, modes in {"opColumn": ("upsert",), "versionColumn": ("upsert", "delete")}.items():
        yield (
            options[option] and mode not in modes,
            both.format(option),
            f"{option} is for {' and '.join(modes)}",
            f"leave {option} out",
        )
    yield (
        mode in SCRIPTED and options["pipeline"],
        both.format("pipeline"),
        "of each row a pipeline would see the key alone, and what it drops is not changed",
        "leave pipeline out",
    )
    yield (
        mode == "delete" and options["createIndex"],
        both.format("createIndex"),
        "a new index would hold nothing to delete",
        "leave createIndex out",
    )


def _of_targets(
    mode: str, parts: Sequence[names.Part], options: Mapping[str, Any]
) -> Iterator[checks.Contradiction]:
    alias, index = options["visibleAlias"], options["index"]
    yield (
        parts and mode in SCRIPTED,
        f"Options writeMode={mode} and index={index}, a template, contradict each other",
        "such an index would be made by its first row, without the mapping of the guard that keeps"
        " a row from taking effect twice",
        "name one index, or use writeMode=upsert",
    )
    yield (
        parts and options["createIndex"],
        "Option createIndex and a template as index contradict each other",
        "such indices come to be with their first row",
        "leave createIndex out, and make an index template (PUT _index_template/...)",
    )
    yield (
        alias and not options["sinkId"],
        "Option visibleAlias needs sinkId",
        "the alias shows what this sink has written; under the name of a query, a new checkpoint"
        " would begin with an empty one",
        "set sinkId, for example sinkId=orders",
    )
    yield (
        alias and (mode != "append" or parts),
        f"Option visibleAlias is for writeMode=append and one index, not for {mode} into {index}",
        "a document that is written over can't be hidden, and neither can other indices",
        "leave visibleAlias out",
    )


def require_columns_fit(
    mode: str,
    key: Sequence[str],
    named: Mapping[str, str | None],
    schema: pa.Schema,
) -> None:
    """Refuse a column that can't be stored, or is of a type that its option can't use.

    Args:
        mode: of writing.
        key: columns of the id.
        named: the columns that other options name.
        schema: of the query.

    Raises:
        OptionError: it says which.
    """
    for field in schema:
        _require_writable(field)
        if mode in SCRIPTED:
            _require_scriptable(field, mode)
    for option, fits, wanted in (
        ("key", _is_unique, "a type whose equal values have one and the same text"),
        ("opColumn", types.is_string, "a string"),
        ("versionColumn", _is_version, "a whole number, date or timestamp"),
        ("routing", _is_flat, "one text, so no array, map or struct"),
    ):
        for column in key if option == "key" else [named[option]]:
            if column and not fits(schema.field(column).type):
                raise OptionError(
                    f"Option {option} names column {column!r} of type {schema.field(column).type}",
                    why=f"it must be {wanted}",
                    todo="cast it before the sink, or name another column",
                )
    operations.require_unstored(named["opColumn"], *key, named["versionColumn"])


def added(key: Sequence[str], routing: str | None, schema: pa.Schema) -> list[str]:
    """The columns that an increment adds: all that don't say which document it is.

    Raises:
        OptionError: one can't be added, or there is none.
    """
    fields = [field for field in schema if field.name not in (*key, routing)]
    adds = "Elasticsearch adds 64-bit integers and binary floats only"
    return checks.require_addable(fields, checks.is_number, adds)


def _is_version(kind: pa.DataType) -> bool:
    """Whether values of this type can be a document's version."""
    return bool(types.is_integer(kind) or types.is_date(kind) or types.is_timestamp(kind))


def _is_flat(kind: pa.DataType) -> bool:
    return not types.is_nested(kind)


def _is_unique(kind: pa.DataType) -> bool:
    many = types.is_floating(kind) or types.is_binary(kind) or types.is_null(kind)
    return _is_flat(kind) and not many


def _require_writable(field: pa.Field) -> None:
    checks.require_texts([field], "Elasticsearch")
    steps = field.name.split(".")
    why = ""
    if not all(step.strip() for step in steps):
        why = "a dot in the name of a field leads into an object, and no part may be empty"
    elif steps[0] == GUARD or field.name in METADATA:
        why = "Elasticsearch or this connector keep something else under that name"
    if why:
        raise OptionError(
            f"Column {field.name!r} can't be written", why, "rename the column before the sink"
        )


def _require_scriptable(field: pa.Field, mode: str) -> None:
    """Refuse what the script of an update or increment would do otherwise than asked."""
    if "." in field.name:
        raise OptionError(
            f"Column {field.name!r} can't be written by writeMode={mode}",
            why="a script puts it beside the object that the dot leads into, and the field would"
            " have two values",
            todo="rename the column, or with writeMode=update write the whole object, a struct",
        )
    if types.is_nested(field.type) and _has_decimal(field.type):
        raise OptionError(
            f"Column {field.name!r} of type {field.type} can't be written by writeMode={mode}",
            why="decimals in it are numbers, and a script keeps 17 digits of them",
            todo="cast them to string or double before the sink",
        )


def _has_decimal(kind: pa.DataType) -> bool:
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return bool(types.is_decimal(kind)) or any(map(_has_decimal, inner))
