"""Character sets of the server: how many bytes a text takes, and which characters they change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark_mysql.target.columns import Column

BEYOND_PLANE_0 = "[\U00010000-\U0010ffff]"
UNICODE = ("utf8mb4", "utf16", "utf16le", "utf32", "gb18030")
"""Those that have all characters."""

MIXED = ("eucjpms", "gb18030", "ujis")
"""Those of whose characters only a table tells the bytes: texts are taken for as long as can be."""

CHANGED = {"cp932": "\u6661", "tis620": BEYOND_PLANE_0}
"""Characters for which both servers store another one, without a warning; a test tries all."""

ONE_BYTE = {
    "cp932": r"[\x00-\x7F\x{FF61}-\x{FF9F}]",
    "sjis": r"[\x00-\x5B\x5D-\x7F\x{FF61}-\x{FF9F}]",
}
"""Of sets of two bytes, the characters of one byte, where these are not those of ASCII."""


def bytes_of(texts: Any, column: Column) -> Any:
    """How many bytes each text takes in a column; in one of a `MIXED` set, at most."""
    if column.charset.startswith("utf8"):
        return pc.binary_length(texts)
    letters = pc.utf8_length(texts)
    if column.charset in ("utf16", "utf16le"):
        pairs = pc.count_substring_regex(texts, BEYOND_PLANE_0)
        return pc.multiply(pc.add(letters, pairs), 2)
    if column.width != 2 or column.charset == "ucs2":
        return pc.multiply(letters, column.width)
    single = ONE_BYTE.get(column.charset, r"[\x00-\x7F]")
    return pc.subtract(pc.multiply(letters, 2), pc.count_substring_regex(texts, single))
