"""Finds the ends of requests in a client's stream of bytes, for the proxy."""

from __future__ import annotations


class AnyStream:
    """An unknown protocol: a request ends when the client falls silent."""

    def feed(self, data: bytes) -> None:
        pass

    @property
    def between_requests(self) -> bool:
        return True


class RedisStream(AnyStream):
    """A Redis client's commands; all from MULTI to EXEC is one request."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._arguments = 0
        self._size: int | None = None
        self._named = True
        self._transaction = False

    def feed(self, data: bytes) -> None:
        self._unread += data
        while self._take_line() if self._size is None else self._take_argument(self._size):
            pass

    @property
    def between_requests(self) -> bool:
        return not (self._unread or self._arguments or self._transaction)

    def _take_line(self) -> bool:
        end = self._unread.find(b"\r\n")
        if end < 0:
            return False
        line = self._take(end)
        if line.startswith(b"*"):
            self._arguments, self._named = int(line[1:]), False
        elif line.startswith(b"$"):
            self._size = int(line[1:])
        return True

    def _take_argument(self, size: int) -> bool:
        if len(self._unread) < size + 2:
            return False
        word = self._take(size)
        self._size = None
        self._arguments -= 1
        if not self._named:
            self._begin(word.upper())
        return True

    def _begin(self, command: bytes) -> None:
        self._named = True
        if command in {b"MULTI", b"EXEC", b"DISCARD"}:
            self._transaction = command == b"MULTI"

    def _take(self, size: int) -> bytes:
        taken = bytes(self._unread[:size])
        del self._unread[: size + 2]
        return taken


class MySqlStream(AnyStream):
    """A MySQL client's packets: three bytes of length, a number, and as many bytes as that."""

    LARGEST = 0xFFFFFF

    def __init__(self) -> None:
        self._unread = bytearray()
        self._continued = False

    def feed(self, data: bytes) -> None:
        self._unread += data
        while len(self._unread) >= 4:
            size = int.from_bytes(self._unread[:3], "little")
            if len(self._unread) < size + 4:
                return
            del self._unread[: size + 4]
            self._continued = size == self.LARGEST

    @property
    def between_requests(self) -> bool:
        return not (self._unread or self._continued)


class HttpStream(AnyStream):
    """An HTTP client's requests: a head, and a body of the length in the head."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._awaited = 0

    def feed(self, data: bytes) -> None:
        self._unread += data
        while self._unread:
            taken = min(self._awaited, len(self._unread))
            del self._unread[:taken]
            self._awaited -= taken
            if self._awaited or not self._take_head():
                return

    @property
    def between_requests(self) -> bool:
        return not (self._unread or self._awaited)

    def _take_head(self) -> bool:
        head, end, _ = bytes(self._unread).partition(b"\r\n\r\n")
        if not end:
            return False
        del self._unread[: len(head) + len(end)]
        for line in head.lower().split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name == b"content-length":
                self._awaited = int(value)
        return True


STREAMS = {"redis": RedisStream, "mysql": MySqlStream, "http": HttpStream}
