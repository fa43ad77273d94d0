"""The keys of a table, and what they say about the key of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

BY_KEY = ("upsert", "increment")
"""Write modes that look a stored row up by its key."""


@dataclass
class Index:
    """An index of a table.

    Attributes:
        unique: it is the primary key, or a unique one.
        whole: it is made of whole columns, not of expressions or of the first part of a column.
        nullable: one of its columns may be null.
    """

    name: str
    columns: list[str]
    unique: bool
    whole: bool = True
    nullable: bool = False

    def is_of(self, names: list[str]) -> bool:
        """Whether it is made of just these columns."""
        return self.whole and {c.lower() for c in self.columns} == {n.lower() for n in names}

    @property
    def shown(self) -> str:
        """The key for messages."""
        return f"{self.name} ({', '.join(self.columns)}{'' if self.whole else ', in part'})"


def is_ambiguous(detail: Mapping[str, Any], unique: Iterable[Index]) -> bool:
    """Whether a row could be taken for a stored one by another unique key than its own."""
    return detail["mode"] in BY_KEY and any(not key.is_of(detail["key"]) for key in unique)


def is_indexed(detail: Mapping[str, Any], indexes: Iterable[Index]) -> bool:
    """Whether an index begins with a column of the key."""
    key = {name.lower() for name in detail["key"]}
    return any(index.columns[0].lower() in key for index in indexes)
