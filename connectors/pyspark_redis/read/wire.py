"""A connection that sends commands in blocks and returns replies as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import redis

from sparkonce.errors import MissingExtra, this_python

try:
    import hiredis
except ImportError:  # writes work without it
    hiredis = None  # type: ignore[assignment]

READ = 256 * 1024


def command(*words: bytes) -> bytes:
    """A command, see https://redis.io/docs/latest/develop/reference/protocol-spec/."""
    return b"".join((b"*%d\r\n" % len(words), *map(argument, words)))


def argument(word: bytes) -> bytes:
    """A word of a command."""
    return b"$%d\r\n%b\r\n" % (len(word), word)


class Wire:
    """See the module. Methods raise `redis.RedisError` if the connection breaks or times out."""

    def __init__(self, connection: Any) -> None:
        self._connection, self._reader = connection, hiredis.Reader()
        self.received = 0  # bytes of all replies so far

    def ask(self, commands: Sequence[bytes]) -> list[Any]:
        """The replies to commands; see `send` and `receive`."""
        self.send(b"".join(commands))
        return self.receive(len(commands))

    def send(self, commands: bytes) -> None:
        """Send commands without waiting for replies."""
        with _failures():
            self._connection._sock.sendall(commands)

    def receive(self, many: int) -> list[Any]:
        """The next `many` replies; an error reply is a `hiredis.ReplyError`."""
        replies: list[Any] = []
        with _failures():
            while len(replies) < many:
                data = self._connection._sock.recv(READ)
                if not data:
                    raise redis.ConnectionError("the server closed the connection")
                self.received += len(data)
                self._reader.feed(data)
                while (reply := self._reader.gets()) is not False:
                    replies.append(reply)
        return replies


@contextmanager
def _failures() -> Iterator[None]:
    """Translate errors of the socket into errors of redis-py."""
    try:
        yield
    except TimeoutError as error:
        raise redis.TimeoutError(f"no answer: {error}") from None
    except (OSError, hiredis.ProtocolError) as error:
        raise redis.ConnectionError(str(error)) from None


def good(reply: Any) -> Any:
    """The reply; or raise redis.ResponseError if the reply is an error."""
    if is_refusal(reply):
        raise redis.ResponseError(str(reply))
    return reply


def is_refusal(reply: Any) -> bool:
    """Whether a reply is an error."""
    return isinstance(reply, hiredis.ReplyError)


def is_other_type(reply: Any) -> bool:
    """Whether a reply is the error for a key of another type."""
    return is_refusal(reply) and str(reply).startswith("WRONGTYPE")


@contextmanager
def opened(client: redis.Redis) -> Iterator[Wire]:
    """Open a separate connection, because a cursor is valid on one server only."""
    if hiredis is None:
        raise MissingExtra(
            f"Reads of Redis need the Python package 'hiredis' ({this_python()})",
            why="it reads replies several times as fast as Python",
            todo="install the wheel of sparkonce with extra [redis] on the driver and every"
            " executor (docs/deploy.md)",
        )
    pool: Any = client.connection_pool
    connection = pool.connection_class(**pool.connection_kwargs)
    connection.connect()
    try:
        yield Wire(connection)
    finally:
        connection.disconnect()
