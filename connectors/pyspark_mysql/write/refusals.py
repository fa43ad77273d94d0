"""Rows that the server does not take: how they are found, named, and put aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pymysql

from pyspark_mysql.server.failures import failure_of, message
from pyspark_mysql.server.literals import value
from pyspark_mysql.write.chunks import EncodedRows
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.statements import OTHER
from sparkonce.errors import FailureKind, SparkonceError
from sparkonce.exactly_once.bad_rows import OF_TASK
from sparkonce.values import from_json, letters, spark_types
from sparkonce.values.letters import Letter

PutAside = Callable[[Letter, "int | None", str], None]
"""Takes the letter of a row, the partition that it came in if that is known, and the reason in
words that others share. Raises TooManyBadRows where more can't be stored than may go aside."""

Rows = TypeVar("Rows", EncodedRows, range)


class RefusedRow(SparkonceError):
    """The server refused this row; nothing of its statement took effect."""


class Refusals:
    """What becomes of the rows of an epoch that can't be stored.

    All methods raise `RefusedRow` where there is no `put_aside`: it stops the epoch.

    Attributes:
        ambiguous: whether a row may be taken for a stored one that has another key.
        partition: whose rows are applied now; None if they may come from several.
    """

    def __init__(self, detail: TableRows, put_aside: PutAside | None, *, ambiguous: bool) -> None:
        self.detail, self.put_aside, self.ambiguous = detail, put_aside, ambiguous
        self.partition: int | None = None

    def of_task(self, letter: Letter) -> None:
        """Put a row aside that a task has refused."""
        todo = "set option onBadRow=deadLetter again"
        self._put_aside(RefusedRow(letter.reason, OF_TASK, todo), letter)

    def by_server(self, row: list[str], error: pymysql.MySQLError) -> None:
        """Refuse a row, by its literals, that the server does not take."""
        if self.ambiguous and OTHER in str(error):
            refused = RefusedRow(
                "it has another stored row's value in another unique key",
                "as an update it would change that row, whose key is another",
                "mend the row or the stored one, or drop the other unique key",
            )
        else:
            refused = RefusedRow(message(error), *failure_of(error)[1:])
        self.refuse(row, refused)

    def refuse(self, row: list[str], error: RefusedRow) -> None:
        """Refuse a row, by its literals; it is named by its key, or by all of it without one."""
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
    """The letter of a row by its literals, and a flag behind them if rows are folded."""
    named = dict(zip(detail.columns, row, strict=False))
    trees: dict[str, Any] = {name: value(literal) for name, literal in named.items()}
    schema = spark_types.parse(detail.schema)
    for field in schema:
        if pa.types.is_nested(field.type) and isinstance(trees.get(field.name), str):
            trees[field.name] = from_json.parse_tree(trees[field.name])
    if detail.op:
        trees[detail.op] = "d" if row[-1] == "1" else "u"
    return letters.of_trees(reason, trees, schema, detail.key)


def sent_in_halves(
    parts: Iterable[Rows], send: Callable[[Rows], object]
) -> Iterator[tuple[Rows, pymysql.MySQLError]]:
    """Send rows, part by part; what the server does not take of them, row by row.

    A part that is refused is sent again in halves, and these in halves, in their order.

    Raises:
        pymysql.MySQLError: it is not a row that the server objects to.
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
                    # The first half is taken off first: rows take effect in their order.
                    left += [rows[middle:], rows[:middle]]
                else:
                    yield rows, error


def _shortened(literal: str) -> str:
    return literal if len(literal) <= 80 else f"{literal[:76]}...'"
