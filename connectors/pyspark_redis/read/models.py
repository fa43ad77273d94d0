"""How each model is read: what is asked of a key, and the rows of the reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress
from operator import not_
from typing import Any

from pyspark_redis.read.wire import argument, command
from sparkonce.errors import ValueUnreadable

VALUE, SCORE, ENTRY = "\0value", "\0score", "_id"
"""Columns of rows: a key's or an element's one value, a member's score, the id of an entry."""

BEGIN = b"-"  # where a key is read from at first

LAST = b"%d-%d" % (2**64 - 1, 2**64 - 1)
"""The id behind which there is none; the server refuses to be asked for more."""

PAGE = 1000  # entries of a stream that are asked for at a time


Keys = Sequence[bytes]
Rest = Iterator[tuple[bytes, bytes]]  # keys under which there is more, and where to go on


class KeyRows:
    """Rows, column by column."""

    def __init__(self, names: Iterable[str]) -> None:
        self.keys: list[bytes] = []  # of each row
        self.columns: dict[str, list[Any]] = {name: [] for name in names}  # bytes or None
        self.doubtful: list[bytes] = []  # keys that are gone, or have no value that is asked for

    def pieces(self, most: int) -> Iterator[KeyRows]:
        """The same, so many rows at most at a time; a single key may have given millions."""
        for at in range(0, len(self.keys), most):
            piece = KeyRows(())
            piece.keys = self.keys[at : at + most]
            piece.columns = {name: one[at : at + most] for name, one in self.columns.items()}
            yield piece


class ModelReader:
    """How columns of these names are read, or a sample of what is there (None)."""

    kind: bytes  # what Redis calls the type of its keys
    columns: Sequence[str] = (VALUE,)  # of the rows
    words: Sequence[bytes]  # of the command, without the key behind the first one
    some: Sequence[bytes] = ()  # the same for a sample, which may be a part of what is there
    count: bytes = b""  # the command that tells how many rows a key has, where that may be millions

    def __init__(self, names: Sequence[str] | None = None) -> None:
        name, *rest = self.some if names is None and self.some else self.words
        self._head = b"*%d\r\n" % (2 + len(rest)) + argument(name)
        self._tail = b"".join(map(argument, rest))

    def ask(self, key: bytes, begin: bytes = BEGIN) -> bytes:  # noqa: ARG002 (of streams)
        """The command for what lies under a key."""
        return b"%b$%d\r\n%b\r\n%b" % (self._head, len(key), key, self._tail)

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> bytes | None:
        """Put the reply among rows; where to go on, if it was not all."""
        raise NotImplementedError

    def take_all(self, keys: Keys, replies: Sequence[Any], rows: KeyRows) -> Rest:
        """The same for a block; gives the keys of which there is more, with where to go on."""
        for key, reply in zip(keys, replies, strict=True):
            begin = self.take(key, reply, rows)
            if begin is not None:
                yield key, begin

    def sample(self, reply: Any) -> dict[str, list[Any]]:
        """The values in a reply to `ask`, by columns."""
        rows = KeyRows(self.columns)
        self.take(b"", reply, rows)
        return rows.columns


class HashReader(ModelReader):
    """A row is a hash, a column a field."""

    kind = b"hash"
    some = (b"HRANDFIELD", b"1000", b"WITHVALUES")

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self.columns = names or ()
        fields = [name.encode() for name in self.columns]
        self.words = (b"HMGET", *fields) if fields else (b"HLEN",)
        super().__init__(names)

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> None:
        """See `ModelReader.take`. Of a hash of which no field is asked for, its length comes."""
        if reply:
            rows.keys.append(key)

    def take_all(self, keys: Keys, replies: Sequence[Any], rows: KeyRows) -> Rest:
        """See `ModelReader.take_all`. A hash without these fields looks like one that is gone."""
        if not self.columns:
            yield from super().take_all(keys, replies, rows)
            return
        nothing = [None] * len(self.columns)
        if nothing in replies:
            found = [reply != nothing for reply in replies]
            rows.doubtful += compress(keys, map(not_, found))
            keys, replies = [*compress(keys, found)], [*compress(replies, found)]
        rows.keys += keys
        for values, column in zip(rows.columns.values(), zip(*replies, strict=True), strict=False):
            values.extend(column)

    def sample(self, reply: Any) -> dict[str, list[Any]]:
        """See `ModelReader.sample`."""
        return {_name(name): [one] for name, one in zip(reply[::2], reply[1::2], strict=True)}


class StringReader(ModelReader):
    """A row is a string."""

    kind = b"string"
    words = (b"GET",)

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> None:
        """See `ModelReader.take`."""
        if reply is not None:
            rows.keys.append(key)
            rows.columns[VALUE].append(reply)


class ListReader(ModelReader):
    """A row is an element of a list."""

    kind = b"list"
    words: Sequence[bytes] = (b"LRANGE", b"0", b"-1")
    some: Sequence[bytes] = (b"LRANGE", b"0", b"99")
    count = b"LLEN"

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> None:
        """See `ModelReader.take`."""
        rows.keys += [key] * len(reply)
        rows.columns[VALUE] += reply


class SetReader(ListReader):
    """A row is a member of a set."""

    kind = b"set"
    words, some = (b"SMEMBERS",), (b"SRANDMEMBER", b"100")
    count = b"SCARD"


class ZsetReader(ModelReader):
    """A row is a member of a sorted set, with its score."""

    kind = b"zset"
    columns = (VALUE, SCORE)
    words = (b"ZRANGE", b"0", b"-1", b"WITHSCORES")
    some = (b"ZRANGE", b"0", b"99", b"WITHSCORES")
    count = b"ZCARD"

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> None:
        """See `ModelReader.take`."""
        members = reply[::2]
        rows.keys += [key] * len(members)
        rows.columns[VALUE] += members
        rows.columns[SCORE] += reply[1::2]


class StreamReader(ModelReader):
    """A row is an entry of a stream, with its id; page by page."""

    kind = b"stream"
    words = (b"XRANGE",)

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self.columns = (ENTRY, *(name for name in names or () if name != ENTRY))
        self._page = b"100" if names is None else b"%d" % PAGE
        super().__init__(names)

    def ask(self, key: bytes, begin: bytes = BEGIN) -> bytes:
        """See `ModelReader.ask`."""
        return command(b"XRANGE", key, begin, b"+", b"COUNT", self._page)

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> bytes | None:
        """See `ModelReader.take`."""
        rows.keys += [key] * len(reply)
        rows.columns[ENTRY] += [entry for entry, _ in reply]
        if reply:
            self._take_fields(key, reply, rows)
        more = len(reply) == PAGE and reply[-1][0] != LAST
        return b"(" + reply[-1][0] if more else None

    def _take_fields(self, key: bytes, reply: list[tuple[bytes, Any]], rows: KeyRows) -> None:
        """Put fields among rows: at once, where all entries have the same, in the same order."""
        each = [words for _, words in reply]
        layout, width = each[0][::2], len(each[0])
        flat = [*chain.from_iterable(each)]
        alike = len(set(layout)) == len(layout) and {*map(len, each)} == {width}
        names = (flat[at::width] for at in range(0, width, 2))
        same = (those == [one] * len(each) for those, one in zip(names, layout, strict=True))
        if alike and all(same):
            found = {one: flat[2 * at + 1 :: width] for at, one in enumerate(layout)}
            nothing = [None] * len(each)
            for name in self.columns[1:]:
                rows.columns[name] += found.get(name.encode(), nothing)
            return
        fields = [dict(zip(words[::2], words[1::2], strict=True)) for words in each]
        for name in self.columns[1:]:
            word = name.encode()
            for (entry, words), one in zip(reply, fields, strict=True):
                if 2 * len(one) < len(words) and words[::2].count(word) > 1:
                    raise _twice(key, entry, name)
            rows.columns[name] += [one.get(word) for one in fields]

    def sample(self, reply: Any) -> dict[str, list[Any]]:
        """See `ModelReader.sample`."""
        found: dict[str, list[Any]] = {}
        for _, words in reply:
            for name, value in zip(words[::2], words[1::2], strict=True):
                found.setdefault(_name(name), []).append(value)
        return found


def _twice(key: bytes, entry: bytes, name: str) -> ValueUnreadable:
    return ValueUnreadable(
        f"Entry {entry.decode()} of stream {key!r} has field {name!r} twice",
        why="one of its values would be lost",
        todo=f"read without that column; {passing(key, entry)}",
    )


def passing(key: bytes, entry: bytes) -> str:
    """How a query that follows a stream goes on behind an entry that can't be read."""
    named = f"{key.decode(errors='replace')}:{entry.decode()}"
    return f"spark.readStream passes the entry over with skipEntries={named}"


def _name(field: bytes) -> str:
    """The name of a field; no column has that of one that is no UTF-8."""
    return field.decode(errors="replace")


READERS: dict[str, type[ModelReader]] = {
    "hash": HashReader,
    "string": StringReader,
    "counter": StringReader,
    "list": ListReader,
    "set": SetReader,
    "zset": ZsetReader,
    "stream": StreamReader,
}
"""By the value of option ``model``."""
