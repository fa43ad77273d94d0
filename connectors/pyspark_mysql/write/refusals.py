"""Rows that the server does not take: how they are found, named, and put aside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import pymysql

from pyspark_mysql.server.failures import Kind, known, message
from pyspark_mysql.target.coercions import Coercion
from pyspark_mysql.write.aside import Aside
from pyspark_mysql.write.letters import of_literals
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.statements import OTHER
from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.bad_rows import OF_TASK
from sparkonce.values.letters import Letter


class RefusedRow(SparkonceError):
    """The server refused this row; nothing of its statement took effect."""


class Refusals:
    """What becomes of the rows of an epoch that can't be stored.

    Args:
        detail: of the manifest.
        aside: takes them; None if one of them stops the epoch.
        ambiguous: whether a row may be taken for a stored one that has another key.

    Attributes:
        partition: whose rows are applied now; None if they may come from several.
    """

    def __init__(self, detail: TableRows, aside: Aside | None, *, ambiguous: bool) -> None:
        self.detail, self.aside, self.ambiguous = detail, aside, ambiguous
        self.partition: int | None = None

    def of_task(self, letter: Letter) -> None:
        """Put a row aside that a task has refused.

        Raises:
            RefusedRow: rows do not go aside any more.
        """
        todo = "set option onBadRow=deadLetter again"
        self._put_aside(RefusedRow(letter.reason, OF_TASK, todo), letter)

    def by_server(self, row: list[str], error: pymysql.MySQLError) -> None:
        """Refuse a row, by its literals, that the server does not take.

        Raises:
            RefusedRow: it stops the epoch.
        """
        if self.ambiguous and OTHER in str(error):
            refused = RefusedRow(
                "it has another stored row's value in another unique key",
                "as an update it would change that row, whose key is another",
                "mend the row or the stored one, or drop the other unique key",
            )
        else:
            refused = RefusedRow(message(error), *known(error)[1:])
        self.refuse(row, refused)

    def null(self, row: list[str], name: str, coercion: Coercion) -> None:
        """Refuse a row, by its literals, for a null of which the server would make a value.

        Raises:
            RefusedRow: it stops the epoch.
        """
        what = f"column {name!r} can't be null"
        self.refuse(row, RefusedRow(what, coercion.why, coercion.todo))

    def refuse(self, row: list[str], error: RefusedRow) -> None:
        """Name a row by its key, or by all of it where it has none.

        Raises:
            RefusedRow: it stops the epoch.
        """
        literals = dict(zip(self.detail.columns, row, strict=False))
        key = {name: literals[name] for name in self.detail.key} or literals
        shown = ", ".join(f"{name}={_shortened(literal)}" for name, literal in key.items())
        what = f"MySQL can't store the row with {shown}: {error.what}"
        letter = of_literals(what, row, self.detail) if self.aside else None
        self._put_aside(RefusedRow(what, error.why, error.todo), letter)

    def _put_aside(self, error: RefusedRow, letter: Letter | None) -> None:
        if self.aside is None or letter is None:
            raise error
        self.aside.take(letter, self.partition, error.why)


class Sliced(Protocol):
    """Rows that can be cut between any two of them."""

    def __len__(self) -> int:
        """How many there are."""

    def __getitem__(self, which: slice, /) -> Any:
        """Some of them."""


Part = TypeVar("Part", bound=Sliced)


def sent_in_halves(
    parts: Iterable[Part], send: Callable[[Part], object]
) -> Iterator[tuple[Part, pymysql.MySQLError]]:
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
                if known(error).kind is not Kind.ROW:
                    raise
                middle = len(rows) // 2
                if middle:
                    # The first half is taken off first: rows take effect in their order.
                    left += [rows[middle:], rows[:middle]]
                else:
                    yield rows, error


def _shortened(literal: str) -> str:
    return literal if len(literal) <= 80 else f"{literal[:76]}...'"
