"""Texts that the server would cut in silence, found in a chunk before it sees them.

White space for which a column has no room it leaves out, and so makes one key of two. Only rows in
which some text ends with white space are looked at, each once, literal by literal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pyspark_mysql.columns import Column
from pyspark_mysql.literals import HEX_TEXT
from pyspark_mysql.models.table import TableRows

SPACE = r"[\t-\r ]'|_utf8mb4 X'[0-9a-f]*(?:09|0[a-d]|20)'"
"""How a text ends with what both servers take for white space, in every character set."""
SPACED = re.compile(rf"(?:{SPACE})\Z".encode())
PADDED = re.compile(rb"(?: '|_utf8mb4 X'[0-9a-f]*20')\Z")
TEXTS = ("tinytext", "text", "mediumtext")
"""Whose room is counted in bytes. No literal is larger than a LONGTEXT."""
REFUSING = ("utf16", "utf16le", "utf32", "ucs2")
"""Character sets in which the servers cut nothing."""
WIDE = {"utf8", "utf8mb3", "utf8mb4", "big5", "cp932", "eucjpms"}
WIDE |= {"euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"}
"""Character sets with characters of more than a byte; taken to need as many as UTF-8 does."""
ADVICE = "trim the text before the sink, or {}"


class Cut(NamedTuple):
    """The room of a column for texts.

    Attributes:
        place: of the column in a row.
        name: of the column.
        room: what it holds, in characters or bytes.
        in_bytes: whether these are bytes.
        ends: how the literals end that would be cut, where they are longer.
        why: they must not be sent.
        todo: against it.
    """

    place: int
    name: str
    room: int
    in_bytes: bool = False
    ends: re.Pattern[bytes] = SPACED
    why: str = "the server would cut the white space at its end, for which the column has no room"
    todo: str = ADVICE.format("widen the column")

    def takes(self, literal: bytes) -> bool:
        """Whether the server would cut this text."""
        if len(literal) <= self.room or not self.ends.search(literal):
            return False
        return _length(literal, self.in_bytes) > self.room


def unpadded(place: int, name: str) -> Cut:
    """The same of a CHAR, of whose texts all spaces at the end are lost."""
    why = "the column is a CHAR, which keeps no spaces at the end"
    return Cut(place, name, 0, ends=PADDED, why=why, todo=ADVICE.format("make it a VARCHAR"))


def cuts_of(detail: TableRows, columns: Iterable[Column]) -> list[Cut]:
    """What would be cut in the target of a plan."""
    strings = {name.lower() for name, kind in detail.kinds.items() if kind == "string"}
    cuts: list[Cut] = []
    for place, column in placed(detail, columns):
        if column.name.lower() not in strings:
            continue
        if column.kind in ("char", "varchar", *TEXTS) and column.charset not in REFUSING:
            in_bytes = column.kind in TEXTS and column.charset in WIDE
            cuts.append(Cut(place, column.name, column.room, in_bytes))
        if column.kind == "char":
            cuts.append(unpadded(place, column.name))
    return cuts


def placed(detail: TableRows, columns: Iterable[Column]) -> Iterator[tuple[int, Column]]:
    """The columns that a plan writes, each with its place in a row."""
    places = {name.lower(): place for place, name in enumerate(detail.columns)}
    return ((places[c.name.lower()], c) for c in columns if c.name.lower() in places)


def _length(literal: bytes, in_bytes: bool) -> int:
    """Of the text, in characters or bytes of UTF-8."""
    if literal.startswith(HEX_TEXT):
        text = bytes.fromhex(literal[len(HEX_TEXT) : -1].decode())
    else:
        text = literal[1:-1].replace(b"''", b"'")
    return len(text) if in_bytes else len(text.decode())
