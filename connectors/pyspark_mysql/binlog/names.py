"""The tables that a stream follows: those whose names match patterns."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

TableName = tuple[str, str]
"""A database and a table."""

TablePattern = tuple[re.Pattern[str], re.Pattern[str]]


@dataclass(frozen=True)
class FollowedNames:
    """Patterns of databases and tables, in which ``*`` is any text.

    Attributes:
        wanted: the patterns of which one must match.
        unwanted: the patterns of which none may match.
    """

    wanted: tuple[TableName, ...]
    unwanted: tuple[TableName, ...] = ()

    @classmethod
    def one(cls, name: TableName) -> FollowedNames:
        """The names of a single table."""
        return cls((name,))

    def within(self, database: str) -> FollowedNames:
        """The same names; those without a database belong to this one."""
        wanted, unwanted = (
            tuple((one or database, table) for one, table in names)
            for names in (self.wanted, self.unwanted)
        )
        return FollowedNames(wanted, unwanted)

    def __str__(self) -> str:
        excluded = (f"!{'.'.join(one)}" for one in self.unwanted)
        return ", ".join([*map(".".join, self.wanted), *excluded])

    @property
    def is_one(self) -> bool:
        """Whether only one table can match."""
        return len(self.wanted) == 1 and "*" not in "".join(self.wanted[0])

    @property
    def is_ascii(self) -> bool:
        """Whether no name beyond ASCII can match."""
        return all(part.isascii() and "*" not in part for one in self.wanted for part in one)

    def match(self, database: str, table: str) -> bool:
        """Whether the stream follows a table, by its name in the log."""
        if self.is_one:
            return (database, table) == self.wanted[0]
        name = folded(database), folded(table)
        return self.may_match(*name)

    def may_match(self, database: str, table: str) -> bool:
        """Whether a name in a statement may be that of a followed table.

        Servers and indexes compare names in various ways, so this ignores case and accents. Both
        names are `folded`. An empty database is any.
        """
        wanted = any(_fits(one, database, table) for one in self._wanted)
        excluded = database and any(_fits(one, database, table) for one in self._unwanted)
        return wanted and not excluded

    def may_match_database(self, database: str) -> bool:
        """Whether a `folded` name in a statement may be the database of a followed table."""
        return any(one.fullmatch(database) for one, _ in self._wanted)

    @cached_property
    def _wanted(self) -> list[TablePattern]:
        return [*map(_pattern, self.wanted)]

    @cached_property
    def _unwanted(self) -> list[TablePattern]:
        return [*map(_pattern, self.unwanted)]


def folded(name: str) -> str:
    """A name without case and accents, as some servers and indexes compare names."""
    parts = unicodedata.normalize("NFKD", name.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one))


def _fits(pattern: TablePattern, database: str, table: str) -> bool:
    of_database, of_table = pattern
    near = not database or of_database.fullmatch(database)
    return bool(near and of_table.fullmatch(table))


def _pattern(name: TableName) -> TablePattern:
    database, table = (
        re.compile(".*".join(map(re.escape, folded(one).split("*"))), re.DOTALL) for one in name
    )
    return database, table
