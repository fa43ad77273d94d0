"""Tables as the log describes them before their rows: TABLE_MAP_EVENT.

See https://dev.mysql.com/doc/dev/mysql-server/latest/classmysql_1_1binlog_1_1event_1_1Table__map__event.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from pyspark_mysql.binlog.charsets import Charset
from pyspark_mysql.binlog.types import (
    CHOICES,
    ENUM,
    GEOMETRY,
    METADATA,
    NUMBERS,
    OF_CHARACTERS,
    SET,
    STRING,
    Type,
    lengths,
)


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        type: how its values are stored.
        name: empty where the log has no names (``binlog_row_metadata``).
        nullable: whether it may be null.
        unsigned: None where the log does not tell.
        collation: its number; 0 where the log does not tell.
        charset: None of bytes. Who reads the log says it.
        words: of an ENUM or a SET in that character set. None where nothing tells all of them.
    """

    type: Type
    name: str = ""
    nullable: bool = True
    unsigned: bool | None = None
    collation: int = 0
    charset: Charset | None = None
    words: tuple[bytes, ...] | None = ()

    @property
    def padding(self) -> int:
        """Bytes of a BINARY, whose zeros at the end are not logged; 0 of all else."""
        is_binary = self.type.code == STRING and self.charset is None
        return self.type.meta if is_binary else 0


@dataclass(frozen=True)
class Table:
    """A table, and the form of its rows.

    Attributes:
        key: places of the columns of its primary key, where the log tells names. Without a primary
            key it is the first unique one that has no nulls, which servers take for it.
        named: whether the log tells the names of columns.
    """

    database: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[int, ...] = ()

    @property
    def named(self) -> bool:
        """See the class."""
        return bool(self.columns and self.columns[0].name)


def length(data: bytes, at: int) -> tuple[int, int]:
    """A "Length-Encoded Integer" of the protocol, and where it ends."""
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


def whose(body: bytes) -> tuple[str, str]:
    """The database and the name of the table that an event describes, see `table`."""
    database, at = _text(body, 2)
    return database, _text(body, at + 1)[0]


@lru_cache(maxsize=1024)  # the same bytes come before each statement
def table(body: bytes, *, mariadb: bool) -> Table:
    """The table that an event describes.

    Args:
        body: of the event, behind the number of the table.
        mariadb: whether MariaDB logged it.
    """
    database, at = _text(body, 2)
    name, at = _text(body, at + 1)
    count, at = length(body, at + 1)
    codes = body[at : at + count]
    size, at = length(body, at + count)
    nullable, end = int.from_bytes(body[at + size :], "little"), at + size + (count + 7) // 8
    found = enumerate(_types(codes, body[at : at + size]))
    columns = [Column(one, nullable=bool(nullable >> number & 1)) for number, one in found]
    told = _Told(columns, mariadb=mariadb)
    for kind, value in _fields(body, end):
        told.take(kind, value)
    return Table(database, name, tuple(told.columns), told.key)


class _Told:
    """What follows the types, as far as ``binlog_row_metadata`` has it: signs, names, words, key.

    Args:
        columns: without it.
        mariadb: which tells a character set of geometries, too.
    """

    def __init__(self, columns: list[Column], *, mariadb: bool) -> None:
        self.columns, self.key = columns, tuple[int, ...]()
        characters = (*OF_CHARACTERS, *((GEOMETRY,) if mariadb else ()))
        self._texts = self._of(*characters)
        self._choices = self._of(*CHOICES)

    def take(self, kind: int, value: bytes) -> None:
        """Take one field: its kind is that of ``Optional_metadata_field_type``."""
        if kind == 1:
            for number, at in enumerate(self._of(*NUMBERS)):
                self._set(at, unsigned=bool(value[number // 8] & 0x80 >> number % 8))
        elif kind in (2, 10):
            self._default_collation(self._texts if kind == 2 else self._choices, [*_numbers(value)])
        elif kind in (3, 11):
            found = self._texts if kind == 3 else self._choices
            for at, collation in zip(found, _numbers(value), strict=True):
                self._set(at, collation=collation)
        elif kind == 4:
            for at, name in enumerate(_texts(value)):
                self._set(at, name=name.decode())
        elif kind in (5, 6):
            self._choose(self._of(SET if kind == 5 else ENUM), value)
        elif kind in (8, 9):  # in the second, how much of a column counts stands behind it
            self.key = tuple(_numbers(value))[:: kind - 7]

    def _choose(self, columns: list[int], value: bytes) -> None:
        at = 0
        for column in columns:
            count, at = length(value, at)
            words = []
            for _ in range(count):
                word, at = _bytes(value, at)
                words.append(word)
            self._set(column, words=tuple(words))

    def _default_collation(self, of: list[int], numbers: list[int]) -> None:
        default, *others = numbers
        for at in of:
            self._set(at, collation=default)
        for number, collation in zip(others[::2], others[1::2], strict=True):
            self._set(of[number], collation=collation)

    def _of(self, *codes: int) -> list[int]:
        return [at for at, one in enumerate(self.columns) if one.type.code in codes]

    def _set(self, at: int, **changes: object) -> None:
        self.columns[at] = replace(self.columns[at], **changes)  # type: ignore[arg-type]


def _types(codes: bytes, metas: bytes) -> Iterator[Type]:
    at = 0
    for code in codes:
        width = METADATA.get(code, 0)
        yield lengths(code, metas[at : at + width])
        at += width


def _fields(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at < len(body):
        kind = body[at]
        value, at = _bytes(body, at + 1)
        yield kind, value


def _text(body: bytes, at: int) -> tuple[str, int]:
    value, at = _bytes(body, at)
    return value.decode(), at


def _bytes(value: bytes, at: int) -> tuple[bytes, int]:
    size, at = length(value, at)
    return value[at : at + size], at + size


def _numbers(value: bytes) -> Iterator[int]:
    at = 0
    while at < len(value):
        number, at = length(value, at)
        yield number


def _texts(value: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(value):
        text, at = _bytes(value, at)
        yield text
