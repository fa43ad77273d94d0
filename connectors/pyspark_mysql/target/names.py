"""Option ``dbtable`` as a template: ``{_table}``, or ``copy.{kind}_{at:yyyyMM}``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.server.literals import NAME
from sparkonce.change import Names
from sparkonce.templates import Namer, Segment, pattern

LIKE = "{table} or events_{at:yyyyMM}"
PREFIX = "sparkonce_"
"""The begin of the names of the connector's own tables."""


class TableNamer:
    """Names the table of each row.

    Args:
        segments: of the template.
        database: of the names without one.
        reserved: tables that no row may name, by database and name.
    """

    def __init__(
        self, segments: Sequence[Segment], database: str, reserved: Sequence[Names]
    ) -> None:
        self._namer = Namer("dbtable", segments, "filter such rows out, or correct the column")
        self.database = database
        self._reserved = {_folded(name) for name in reserved}

    def names(self, rows: pa.RecordBatch) -> Any:
        """The name of each row's table, as the template makes it.

        Raises:
            BadRow: a row has none, an invalid one or a reserved one.
        """
        made = self._namer.names(rows)
        distinct = made.unique()
        for why, is_wrong in (
            ("{!r} is not a table, or a database and a table", self._is_wrong),
            ("{!r} is reserved", self._is_reserved),
        ):
            wrong = pa.array([one for one in distinct.to_pylist() if is_wrong(one)], pa.string())
            self._namer.refuse(rows, pc.is_in(made, value_set=wrong), why, made)
        return made

    def table(self, name: str) -> Names:
        """Database and table of a name that the template made."""
        database, _, table = name.rpartition(".")
        return database or self.database, table

    def _is_wrong(self, name: str) -> bool:
        parts = name.split(".")
        return len(parts) > 2 or not all(map(NAME.fullmatch, parts))

    def _is_reserved(self, name: str) -> bool:
        table = self.table(name)
        return table[-1].lower().startswith(PREFIX) or _folded(table) in self._reserved


def makes(segments: Sequence[Segment], database: str, table: Names) -> bool:
    """Whether a template may make the name of a table, by database and name."""
    star = re.escape(pattern(segments)).replace(r"\*", ".*")
    short = [table[1]] if _folded(table[:1]) == _folded((database,)) else []
    names = [".".join(table), *short]
    return any(re.fullmatch(star, name, re.DOTALL | re.IGNORECASE) for name in names)


def _folded(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)
