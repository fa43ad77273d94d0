"""Options and columns of a query that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark_mysql.target.columns import kind_of
from pyspark_mysql.target.names import PREFIX
from sparkonce import change, templates
from sparkonce.change import Append, Change, Delete, Names, Update, Upsert
from sparkonce.errors import OptionError
from sparkonce.templates import Segment, Template

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.checks import Contradiction
    from sparkonce.options import Options

EXACT_KEY = re.compile(
    r"boolean|tinyint|smallint|int|bigint|decimal.*|string|binary|date|timestamp.*|time|interval"
)
TIMESTAMPS = ("timestamp", "timestamp_ntz")
SEQUENCES = ("tinyint", "smallint", "int", "bigint", "decimal", "date", *TIMESTAMPS)
OWN_COLUMNS = ("sparkonce_flag", "sparkonce_row")
"""Additional columns of a temporary table: whether the row deletes, and its number."""


def of_names(table: Names, options: Options) -> Iterator[Contradiction]:
    """Reject reserved names, and a table of bad rows that is the target, whatever its case."""
    letters = (table[0], *(options["deadLetter"] or ("",)))[-2:]
    for option, name in (("dbtable", table[1]), ("deadLetter", letters[1])):
        yield (
            name.lower().startswith(PREFIX),
            f"Option {option} is {name}, but names that begin with {PREFIX} are reserved",
            "the connector's own tables and temporary ones have these names, and could collide",
            "rename the table",
        )
    yield (
        [name.lower() for name in letters] == [name.lower() for name in table],
        f"Options dbtable and deadLetter both name {'.'.join(letters)}",
        "bad rows would be among the stored rows",
        "name another table in deadLetter; it is created on first use",
    )


def of_change(does: Change, options: Options) -> Iterator[Contradiction]:
    """Reject options that the write mode excludes."""
    mode = change.mode_of(does)
    given = "opColumn" if options["opColumn"] else "sequenceColumn"
    for name, value, fits in (
        ("writeMode", mode, "upsert"),
        ("atomicity", options["atomicity"], "epoch"),
        ("nulls", options["nulls"], "write"),
    ):
        yield (
            options[given] and value != fits,
            f"Options {given} and {name}={value} contradict each other",
            "only the last row of each key in an epoch is written",
            f"omit {name}, or set it to {fits}",
        )
    yield (
        options["onDuplicate"] == "ignore" and not isinstance(does, Append),
        f"Options onDuplicate=ignore and writeMode={mode} contradict each other",
        "only an appended row can be a duplicate",
        "omit onDuplicate, or omit key and set writeMode=append",
    )
    yield (
        options["replaceWhere"] and not isinstance(does, Append),
        f"Options replaceWhere and writeMode={mode} contradict each other",
        "the sink counts whether all rows of the batch fulfil the condition, so each must be new",
        "omit key, or set writeMode=append",
    )
    yield (
        options["replaceWhere"] and options["onDuplicate"] == "ignore",
        "Options replaceWhere and onDuplicate=ignore contradict each other",
        "the sink counts whether all rows of the batch fulfil the condition",
        "omit onDuplicate",
    )
    yield (
        options["atomicity"] == "chunk" and isinstance(options["dbtable"][-1], Template),
        "Option atomicity=chunk and a template in dbtable contradict each other",
        "all tables of an epoch change in one transaction",
        "omit atomicity",
    )
    yield (
        isinstance(does, Delete | Update) and options["createTable"],
        f"Options writeMode={mode} and createTable contradict each other",
        f"a new table has no rows to {mode}",
        "omit createTable",
    )
    yield (
        isinstance(does, Update) and options["nulls"] == "keep",
        "Options writeMode=update and nulls=keep contradict each other",
        "only the last row of each key in an epoch is written",
        "omit nulls, or use writeMode=upsert",
    )


def of_columns(does: Change, key: Names, kinds: Mapping[str, str]) -> Iterator[Contradiction]:
    """Reject columns whose types or names the write mode excludes."""
    op, order = (does.op, does.order) if isinstance(does, Upsert) else (None, None)
    for option, column, allowed in (
        ("opColumn", op, ("string",)),
        ("sequenceColumn", order, SEQUENCES),
    ):
        kind = kinds[column] if column else ""
        yield (
            column and kind.partition("(")[0] not in allowed,
            f"Option {option} names column {column!r} of type {kind}",
            f"its type must be {', '.join(allowed)}",
            "cast it before the sink",
        )
    yield (
        isinstance(does, Update) and not set(kinds) - set(key),
        "The query has no column besides those of option key",
        "writeMode=update sets the other columns of stored rows",
        "select the columns to set",
    )
    for name in key:
        yield (
            not EXACT_KEY.fullmatch(kinds[name]),
            f"Option key names column {name!r} of type {kinds[name]}",
            "the server does not compare values of this type exactly",
            "cast it to string, decimal or a whole number before the sink",
        )
    temporary = isinstance(does, Delete | Update) or op or order
    for name in key if isinstance(does, Delete) else kinds:
        if temporary and name != op and name.lower() in OWN_COLUMNS:
            raise reserved_column(name)


def of_row(
    row: str, schema: pa.Schema, parts: Sequence[Segment], options: Options
) -> Iterator[Contradiction]:
    """Reject options that rows as JSON objects exclude."""
    kind = kind_of(schema.field(row))
    yield (
        kind != "string",
        f"Option rowColumn names column {row!r} of type {kind}",
        "it must be a string, for example to_json(struct(*))",
        "cast it before the sink, or name another column",
    )
    yield (
        not templates.is_invertible(parts),
        "Option rowColumn needs a template of one column, without a date, in option dbtable",
        "the columns of a single table can be columns of the query, and a dead letter takes the"
        " value of the column from the name",
        "write dbtable={_table}, or select the columns",
    )
    for name, given, why, todo in (
        ("createTable", options["createTable"], "JSON does not tell types", "create the tables"),
        ("addColumns", options["addColumns"], "JSON does not tell types", "alter the tables"),
        ("replaceWhere", options["replaceWhere"], "it is for a single table", ""),
        ("sequenceColumn", options["sequenceColumn"], "rows are written in their order", ""),
        (
            f"writeMode={options['writeMode']}",
            options["writeMode"] not in (None, "append", "upsert"),
            "a row is written as a whole",
            "",
        ),
    ):
        both = f"Options rowColumn and {name} contradict each other"
        yield given, both, why, todo or f"omit {name.partition('=')[0]}"


def reserved_column(name: str) -> OptionError:
    """The error for a column whose name the connector needs."""
    return OptionError(
        f"Column {name!r} has a name that the connector needs in its temporary table",
        why="the connector numbers and flags rows in that table",
        todo="rename the column, in the query and in the table",
    )
