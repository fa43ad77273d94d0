"""Options that don't fit each other or the schema, refused before any server is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch import names
from pyspark_elasticsearch.guarded import GUARD, SCRIPTED
from sparkonce import checks, operations
from sparkonce.errors import OptionError

KEYED = ("upsert", "update", "increment", "delete")
FIXED = {
    "opColumn": ("upsert",),
    "sequenceColumn": ("upsert",),
    "versionColumn": ("upsert", "delete"),
}
"""Options that only some write modes know."""


METADATA = (
    *("_data_stream_timestamp", "_field_names", "_id", "_ignored", "_ignored_source", "_index"),
    *("_inference_fields", "_nested_path", "_routing", "_seq_no", "_source", "_tier", "_version"),
)
"""Fields that no document can set, in some release or other."""


def require_writable(field: pa.Field) -> None:
    """Refuse a column that can't be stored.

    Raises:
        OptionError: it says which.
    """
    checks.require_texts([field], "Elasticsearch")
    steps = field.name.split(".")
    if not all(step.strip() for step in steps):
        raise OptionError(
            f"Column {field.name!r} can't be written",
            why="a dot in the name of a field leads into an object, and no part may be empty",
            todo="rename the column before the sink",
        )
    if steps[0] == GUARD or field.name in METADATA:
        raise OptionError(
            f"Column {field.name!r} can't be written",
            why="Elasticsearch or this connector keep something else under that name",
            todo="rename the column before the sink",
        )


def require_types(
    schema: pa.Schema,
    key: Sequence[str],
    op: str | None,
    version: str | None,
    order: str | None,
    routing: str | None,
) -> None:
    """Refuse a column of a type that its option can't use.

    Raises:
        OptionError: it says which.
    """
    for name in key:
        kind = schema.field(name).type
        if (
            types.is_floating(kind)
            or types.is_nested(kind)
            or types.is_null(kind)
            or types.is_binary(kind)
        ):
            raise OptionError(
                f"Option key names column {name!r} of type {kind}",
                why="equal values of this type can have different texts, or none, so a row had no"
                " one id",
                todo="cast it to string, decimal or a whole number before the sink",
            )
    for option, column, fits, wanted in (
        ("opColumn", op, types.is_string, "string"),
        ("versionColumn", version, types.is_integer, "a whole number"),
        ("sequenceColumn", order, _is_ordered, "a whole number, decimal, date or timestamp"),
    ):
        if column is not None and not fits(schema.field(column).type):
            raise OptionError(
                f"Option {option} names column {column!r} of type {schema.field(column).type}",
                why=f"it must be {wanted}",
                todo="cast it before the sink",
            )
    if routing is not None and types.is_nested(schema.field(routing).type):
        raise OptionError(
            f"Option routing names column {routing!r} of type {schema.field(routing).type}",
            why="a routing is one text",
            todo="name a column of strings or numbers, or a field of it as a column of its own",
        )
    operations.require_unstored(op, *key, version)


def _is_ordered(kind: pa.DataType) -> bool:
    exact = types.is_integer(kind) or types.is_decimal(kind)
    return bool(exact or types.is_date(kind) or types.is_timestamp(kind))


def require_no_contradiction(mode: str, key: Sequence[str], options: Mapping[str, Any]) -> None:
    """Refuse options that exclude each other.

    Raises:
        OptionError: it says which.
    """
    if mode in KEYED and not key:
        raise OptionError(
            f"Option key is missing, and writeMode={mode} needs it",
            why="it says which document a row is about",
            todo='add .option("key", ...), the columns that name a row',
        )
    if mode == "append" and key:
        raise OptionError(
            "Options writeMode=append and key contradict each other",
            why="a document that is there already could be this very row, sent before, or another",
            todo="leave key out, or use writeMode=upsert",
        )
    if mode != "update" and options["nulls"] == "keep":
        raise OptionError(
            f"Options writeMode={mode} and nulls=keep contradict each other",
            why="nulls says what an update does with a null; an upsert writes the whole document",
            todo="leave nulls out, or use writeMode=update",
        )
    for option, modes in FIXED.items():
        if options[option] and mode not in modes:
            raise OptionError(
                f"Options writeMode={mode} and {option} contradict each other",
                why=f"{option} is for {' and '.join(modes)}",
                todo=f"leave {option} out",
            )
    if options["sequenceColumn"] and options["versionColumn"]:
        raise OptionError(
            "Options sequenceColumn and versionColumn contradict each other",
            why="both say which row of a key wins, the one in an epoch, the other for ever",
            todo="leave one of them out",
        )
    if options["versioning"] == "none" and mode not in ("upsert", "delete"):
        raise OptionError(
            f"Options writeMode={mode} and versioning=none contradict each other",
            why=f"{mode} gives documents no versions",
            todo="leave versioning out",
        )
    if options["versioning"] == "none" and options["versionColumn"]:
        raise OptionError(
            "Options versioning=none and versionColumn contradict each other",
            why="the one says that documents get no version, the other which",
            todo="leave one of them out",
        )
    checks.require_dead_letter(options, "an index", "orders-bad")


def added(
    key: Sequence[str], routing: str | None, parts: Sequence[names.Part], schema: pa.Schema
) -> list[str]:
    """The columns that an increment adds: all that don't say which document it is.

    Raises:
        OptionError: one can't be added, or there is none.
    """
    named = (*key, routing, *names.columns(parts))
    fields = [field for field in schema if field.name not in named]
    adds = "Elasticsearch adds 64-bit integers and binary floats only"
    return checks.require_addable(fields, checks.is_number, adds)


def require_template_fits(parts: Sequence[names.Part], options: Mapping[str, Any]) -> None:
    """Refuse a template where an index must be known.

    Raises:
        OptionError: it says which.
    """
    if parts and options["createIndex"]:
        raise OptionError(
            "Option createIndex and a template as index contradict each other",
            why="such indices come to be with their first row",
            todo="leave createIndex out, and make an index template (PUT _index_template/...)",
        )


def require_script_fits(mode: str, schema: pa.Schema, options: Mapping[str, Any]) -> None:
    """Refuse what the script of an update or increment would do otherwise than asked.

    Raises:
        OptionError: it says which.
    """
    if mode not in SCRIPTED:
        return
    if options["pipeline"]:
        raise OptionError(
            f"Options writeMode={mode} and pipeline contradict each other",
            why="of each row a pipeline would see the key alone, and what it drops is not changed",
            todo="leave pipeline out",
        )
    for field in schema:
        if "." in field.name:
            raise OptionError(
                f"Column {field.name!r} can't be written by writeMode={mode}",
                why="a script puts it beside the object that the dot leads into, and the field"
                " would have two values",
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


def require_visible(mode: str, parts: Sequence[names.Part], options: Mapping[str, Any]) -> None:
    """Refuse ``visibility=epoch`` where it can't be kept.

    Raises:
        OptionError: it says which.
    """
    if (options["visibility"] == "epoch") != bool(options["visibleAlias"]):
        raise OptionError(
            "Options visibility=epoch and visibleAlias belong together",
            why="the one says that readers see whole epochs, the other by which name",
            todo="set both, for example visibleAlias=orders-visible, or none",
        )
    if options["visibleAlias"] and not options["sinkId"]:
        raise OptionError(
            "Option visibility=epoch needs sinkId",
            why="the alias shows what this sink has written; under the name of a query, a new"
            " checkpoint would begin with an empty one",
            todo="set sinkId, for example sinkId=orders",
        )
    if options["visibleAlias"] and (mode != "append" or parts):
        raise OptionError(
            f"Option visibility=epoch is for writeMode=append and one index, not for {mode} into"
            f" {options['index']}",
            why="a document that is written over can't be hidden, and neither can other indices",
            todo="leave visibility out",
        )
