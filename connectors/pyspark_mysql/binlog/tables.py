"""Tables as the log describes them before their rows (TABLE_MAP_EVENT), and their character sets.

See https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html,
and for the numbers of types ``enum_field_types`` there.

Python has codecs with the names of character sets, but they decode some bytes to other characters
than the server does. So the server itself decodes each byte of the sets of one byte, and each pair
of bytes of the sets of two. Of sets with longer characters only those of Unicode are read.
"""

from __future__ import annotations

from codecs import charmap_decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
import pymysql

from pyspark_mysql.binlog.events import LengthEncoded
from pyspark_mysql.binlog.names import TableName
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import StoreRefused

TINY, SHORT, LONG, FLOAT, DOUBLE = 1, 2, 3, 4, 5
LONGLONG, INT24, DATE, YEAR, NEWDATE, VARCHAR, BIT = 8, 9, 10, 13, 14, 15, 16
TIMESTAMP2, DATETIME2, TIME2 = 17, 18, 19
JSON, NEWDECIMAL, ENUM, SET = 245, 246, 247, 248
BLOB, VAR_STRING, STRING, GEOMETRY = 252, 253, 254, 255
BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR = 140, 141, 242
UNREAD = (BLOB_COMPRESSED, VARCHAR_COMPRESSED)  # only the size of their values is known

FIXED = {TINY: 1, SHORT: 2, INT24: 3, LONG: 4, LONGLONG: 8, FLOAT: 4, DOUBLE: 8, YEAR: 1}
FIXED |= {DATE: 3, NEWDATE: 3}
NUMBERS = (TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, YEAR, NEWDECIMAL)
OF_CHARACTERS = (VARCHAR, VAR_STRING, STRING, BLOB, VECTOR, *UNREAD)
CHOICES = (ENUM, SET)
# Bytes before the fraction of a second, which takes one byte for two digits.
MOMENTS = {TIMESTAMP2: 4, DATETIME2: 5, TIME2: 3}

# Bytes of metadata that a TABLE_MAP_EVENT has for each type.
METADATA = {FLOAT: 1, DOUBLE: 1, BLOB: 1, GEOMETRY: 1, JSON: 1, TIMESTAMP2: 1, DATETIME2: 1}
METADATA |= {TIME2: 1, VARCHAR: 2, BIT: 2, NEWDECIMAL: 2, VAR_STRING: 2, STRING: 2}
METADATA |= {ENUM: 2, SET: 2, BLOB_COMPRESSED: 1, VARCHAR_COMPRESSED: 2, VECTOR: 1}

DIGITS = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""The number of bytes by the number of decimal digits."""

# Python's names of the Unicode sets.
CODECS = dict.fromkeys(("ascii", "utf8", "utf8mb3", "utf8mb4"), "utf-8")
CODECS |= {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}

# MariaDB has all collations in the first view; in MySQL it has no numbers.
COLLATIONS_OF = ("collation_character_set_applicability", "collations")
COLLATION_IDS = "SELECT id, character_set_name FROM information_schema.{} WHERE id IS NOT NULL"
OF_ONE_BYTE = "SELECT character_set_name FROM information_schema.character_sets WHERE maxlen = 1"
OF_TWO_BYTES = ("big5", "gb2312", "gbk", "sjis", "cp932", "euckr")
PAIRS = """
WITH RECURSIVE bytes (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM bytes WHERE n < 255)
SELECT one.n, two.n,
  CONVERT(CONVERT(UNHEX(CONCAT(HEX(one.n), LPAD(HEX(two.n), 2, '0'))) USING {0}) USING utf8mb4)
FROM bytes one JOIN bytes two WHERE one.n > 127
UNION ALL
SELECT 0, n, CONVERT(CONVERT(UNHEX(LPAD(HEX(n), 2, '0')) USING {0}) USING utf8mb4) FROM bytes
"""
"""Each pair of bytes, and each byte after a zero, with the character of a set; none if invalid."""

FIRST, INVALID = 128, "\uffff"
"""The lowest byte that begins a pair, and the letter of an invalid one."""

UNKNOWN_COLUMN = 1054
BYTES = f"(SELECT UNHEX('{bytes(range(256)).hex()}') AS bytes) AS every"

# Optional_metadata_field_type: what binlog_row_metadata adds.
SIGNS, NAMES, SET_WORDS, ENUM_WORDS, KEY, KEY_IN_PART = 1, 4, 5, 6, 8, 9
DEFAULT_COLLATION, COLLATIONS, DEFAULT_OF_CHOICES, COLLATIONS_OF_CHOICES = 2, 3, 10, 11


@dataclass(frozen=True)
class ColumnType:
    """How the log stores values of a column."""

    code: int
    # Of a decimal its digits and those after the point, of a moment the digits of its fraction, of
    # a text its maximum length.
    meta: int
    size: int = 0  # bytes of each value; 0 if the size varies
    prefix: int = 0  # bytes of the length before each value if the size varies; else 0


@dataclass(frozen=True)
class BinlogColumn:
    """A column of a table."""

    type: ColumnType
    name: str = ""  # empty if the log has no names (``binlog_row_metadata``)
    nullable: bool = True
    unsigned: bool | None = None  # None if the log lacks it
    collation: int = 0  # its number; 0 if the log lacks it
    charset: Charset | None = None  # None for bytes; set by the reader of the log
    # The members of an ENUM or SET, in that character set. None if not all are known.
    words: tuple[bytes, ...] | None = ()
    shown: str = ""  # a type of MariaDB whose bytes it logs, and whose texts it shows: ``uuid``

    @property
    def padding(self) -> int:
        """The size of a BINARY, logged without the zeros at its end; 0 for other types."""
        is_binary = self.type.code == STRING and self.charset is None
        return self.type.meta if is_binary else 0


@dataclass(frozen=True)
class LoggedTable:
    """A table, and the form of its rows."""

    columns: tuple[BinlogColumn, ...]
    # Places of the columns of its primary key, if the log has names. Without a primary key,
    # servers use the first unique key without nulls.
    key: tuple[int, ...] = ()

    @property
    def named(self) -> bool:
        """Whether the log has the names of columns."""
        return bool(self.columns and self.columns[0].name)


def name_in_map(data: bytes) -> TableName:
    """Database and table in a TABLE_MAP_EVENT; the texts follow number and flags."""
    size = data[0]
    return data[1 : 1 + size].decode(), data[size + 3 : -1].decode()


@lru_cache(maxsize=1024)  # the same bytes precede each statement
def table(body: bytes, *, mariadb: bool) -> LoggedTable:
    """The table that an event describes; `body` begins after the table's name."""
    # In bytes: 6 table, 2 flags, the names of database and table, each between its size and a zero;
    # the number of columns, 1 the type of each, the size of their metadata, the metadata, a bit for
    # each nullable column. binlog_row_metadata adds fields: 1 the kind, the size, and the value.
    found = LengthEncoded(body)
    codes = found.value()
    types = [*_types(codes, found.value())]
    nullable = int.from_bytes(found.take((len(codes) + 7) // 8), "little")
    columns = [BinlogColumn(one, nullable=bool(nullable >> at & 1)) for at, one in enumerate(types)]
    described = _Metadata(columns, mariadb=mariadb)
    while found:
        described.take(found.number(), LengthEncoded(found.value()))
    return LoggedTable(tuple(described.columns), described.key)


class _Metadata:
    """Signs, names, members and key, as far as ``binlog_row_metadata`` logs them."""

    def __init__(self, columns: list[BinlogColumn], *, mariadb: bool) -> None:
        self.columns, self.key = columns, tuple[int, ...]()
        # MariaDB also logs a character set for geometries.
        self._texts = self._of(*OF_CHARACTERS, *((GEOMETRY,) if mariadb else ()))
        self._choices = self._of(*CHOICES)

    def take(self, kind: int, value: LengthEncoded) -> None:
        """Take one field; each counts only the columns that can have it."""
        if kind == SIGNS:  # a bit for each number, the highest bit first
            for number, at in enumerate(self._of(*NUMBERS)):
                self._set(at, unsigned=bool(value.data[number // 8] & 0x80 >> number % 8))
        elif kind in (DEFAULT_COLLATION, DEFAULT_OF_CHOICES):  # then place and collation of others
            of = self._texts if kind == DEFAULT_COLLATION else self._choices
            default, *others = _numbers(value)
            collations = dict(zip(others[::2], others[1::2], strict=True))
            self._set_collations(of, [collations.get(at, default) for at in range(len(of))])
        elif kind in (COLLATIONS, COLLATIONS_OF_CHOICES):
            self._set_collations(
                self._texts if kind == COLLATIONS else self._choices, [*_numbers(value)]
            )
        elif kind == NAMES:
            for at in range(len(self.columns)):
                self._set(at, name=value.value().decode())
        elif kind in (SET_WORDS, ENUM_WORDS):  # of each column the number of members, and these
            for at in self._of(SET if kind == SET_WORDS else ENUM):
                self._set(at, words=tuple(value.value() for _ in range(value.number())))
        elif kind in (KEY, KEY_IN_PART):  # in KEY_IN_PART, the prefix length follows each column
            self.key = tuple(_numbers(value))[:: 2 if kind == KEY_IN_PART else 1]

    def _set_collations(self, of: Sequence[int], collations: Sequence[int]) -> None:
        for at, collation in zip(of, collations, strict=True):
            self._set(at, collation=collation)

    def _of(self, *codes: int) -> list[int]:
        return [at for at, one in enumerate(self.columns) if one.type.code in codes]

    def _set(self, at: int, **changes: object) -> None:
        self.columns[at] = replace(self.columns[at], **changes)  # type: ignore[arg-type]


def _numbers(value: LengthEncoded) -> Iterator[int]:
    while value:
        yield value.number()


def _types(codes: bytes, metas: bytes) -> Iterator[ColumnType]:
    at = 0
    for code in codes:
        width = METADATA.get(code, 0)
        yield _type(code, metas[at : at + width])
        at += width


def _type(code: int, meta: bytes) -> ColumnType:
    """The type by its number and its metadata."""
    number = int.from_bytes(meta, "little")
    if code == STRING:
        return _string(*meta)
    if code in (VARCHAR, VAR_STRING, VARCHAR_COMPRESSED):  # the maximum bytes of a value
        return ColumnType(code, number, prefix=2 if number > 255 else 1)
    if code in (BLOB, JSON, GEOMETRY, BLOB_COMPRESSED, VECTOR):  # the bytes of a value's length
        return ColumnType(code, number, prefix=number)
    if size := _size(code, meta, number):
        return ColumnType(code, number, size)
    raise StoreRefused(
        f"The binary log has a column of type {code}",
        why="the connector can't decode its values, and so can't locate the columns after it",
        todo="change that column's type, and start a new query after that",
    )


def _size(code: int, meta: bytes, number: int) -> int:
    """The bytes of each value of a type; 0 for an unknown type."""
    if code in MOMENTS:  # the digits of the fraction
        return MOMENTS[code] + (number + 1) // 2
    if code == NEWDECIMAL:  # its digits, and those after the point
        return sum(DIGITS[digits] for half in decimal_groups(*meta) for digits in half)
    if code == BIT:  # bits beyond whole bytes, and whole bytes
        return meta[1] + (meta[0] > 0)
    return FIXED.get(code, 0)


def decimal_groups(precision: int, scale: int) -> tuple[list[int], list[int]]:
    """The number of digits in each group of a decimal, before and after the point."""
    # Nine digits take four bytes. The rest are the first before the point, and the last after it.
    whole = precision - scale
    before = [whole % 9] * (whole % 9 > 0) + [9] * (whole // 9)
    return before, [9] * (scale // 9) + [scale % 9] * (scale % 9 > 0)


def _string(real: int, size: int) -> ColumnType:
    """A type that is logged as a string."""
    # The first byte is the real type. Its bits 0x30 are bits 8 and 9 of a CHAR's size, inverted.
    if real in CHOICES:
        return ColumnType(real, size, size)
    if real & 0x30 != 0x30:
        size |= (real & 0x30 ^ 0x30) << 4
    return ColumnType(STRING, size, prefix=2 if size > 255 else 1)


@dataclass(frozen=True)
class Charset:
    """A character set, by the server's name."""

    name: str
    # The character of each byte; in a set of two bytes those of pairs follow, by their first byte.
    letters: str = ""

    @property
    def is_read(self) -> bool:
        """Whether the connector can read its texts."""
        return bool(self.letters) or self.name in CODECS

    def texts(self, found: pa.Array) -> pa.Array:
        """Bytes as texts; raises `ValueError` for bytes that are not valid in this set."""
        if not self.is_read:
            raise ValueError(f"strings in character set {self.name} can't be followed")
        if CODECS.get(self.name) == "utf-8" and not self.letters:
            return found.cast(pa.string())  # raises if it is not UTF-8
        texts = (None if one is None else self._text(one) for one in found.to_pylist())
        return pa.array(texts, pa.string())

    def _text(self, found: bytes) -> str:
        if len(self.letters) > 256:
            return "".join(self._characters(found))
        if self.letters:
            return charmap_decode(found, "strict", self.letters)[0]
        return found.decode(CODECS[self.name])

    def _characters(self, found: bytes) -> Iterator[str]:
        """The characters of a set of two bytes: no byte is one, and also the first of two."""
        at = 0
        while at < len(found):
            letter, size = self.letters[found[at]], 1
            if letter == INVALID and found[at] >= FIRST and at + 1 < len(found):
                pair = 256 * (found[at] - FIRST + 1) + found[at + 1]
                letter, size = self.letters[pair], 2
            if letter == INVALID:
                raise ValueError(f"{found[at : at + 2]!r} is not valid in {self.name}")
            yield letter
            at += size


@dataclass(frozen=True)
class Charsets:
    """The character sets of a server."""

    names: Mapping[int, str]  # by the numbers of their collations
    letters: dict[str, str]  # of sets of one byte, and known ones of two; see `Charset`

    def of(self, collation: int, name: str = "") -> Charset | None:
        """The set of a collation; if unknown, the set of that name. None for bytes."""
        found = self.names.get(collation, name)
        return None if found in ("", "binary") else Charset(found, self.letters.get(found, ""))

    def learn(self, session: MySqlSession, name: str) -> None:
        """Query the characters of a set, if it is one of two bytes."""
        if name in OF_TWO_BYTES and name not in self.letters:
            letters = [INVALID] * (256 + 256 * (256 - FIRST))
            for one, two, text in session.run(PAIRS.format(name)):
                # A question mark is what the server shows for some pairs, and a part of one.
                is_part = text == "?" and not one and two != ord("?")
                if text is not None and len(text) == 1 and not is_part:
                    place = 256 * (int(one) - FIRST + 1) if one else 0
                    letters[place + int(two)] = text
            self.letters[name] = "".join(letters)


def charsets(session: MySqlSession) -> Charsets:
    """Query all character sets of a server."""
    return Charsets(_names(session), _letters(session))


def _names(session: MySqlSession) -> dict[int, str]:
    for table in COLLATIONS_OF:
        try:
            found = session.run(COLLATION_IDS.format(table))
            return {int(one): str(name) for one, name in found}
        except pymysql.MySQLError as error:
            if number(error) != UNKNOWN_COLUMN:
                raise
    return {}


def _letters(session: MySqlSession) -> dict[str, str]:
    """The character of each byte; the server returns a question mark for undefined bytes."""
    found = [str(name) for (name,) in session.run(OF_ONE_BYTE)]
    names = [one for one in found if one not in (*CODECS, "binary")]
    asked = (f"CONVERT(CONVERT(bytes USING {identifier(one)}) USING utf8mb4)" for one in names)
    (texts,) = session.run(f"SELECT {', '.join(asked)} FROM {BYTES}")
    pairs = zip(names, texts, strict=True)
    return {name: text for name, text in pairs if text and len(text) == 256}
