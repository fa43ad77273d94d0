"""The unique keys of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark_mysql.client import Session

UNIQUE = """
SELECT index_name, column_name, sub_part, nullable
FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND non_unique = 0
ORDER BY index_name, seq_in_index
"""
SPELLED = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND data_type NOT IN ('enum', 'set')
  AND collation_name NOT IN ('binary', 'utf8mb4_0900_bin')
  AND RIGHT(collation_name, IF(data_type = 'char', 4, 10)) NOT IN ('_bin', '_nopad_bin')
"""
LED = """
SELECT column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND seq_in_index = 1
"""
BY_KEY = ("upsert", "increment")
"""Write modes that look a stored row up by its key."""


@dataclass
class UniqueKey:
    """A primary key or a unique index.

    Attributes:
        whole: it is made of whole columns, not of expressions or of the first part of a column.
        nullable: one of its columns may be null.
    """

    name: str
    columns: list[str]
    whole: bool = True
    nullable: bool = False

    def is_of(self, names: list[str]) -> bool:
        """Whether it is made of just these columns."""
        return self.whole and {c.lower() for c in self.columns} == {n.lower() for n in names}

    @property
    def shown(self) -> str:
        """The key for messages."""
        return f"{self.name} ({', '.join(self.columns)}{'' if self.whole else ', in part'})"


def unique_keys(session: Session, table: list[str]) -> list[UniqueKey]:
    """All unique keys of a table."""
    keys: dict[str, UniqueKey] = {}
    for name, column, part, nullable in session.run(UNIQUE, *table):
        key = keys.setdefault(name, UniqueKey(name, []))
        key.columns.append(column or "an expression")
        key.whole = key.whole and column is not None and part is None
        key.nullable = key.nullable or nullable == "YES"
    return list(keys.values())


def is_ambiguous(session: Session, detail: Mapping[str, Any]) -> bool:
    """Whether a row could be taken for a stored one by another unique key than its own."""
    if detail["mode"] not in BY_KEY:
        return False
    return any(not key.is_of(detail["key"]) for key in unique_keys(session, detail["table"]))


def is_spelled(session: Session, detail: Mapping[str, Any]) -> bool:
    """Whether equal keys may differ: by case, by accents, or by a space behind them."""
    return _has_key_of(session.run(SPELLED, *detail["table"]), detail)


def is_indexed(session: Session, detail: Mapping[str, Any]) -> bool:
    """Whether an index begins with a column of the key."""
    return _has_key_of(session.run(LED, *detail["table"]), detail)


def _has_key_of(found: Sequence[tuple[Any, ...]], detail: Mapping[str, Any]) -> bool:
    key = {name.lower() for name in detail["key"]}
    return any(name and name.lower() in key for (name,) in found)
