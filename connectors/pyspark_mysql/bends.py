"""Values that the server would bend in silence, found in a chunk before it sees them.

It takes the text '2' for the second member of an ENUM, makes 2005 of the YEAR 5, the time of day of
a NULL for a TIMESTAMP that is NOT NULL, and one key of two that are only written differently. Rows
are looked at as text, by one regular expression for each column of such a type, and not at all
where the target has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow.compute as pc

from pyspark_mysql.chunks import Rows
from pyspark_mysql.columns import Column
from pyspark_mysql.cuts import SPACE, Cut, placed
from pyspark_mysql.literals import LITERAL as ONE_LITERAL
from pyspark_mysql.models.table import TableRows

LITERAL = r"(?:[^'(),]*(?:'(?:[^']|'')*')?)"
NUMBER = r"'[\t-\r ]*[+-]?[0-9]+ *'"
"""What the server reads as a number where it is no member: with the spaces of C, and a sign."""
FOREIGN = r"'(?:[^']|'')*[\x80-\xff](?:[^']|'')*'|_utf8mb4 X'(?:[0-9a-f]{2})*[89a-f][0-9a-f]*'"
"""A text with characters beyond ASCII."""
SPELLED = {
    "uuid": ("in lower case, like 8-4-4-4-12", r"'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'"),
    "inet4": ("without zeros in front", r"'(?:0|[1-9][0-9]*)(?:\.(?:0|[1-9][0-9]*)){3}'"),
}
"""How a text must be written that the server stores as it is: in words, and as a pattern."""
UNICODE = ("", "binary", "utf8mb4", "utf16", "utf16le", "utf32", "gb18030")
"""Character sets that have all characters; none is that of bytes."""
MEMBER = re.compile("'(?:[^']|'')*'")
MOST_REPEATS = 1000
ENDS_SPACED = rf"(?:{SPACE})[,)]"


class Bend(NamedTuple):
    """What would be bent in a column.

    Attributes:
        place: of the column in a row.
        name: of the column.
        pattern: of the literals that are bent.
        taken: pattern of those that match and are taken as they are; empty if there are none.
        why: it must not be sent.
        todo: against it.
    """

    place: int
    name: str
    pattern: str
    why: str
    todo: str
    taken: str = ""

    @property
    def is_null(self) -> bool:
        """Whether it is the null that is bent."""
        return self.pattern == "NULL"

    def rows(self, texts: Any) -> list[int]:
        """In which rows there is such a value."""
        found = pc.match_substring_regex(texts, at(self.place, self.pattern))
        if self.taken and pc.any(found).as_py():
            taken = pc.match_substring_regex(texts, at(self.place, self.taken))
            found = pc.and_not(found, taken)
        rows: list[int] = pc.indices_nonzero(found).to_pylist()
        return rows


def at(place: int, pattern: str) -> str:
    """The pattern of a row whose literal at that place has a pattern."""
    # None repeats a piece more than a thousand times.
    before, rest = divmod(place, MOST_REPEATS)
    pieces = f"(?:{LITERAL},){{{MOST_REPEATS}}}" * before + f"(?:{LITERAL},){{{rest}}}"
    return rf"^\({pieces}(?:{pattern})[,)]"


class Bends:
    """What would be bent in a target.

    Args:
        bends: of its columns.
        cuts: the same, of texts that would be cut; see `pyspark_mysql.cuts`.
    """

    def __init__(self, bends: Iterable[Bend], cuts: Iterable[Cut] = ()) -> None:
        bends = list(bends)
        self.of_values = [bend for bend in bends if not bend.is_null]
        self.of_nulls = [bend for bend in bends if bend.is_null]
        self.cuts = list(cuts)

    def find(self, rows: Rows) -> dict[int, Bend | Cut]:
        """The rows that must not be sent, by number."""
        has_null = self.of_nulls and b"NULL" in bytes(rows.lines)
        bends = [*self.of_values, *(self.of_nulls if has_null else [])]
        if not (bends or self.cuts):
            return {}
        texts = rows.texts()
        found: dict[int, Bend | Cut] = {row: bend for bend in bends for row in bend.rows(texts)}
        return {**self._cut(texts), **found}

    def _cut(self, texts: Any) -> dict[int, Bend | Cut]:
        if not self.cuts:
            return {}
        spaced = pc.indices_nonzero(pc.match_substring_regex(texts, ENDS_SPACED))
        rows = zip(spaced.to_pylist(), texts.take(spaced).to_pylist(), strict=True)
        found = {row: self._first_cut(ONE_LITERAL.findall(text)) for row, text in rows}
        return {row: cut for row, cut in found.items() if cut is not None}

    def _first_cut(self, literals: list[bytes]) -> Cut | None:
        return next((cut for cut in self.cuts if cut.takes(literals[cut.place])), None)


def bends_of(detail: TableRows, columns: Iterable[Column]) -> list[Bend]:
    """What would be bent in the target of a plan."""
    keys = {name.lower(): detail.kinds[name] for name in detail.looked_up}
    return [
        Bend(place, column.name, *found)
        for place, column in placed(detail, columns)
        for found in (*_found(column), *_of_key(column, keys.get(column.name.lower())))
    ]


def zeroed(detail: TableRows, columns: Iterable[Column]) -> list[Bend]:
    """Nulls that LOAD DATA makes a zero of: MySQL does not warn of them where there are triggers.

    An INSERT refuses them, or takes what a trigger puts in their place.
    """
    needed = {column.name.lower() for column in columns if not column.nullable}
    return [
        Bend(place, name, "NULL", "the column is NOT NULL", "fill it before the sink")
        for place, name in enumerate(detail.columns)
        if name.lower() in needed and name not in detail.key
    ]


def _found(column: Column) -> Iterator[tuple[Any, ...]]:
    """Pattern, reason, advice, and literals that are taken."""
    kind = column.kind
    if column.numbered:
        yield (
            "NULL",
            "the column is auto-increment: the server would put a new number there",
            "leave the column out of the query, or fill it",
        )
    if kind == "timestamp" and not column.nullable:
        yield (
            "NULL",
            "the column is NOT NULL, and the server would put the time of day there",
            "fill it before the sink, or declare the column NULL",
        )
    if kind == "year":
        yield (
            "[0-9]{1,2}",
            "years are 1901 to 2155, and the server would add a century to a number of two digits",
            "write it in full",
        )
    if column.shown == "bit(64)":
        yield "-[0-9]+", "bits have no sign", "mend the row before the sink"
    if kind in ("enum", "set"):
        yield from _of_members(column)


def _of_members(column: Column) -> Iterator[tuple[Any, ...]]:
    members = MEMBER.findall(column.shown)
    numbers = filter(re.compile(NUMBER).fullmatch, members)
    yield (
        NUMBER,
        f"the text is no member of the {column.kind.upper()}, and the server would take it for the"
        " number of one",
        "mend the row before the sink, or add the member",
        "|".join(map(re.escape, numbers)),
    )
    if column.charset not in UNICODE and "?" in column.shown:
        texts = "|".join(re.escape(literal[1:-1]) for literal in members)
        several = f"(?:,(?:{texts}))*" if column.kind == "set" else ""
        yield (
            FOREIGN,
            f"its characters may not all be in {column.charset}, and the server would make a ? of"
            " it, which is in a member",
            "mend the row before the sink, or alter the column to utf8mb4",
            f"'(?:{texts}){several}'",
        )


def _of_key(column: Column, kind: str | None) -> Iterator[tuple[Any, ...]]:
    """The same of a column in which a stored row is looked up by values of a kind."""
    if kind == "binary" and column.kind in ("binary", "bit"):
        yield (
            LITERAL,
            f"a {column.shown} is filled up with zeros, which would make one key of several",
            f"fill it up to {column.room} bytes before the sink, or make the column VARBINARY",
            f"X'[0-9a-f]{{{2 * column.room}}}'",
        )
    if kind == "string" and column.kind in SPELLED:
        yield (
            LITERAL,
            f"a {column.kind.upper()} is spelled in one way, which would make one key of several",
            f"write it {SPELLED[column.kind][0]} before the sink",
            SPELLED[column.kind][1],
        )
