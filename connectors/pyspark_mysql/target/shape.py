"""What tasks know of the target: the columns of it that would make other values of some."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_mysql.target.coercions import Coercion, coercions, members, of_null
from pyspark_mysql.target.columns import TEXTS, Column, named
from sparkonce import codec
from sparkonce.errors import StoreRefused
from sparkonce.protocol import Plan, digest

if TYPE_CHECKING:
    from pyspark_mysql.write.plan import TableRows

FACTS = ("kind", "shown", "charset", "width", "room", "nullable", "numbered")
"""What of a column says which values it holds as they are."""


@dataclass(frozen=True)
class Shape:
    """Those columns, by their names in the query: rows are checked against them."""

    columns: Mapping[str, Column]

    @classmethod
    def of(cls, detail: TableRows, columns: Iterable[Column]) -> Shape:
        """The shape of a table for a plan."""
        there = named(columns, detail.columns)
        return cls(
            {
                name: Column(name, **{fact: getattr(column, fact) for fact in FACTS})
                for name, column in there.items()
                if of_null(column) or _of_values(name, column, detail)
            }
        )

    def checks(self, detail: TableRows) -> dict[str, list[Coercion]]:
        """What tasks refuse, by column. Of nulls those of change streams count in the end only."""
        found = {name: _of_values(name, column, detail) for name, column in self.columns.items()}
        for name, column in self.columns.items():
            null = None if detail.folded else of_null(column)
            found[name] += [null] if null else []
        return found


def _of_values(name: str, column: Column, detail: TableRows) -> list[Coercion]:
    return coercions(column, detail.kinds[name], in_key=name in detail.looked_up)


def shaped(plan: Plan[TableRows], columns: Iterable[Column]) -> Plan[TableRows]:
    """The plan for a table with these columns."""
    shape = Shape.of(plan.detail, columns)
    detail = replace(plan.detail, shape=shape)
    known = digest(json.dumps(codec.dump(shape), sort_keys=True))
    return replace(plan, detail=detail, stored=codec.dump(detail), shape=known)


def require_kept(detail: TableRows, columns: Iterable[Column]) -> None:
    """Refuse a table that could make other values of rows, which were checked against another.

    A column that holds all that the other one did is fine: a row that the server refused may have
    asked for that.

    Args:
        detail: of a manifest.
        columns: of the target as it is.

    Raises:
        StoreRefused: it was altered.
    """
    if detail.shape is None:  # no table was looked up for the plan
        return
    for name, now in named(columns, detail.columns).items():
        then = detail.shape.columns.get(name)
        if not _holds_all(now, then, _of_values(name, now, detail)):
            was = then.declared if then else "of another type"
            raise StoreRefused(
                f"Column {name!r} of table {detail.shown} was {was}, and is {now.declared}",
                why="rows were checked against the column as it was, and it could make other"
                " values of them",
                todo="restart the query, which checks its rows anew; if the error stays, the epoch"
                " is decided: alter the column back, or widen it, until that epoch is finished",
            )


def _holds_all(now: Column, then: Column | None, makes: list[Coercion]) -> bool:
    """Whether a column holds as it is all that it held before.

    Args:
        now: the column.
        then: before; None where it made no other value of any.
        makes: what it makes of values.
    """
    if of_null(now) and not (then and of_null(then)):
        return False
    if not makes or (then and then.declared == now.declared):
        return True
    if then is None or now.kind != then.kind:
        return False
    same = _charset(now) == _charset(then)
    if now.kind in ("enum", "set"):
        return members(now) >= members(then) and (same or now.charset == "utf8mb4")
    if now.kind in ("char", "varchar"):
        return now.room >= then.room and (same or now.charset == "utf8mb4")
    return same and (now.shown == then.shown or (now.kind in TEXTS and now.room >= then.room))


def _charset(column: Column) -> str:
    """Older servers call it utf8."""
    return "utf8mb3" if column.charset == "utf8" else column.charset
