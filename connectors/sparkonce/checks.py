"""Checks of options and schema that all connectors share; they need no server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from sparkonce.errors import OptionError
from sparkonce.option_values import suggestion
from sparkonce.values import spark_types, text

Contradiction = tuple[Any, str, str, str]
"""A condition under which options contradict each other or the target; what, why, what to do."""


def refuse(contradictions: Iterable[Contradiction]) -> None:
    """Reject options for which one of these conditions holds.

    Raises:
        OptionError: it names the first one.
    """
    for when, what, why, todo in contradictions:
        if when:
            raise OptionError(what, why, todo)


def column(option: str, name: str, schema: pa.Schema) -> str:
    """The column that an option names; an exact match wins over one in another case.

    Errors show `option` unchanged: its name, or name and value.

    Raises:
        OptionError: the query lacks the column, or has several that match.
    """
    found = [other for other in schema.names if other == name]
    found = found or [other for other in schema.names if other.lower() == name.lower()]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise OptionError(
            f"Option {option} names column {name!r}, which may be one of several",
            why=f"the query has {', '.join(map(repr, found))}, which differ only in case",
            todo="spell one of them exactly, or rename the others before the sink",
        )
    raise OptionError(
        f"Option {option} names column {name!r}, which the query does not have",
        why=f"its columns are {', '.join(schema.names)}",
        todo=suggestion(name, schema.names) or "name one of them",
    )


def key_column(option: str, name: str, schema: pa.Schema) -> str:
    """The column that an option makes part of a key.

    See `column`.

    Raises:
        OptionError: the query lacks the column, or equal values of it have different texts.
    """
    found = column(option, name, schema)
    kind = spark_types.spark_type(schema.field(found))
    if "collate" in kind:
        raise OptionError(
            f"Option {option} names column {found!r} of type {kind}",
            why="its collation treats different strings as equal, so one row of Spark would become"
            " several in the store",
            todo="cast it to a plain string before the sink; if case does not matter,"
            f" cast(lower({found}) as string)",
        )
    return found


def require_texts(fields: Iterable[pa.Field], store: str) -> list[str]:
    """The names of columns, all of which can be stored as text or JSON.

    Raises:
        OptionError: the type of a column has no documented form.
    """
    names = []
    for field in fields:
        problem = text.check(field.type)
        if problem:
            raise OptionError(
                f"Column {field.name!r} can't be written: {problem}",
                why=f"its type has no documented form in {store}",
                todo="cast it, for example to string, or drop it before the sink",
            )
        names.append(str(field.name))
    return names


def require_addable(
    fields: Iterable[pa.Field], can_add: Callable[[pa.Field], bool], adds: str
) -> list[str]:
    """The names of the columns that ``writeMode=increment`` adds.

    `adds` says in errors what the store can add.

    Raises:
        OptionError: a column can't be added, or all belong to the key.
    """
    names = []
    for field in fields:
        if not can_add(field):
            raise OptionError(
                f"Option writeMode=increment can't add column {field.name!r} of type"
                f" {spark_types.spark_type(field)}",
                why=adds,
                todo="drop the column, make it part of the key, or cast it to bigint or double",
            )
        names.append(str(field.name))
    if not names:
        raise OptionError(
            "Option writeMode=increment has nothing to add",
            why="all columns are part of the key",
            todo="add a number column, for example lit(1).alias('count')",
        )
    return names


def is_number(field: pa.Field) -> bool:
    """Whether a column is a whole number or a binary float."""
    return bool(pa.types.is_integer(field.type) or pa.types.is_floating(field.type))


def dead_letter(options: Mapping[str, Any]) -> Contradiction:
    """One of ``onBadRow=deadLetter`` and ``deadLetter`` without the other."""
    return (
        (options.get("onBadRow") == "deadLetter") != bool(options.get("deadLetter")),
        "Options onBadRow=deadLetter and deadLetter belong together",
        "the first one keeps bad rows, the second one says where",
        "set both, for example deadLetter=orders_bad, or none",
    )


def version(options: Mapping[str, Any]) -> Iterator[Contradiction]:
    """One of ``txnAppId`` and ``txnVersion`` without the other, or two names of one sink."""
    yield (
        (options["txnAppId"] is None) != (options["txnVersion"] is None),
        "Options txnAppId and txnVersion belong together",
        "the first one names the application, the second one numbers its writes",
        "set both, for example txnAppId=nightly and txnVersion=20261124, or none",
    )
    yield (
        options["txnAppId"] is not None and options["sinkId"] is not None,
        "Options txnAppId and sinkId contradict each other",
        "each of them names the ledger that records the last batch",
        "omit sinkId",
    )
