"""Texts that the server would cut in silence, found in a chunk before it sees them.

White space for which a column has no room it leaves out, and so makes one key of two. Rows are
looked at as text, and only those in which one ends with white space.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_mysql.bends import LITERAL, SPACE, at, placed
from pyspark_mysql.columns import Column
from pyspark_mysql.literals import HEX_TEXT

PADDED = " '|_utf8mb4 X'[0-9a-f]*20'"
TEXTS = ("tinytext", "text", "mediumtext")
"""Whose room is counted in bytes. No literal is larger than a LONGTEXT."""
REFUSING = ("utf16", "utf16le", "utf32", "ucs2")
"""Character sets in which the servers cut nothing."""
WIDE = {"utf8", "utf8mb3", "utf8mb4", "big5", "cp932", "eucjpms"}
WIDE |= {"euckr", "gb18030", "gb2312", "gbk", "sjis", "ujis"}
"""Character sets with characters of more than a byte; taken to need as many as UTF-8 does."""
ADVICE = "trim the text before the sink, {}, or set option cutTrailingSpace=true"


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
    ends: str = SPACE
    why: str = "the server would cut the white space at its end, for which the column has no room"
    todo: str = ADVICE.format("widen the column")

    def rows(self, texts: Any) -> list[int]:
        """See `Finder.rows`; of rows in which some text ends with white space."""
        values = pc.struct_field(pc.extract_regex(texts, at(self.place, LITERAL)), "v")
        ends = pc.match_substring_regex(values, rf"(?:{self.ends})$")
        large = pc.greater(pc.binary_length(values).cast(pa.int64()), self.room)
        found = pc.indices_nonzero(pc.and_(ends, large))
        longer = pc.greater(_lengths(values.take(found), self.in_bytes), self.room)
        rows: list[int] = found.filter(longer).to_pylist()
        return rows


def unpadded(place: int, name: str) -> Cut:
    """The same of a CHAR, of whose texts all spaces at the end are lost."""
    why = "the column is a CHAR, which keeps no spaces at the end"
    return Cut(place, name, 0, ends=PADDED, why=why, todo=ADVICE.format("make it a VARCHAR"))


def cuts_of(detail: Mapping[str, Any], columns: Iterable[Column]) -> list[Cut]:
    """What would be cut in the target of a plan."""
    strings = {name.lower() for name, kind in detail["kinds"].items() if kind == "string"}
    cuts: list[Cut] = []
    for place, column in placed(detail, columns):
        charset = column.collation.partition("_")[0]
        if column.name.lower() not in strings:
            continue
        if column.kind in ("char", "varchar", *TEXTS) and charset not in REFUSING:
            in_bytes = column.kind in TEXTS and charset in WIDE
            cuts.append(Cut(place, column.name, column.room, in_bytes))
        if column.kind == "char":
            cuts.append(unpadded(place, column.name))
    return cuts


def _lengths(literals: Any, in_bytes: bool) -> Any:
    """Of the texts, in characters or bytes of UTF-8."""
    hexed = pc.starts_with(literals, HEX_TEXT)
    return pc.if_else(hexed, _of_hex(literals, in_bytes), _of_quoted(literals, in_bytes))


def _of_quoted(literals: Any, in_bytes: bool) -> Any:
    texts = pc.replace_substring(pc.binary_slice(literals, 1, -1), b"''", b"'")
    if not in_bytes:  # without the bytes that go on with a character
        texts = pc.replace_substring_regex(texts, r"[\x80-\xbf]+", "")
    return pc.binary_length(texts).cast(pa.int64())


def _of_hex(literals: Any, in_bytes: bool) -> Any:
    digits = pc.binary_slice(literals, len(HEX_TEXT), -1)
    if not in_bytes:
        digits = pc.replace_substring_regex(digits, "([0-7c-f].)|[89ab].", r"\1")
    return pc.divide(pc.binary_length(digits).cast(pa.int64()), 2)
