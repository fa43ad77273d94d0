"""Finds, names and sets aside the rows that the server rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pymysql

from pyspark_mysql.server.failures import failure_of, message, number
from pyspark_mysql.server.literals import value
from pyspark_mysql.write.chunks import EncodedRows
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.statements import OTHER
from sparkonce.errors import FailureKind, SparkonceError
from sparkonce.exactly_once.bad_rows import OF_TASK
from sparkonce.values import from_json, letters, spark_types
from sparkonce.values.letters import Letter

PutAside = Callable[[Letter, "int | None", str], None]
"""Takes the dead letter of a row, its partition if known, and the reason without values of the row.
Raises TooManyBadRows if the epoch has more bad rows than option ``maxBadRows`` allows."""

DUPLICATE = 1062
Rows = TypeVar("Rows", EncodedRows, range)


class RefusedRow(SparkonceError):
    """The server rejected this row; its statement had no effect."""


class Refusals:
    """Handles the bad rows of an epoch.

    Without `put_aside` all methods raise `RefusedRow`, which stops the epoch.

    Attributes:
        ambiguous: whether the server may match a row with a stored row that has another key.
        partition: whose rows are being applied; None if they may be of several partitions.
    """

    def __init__(self, detail: TableRows, put_aside: PutAside | None, *, ambiguous: bool) -> None:
        self.detail, self.put_aside, self.ambiguous = detail, put_aside, ambiguous
        self.partition: int | None = None

    def of_task(self, letter: Letter) -> None:
        """Set aside a row that a task has rejected."""
        todo = "set option onBadRow=deadLetter again"
        self._put_aside(RefusedRow(letter.reason, OF_TASK, todo), letter)

    def by_server(self, row: list[str], error: pymysql.MySQLError) -> None:
        """Refuse a row that the server rejects; `row` has its literals."""
        if self.ambiguous and OTHER in str(error):
            refused = RefusedRow(
                "another stored row has its value in another unique key",
                "as an update it would change that row, which has another key",
                "correct the row or the stored one, or drop the other unique key",
            )
        else:
            why, todo = failure_of(error)[1:]
            if number(error) == DUPLICATE and (self.detail.replaces or self.detail.set_columns):
                todo = "correct the row, or change the stored one"
            refused = RefusedRow(message(error), why, todo)
        self.refuse(row, refused)

    def refuse(self, row: list[str], error: RefusedRow) -> None:
        """Refuse a row; the error names its key, or all its columns if it has no key."""
        literals = dict(zip(self.detail.columns, row, strict=False))
        key = {name: literals[name] for name in self.detail.key} or literals
        named = ", ".join(f"{name}={_shortened(literal)}" for name, literal in key.items())
        what = f"MySQL can't store the row with {named}: {error.what}"
        letter = _letter(what, row, self.detail) if self.put_aside else None
        self._put_aside(RefusedRow(what, error.why, error.todo), letter)

    def _put_aside(self, error: RefusedRow, letter: Letter | None) -> None:
        if self.put_aside is None or letter is None:
            raise error
        self.put_aside(letter, self.partition, error.why)


def _letter(reason: str, row: Sequence[str], detail: TableRows) -> Letter:
    """The dead letter of a row, from its literals and, if rows are folded, the flag after them."""
    named = dict(zip(detail.columns, row, strict=False))
    trees: dict[str, Any] = {name: value(literal) for name, literal in named.items()}
    schema = spark_types.parse(detail.fields or detail.schema)
    for field in schema:
        if pa.types.is_nested(field.type) and isinstance(trees.get(field.name), str):
            trees[field.name] = from_json.parse_tree(trees[field.name])
    if detail.row:
        trees = {detail.row: letters.of_trees(reason, trees, schema).row}
        schema = spark_types.parse(detail.schema)
    if detail.op:
        trees[detail.op] = "d" if row[-1] == "1" else "u"
    return letters.of_trees(reason, {**detail.filled, **trees}, schema, detail.key)


def sent_in_halves(
    parts: Iterable[Rows], send: Callable[[Rows], object]
) -> Iterator[tuple[Rows, pymysql.MySQLError]]:
    """Send rows part by part, and yield each row that the server rejects, with its error.

    If the server rejects a part, its halves are sent in order, and so on down to single rows.

    Raises:
        pymysql.MySQLError: the server's error does not concern a row.
    """
    for part in parts:
        left = [part]
        while left:
            rows = left.pop()
            try:
                send(rows)
            except pymysql.MySQLError as error:
                if failure_of(error).kind is not FailureKind.ROW:
                    raise
                middle = len(rows) // 2
                if middle:
                    # pop takes the first half first: rows take effect in order.
                    left += [rows[middle:], rows[:middle]]
                else:
                    yield rows, error


def _shortened(literal: str) -> str:
    return literal if len(literal) <= 80 else f"{literal[:76]}...'"
