"""What tasks know of the target: the columns of it that would make other values of some."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_mysql.target.coercions import Coercion, coercions, of_null
from pyspark_mysql.target.columns import Column
from sparkonce.errors import StoreRefused
from sparkonce.protocol import Plan, digest

if TYPE_CHECKING:
    from pyspark_mysql.models.plan import TableRows


@dataclass(frozen=True)
class Shape:
    """Those columns, by their names in the query.

    Attributes:
        declared: their definitions, which a manifest keeps: rows were checked against them.
        columns: the same as tasks need them; empty in what a manifest has kept.
    """

    declared: Mapping[str, str]
    columns: Mapping[str, Column] = field(default_factory=dict)

    @classmethod
    def of(cls, detail: TableRows, columns: Iterable[Column]) -> Shape:
        """The shape of a table for a plan."""
        names = {name.lower(): name for name in detail.columns}
        there = {names[c.name.lower()]: c for c in columns if c.name.lower() in names}
        coercing = {n: c for n, c in there.items() if of_null(c) or _of_values(n, c, detail)}
        return cls({name: c.declared for name, c in coercing.items()}, coercing)

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
    known = digest(json.dumps(shape.declared, sort_keys=True))
    return replace(plan, detail=detail, stored=detail.stored(), shape=known)


def require_same(detail: TableRows, columns: Iterable[Column]) -> None:
    """Refuse a table that could make other values of rows, which were checked against another.

    Release 0.1.0 kept no shape: what it has decided is applied as it is.

    Args:
        detail: of a manifest.
        columns: of the target as it is.

    Raises:
        StoreRefused: it was altered.
    """
    then, now = detail.shape, Shape.of(detail, columns).declared
    if then is None or then.declared == now:
        return
    name = min(set(then.declared.items()) ^ set(now.items()))[0]
    raise StoreRefused(
        f"Column {name!r} of table {detail.shown} was {then.declared.get(name, 'of another type')},"
        f" and is {now.get(name, 'of another type')}",
        why="rows were checked against the column as it was, and it could make other values of"
        " them",
        todo="restart the query, which checks its rows anew; if the error stays, the epoch is"
        " decided: alter the column back, and again once that epoch is finished",
    )
