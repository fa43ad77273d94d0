"""Character sets: which bytes are which texts, as the server has it.

Python has codecs of these names, but of some bytes they make other characters than the server. So
the server itself says what each byte is in a set of one byte; those of several bytes are not read,
but for Unicode's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pymysql

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier

# Python's names of Unicode's sets.
CODECS = dict.fromkeys(("ascii", "utf8", "utf8mb3", "utf8mb4"), "utf-8")
CODECS |= {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}

# MariaDB has all collations in the first one; MySQL has no numbers in it.
TABLES_OF_NAMES = ("collation_character_set_applicability", "collations")
NAMES = "SELECT id, character_set_name FROM information_schema.{} WHERE id IS NOT NULL"
OF_ONE_BYTE = "SELECT character_set_name FROM information_schema.character_sets WHERE maxlen = 1"
UNKNOWN_COLUMN = 1054
BYTES = f"(SELECT UNHEX('{bytes(range(256)).hex()}') AS bytes) AS every"


@dataclass(frozen=True)
class Charset:
    """A character set, by the server's name."""

    name: str
    letters: str = ""  # of a set of one byte, the character of each byte

    @property
    def is_read(self) -> bool:
        """Whether its texts can be read."""
        return bool(self.letters) or self.name in CODECS

    def texts(self, found: pa.Array) -> pa.Array:
        """Bytes as texts; a `ValueError` where one is no text of this set."""
        if self.letters:
            return _by_letters(self.letters, found)
        if not self.is_read:
            raise ValueError(f"texts in character set {self.name} can't be followed")
        codec = CODECS[self.name]
        if codec == "utf-8":
            return found.cast(pa.string())  # looks whether it is
        texts = (None if one is None else one.decode(codec) for one in found.to_pylist())
        return pa.array(texts, pa.string())


@dataclass(frozen=True)
class Charsets:
    """The character sets of a server."""

    names: Mapping[int, str]  # by the numbers of their collations
    letters: Mapping[str, str]  # of those of one byte the character of each byte, by their names

    def of(self, collation: int, name: str = "") -> Charset | None:
        """The set of a collation; the one of that name if there is none. None of bytes."""
        found = self.names.get(collation, name)
        return None if found in ("", "binary") else Charset(found, self.letters.get(found, ""))


def charsets(session: MySqlSession) -> Charsets:
    """Ask a server for all of them."""
    return Charsets(_names(session), _letters(session))


def _names(session: MySqlSession) -> dict[int, str]:
    for table in TABLES_OF_NAMES:
        try:
            return {int(one): str(name) for one, name in session.run(NAMES.format(table))}
        except pymysql.MySQLError as error:
            if number(error) != UNKNOWN_COLUMN:
                raise
    return {}


def _letters(session: MySqlSession) -> Mapping[str, str]:
    """What each byte is; the server makes a question mark of one that is nothing."""
    found = [str(name) for (name,) in session.run(OF_ONE_BYTE)]
    names = [one for one in found if one not in (*CODECS, "binary")]
    asked = (f"CONVERT(CONVERT(bytes USING {identifier(one)}) USING utf8mb4)" for one in names)
    (texts,) = session.run(f"SELECT {', '.join(asked)} FROM {BYTES}")
    pairs = zip(names, texts, strict=True)
    return {name: text for name, text in pairs if text and len(text) == 256}


def _by_letters(letters: str, found: pa.Array) -> pa.Array:
    """Each byte becomes the UTF-8 of its letter."""
    encoded, sizes = _encoded(letters)
    bitmap, ends, data = found.buffers()
    offsets = np.frombuffer(ends, np.int32)[: len(found) + 1]
    old = np.frombuffer(data, np.uint8)[: offsets[-1]] if data else np.zeros(0, np.uint8)
    new = encoded[old][np.arange(encoded.shape[1]) < sizes[old][:, None]]
    to = np.concatenate([[0], np.cumsum(sizes[old])]).astype(np.int32)[offsets]
    buffers = [bitmap, pa.py_buffer(to), pa.py_buffer(np.ascontiguousarray(new))]
    return pa.Array.from_buffers(pa.string(), len(found), buffers)


@lru_cache
def _encoded(letters: str) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 of each byte's letter, and its length."""
    encoded, sizes = np.zeros((256, 4), np.uint8), np.zeros(256, np.int64)
    for byte, letter in enumerate(letters):
        utf8 = letter.encode()
        encoded[byte, : len(utf8)], sizes[byte] = [*utf8], len(utf8)
    return encoded, sizes
