"""Readers of the models: the command for a key, and the rows of its reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress
from operator import not_
from typing import Any

from pyspark_redis.read.wire import argument, command
from sparkonce.errors import ValueUnreadable

VALUE, SCORE, FIELD, ENTRY = "\0value", "\0score", "\0field", "_id"
"""Columns of rows: the value of a key, an element or a field. Then the score of a member, the name
of a field, and the id of an entry."""

BEGIN = b"-"  # the position where the read of a key starts

LAST = b"%d-%d" % (2**64 - 1, 2**64 - 1)
"""The highest id; the server rejects a read that starts after it."""

PAGE = 1000  # entries of a stream in one command


Keys = Sequence[bytes]
Rest = Iterator[tuple[bytes, bytes]]  # keys with more rows, and the position where to continue


class KeyRows:
    """Rows, column by column."""

    def __init__(self, names: Iterable[str]) -> None:
        self.keys: list[bytes] = []  # the key of each row
        self.columns: dict[str, list[Any]] = {name: [] for name in names}  # bytes or None
        self.doubtful: list[bytes] = []  # keys that were removed, or have none of the columns

    def pieces(self, most: int) -> Iterator[KeyRows]:
        """These rows in pieces of at most `most` rows; a single key may have millions."""
        for at in range(0, len(self.keys), most):
            piece = KeyRows(())
            piece.keys = self.keys[at : at + most]
            piece.columns = {name: one[at : at + most] for name, one in self.columns.items()}
            yield piece


class ModelReader:
    """Reads the columns `names` of keys, or a sample of all columns (None)."""

    kind: bytes  # the Redis type of the keys, as TYPE reports it
    columns: Sequence[str] = (VALUE,)  # the columns of the rows
    words: Sequence[bytes]  # the words of the command, without the key after the first word
    some: Sequence[bytes] = ()  # the same for a sample, which may read a part of the key
    count: bytes = b""  # the command that counts the rows of a key, which may be millions

    def __init__(self, names: Sequence[str] | None = None) -> None:
        name, *rest = self.some if names is None and self.some else self.words
        self._head = b"*%d\r\n" % (2 + len(rest)) + argument(name)
        self._tail = b"".join(map(argument, rest))

    def ask(self, key: bytes, begin: bytes = BEGIN) -> bytes:  # noqa: ARG002 (of streams)
        """The command that reads a key."""
        return b"%b$%d\r\n%b\r\n%b" % (self._head, len(key), key, self._tail)

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> bytes | None:
        """Add the reply to `rows`; return where to continue, or None if the key is complete."""
        raise NotImplementedError

    def take_all(self, keys: Keys, replies: Sequence[Any], rows: KeyRows) -> Rest:
        """`take` for a block; yields the keys with more rows, and where to continue."""
        for key, reply in zip(keys, replies, strict=True):
            begin = self.take(key, reply, rows)
            if begin is not None:
                yield key, begin

    def sample(self, reply: Any) -> dict[str, list[Any]]:
        """The values in a reply to `ask`, by column."""
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
        """See `ModelReader.take`. Without columns, the reply is the length of the hash."""
        if reply:
            rows.keys.append(key)

    def take_all(self, keys: Keys, replies: Sequence[Any], rows: KeyRows) -> Rest:
        """See `ModelReader.take_all`. A hash without these fields looks like a removed key."""
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
    words: Sequence[bytes] = (b"ZRANGE", b"0", b"-1", b"WITHSCORES")
    some: Sequence[bytes] = (b"ZRANGE", b"0", b"99", b"WITHSCORES")
    count = b"ZCARD"

    def take(self, key: bytes, reply: Any, rows: KeyRows) -> None:
        """See `ModelReader.take`. Each two texts are a row."""
        first, second = self.columns
        rows.keys += [key] * (len(reply) // 2)
        rows.columns[first] += reply[::2]
        rows.columns[second] += reply[1::2]


class FieldReader(ZsetReader):
    """A row is a field of a hash, with its value."""

    kind = b"hash"
    columns = (FIELD, VALUE)
    words = (b"HGETALL",)
    some = (b"HRANDFIELD", b"100", b"WITHVALUES")
    count = b"HLEN"


class StreamReader(ModelReader):
    """A row is an entry of a stream, with its id; read page by page."""

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
        """Add fields to `rows`: column by column if all entries have the same fields in order."""
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
    """How a query that follows a stream skips an entry that can't be read."""
    named = f"{key.decode(errors='replace')}:{entry.decode()}"
    return f"spark.readStream skips the entry with skipEntries={named}"


def _name(field: bytes) -> str:
    """The name of a field; a name that is not UTF-8 never equals that of a column."""
    return field.decode(errors="replace")


READERS: dict[str, type[ModelReader]] = {
    "hash": HashReader,
    "entries": FieldReader,
    "string": StringReader,
    "counter": StringReader,
    "list": ListReader,
    "set": SetReader,
    "zset": ZsetReader,
    "stream": StreamReader,
}
"""Readers by the value of option ``model``."""
