"""A server that asks for a file of the client's gets none; what it may have is the chunk, once."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress

import pymysql
import pytest
from pymysql.constants import CLIENT

from pyspark_mysql.server.connection import UploadingConnection


class Hostile(threading.Thread):
    """A server that asks for a file in answer to any statement, and keeps what it gets."""

    GREETING = (
        b"\x0a9.9.9\0\1\0\0\0saltsalt\0\xff\xf7\xff\2\0\xff\xdf\x15"
        + bytes(10)
        + b"saltsaltsalt\0mysql_native_password\0"
    )

    FINE = b"\0\0\0\2\0\0\0"

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got: list[bytes] = []

    def run(self) -> None:
        connection, _ = self.listener.accept()
        with connection, suppress(OSError, struct.error):
            self._send(connection, 0, self.GREETING)
            self._read(connection)
            self._send(connection, 2, self.FINE)
            self._read(connection)  # SET NAMES
            self._send(connection, 1, self.FINE)
            while self._read(connection):
                self._send(connection, 1, b"\xfb/etc/hostname")
                while piece := self._read(connection):
                    self.got.append(piece)
                self._send(connection, 3, self.FINE)

    def _send(self, connection: socket.socket, number: int, body: bytes) -> None:
        connection.sendall(struct.pack("<I", len(body))[:3] + bytes([number]) + body)

    def _read(self, connection: socket.socket) -> bytes:
        head = connection.recv(4, socket.MSG_WAITALL)
        size = int.from_bytes(head[:3], "little")
        return connection.recv(size, socket.MSG_WAITALL) if size else b""


@pytest.fixture
def hostile() -> Iterator[Hostile]:
    server = Hostile()
    server.start()
    yield server
    server.listener.close()


def client_of(server: Hostile) -> UploadingConnection:
    return UploadingConnection(
        host="127.0.0.1", port=server.port, user="a", client_flag=CLIENT.LOCAL_FILES,
        autocommit=None, read_timeout=5,
    )  # fmt: skip


def test_a_server_that_asks_for_a_file_gets_none(hostile: Hostile) -> None:
    with suppress(RuntimeError, pymysql.MySQLError):
        client_of(hostile).query("SELECT 1")
    assert hostile.got == []


def test_a_server_that_asks_for_another_file_gets_the_chunk(hostile: Hostile) -> None:
    client = client_of(hostile)
    with suppress(RuntimeError, pymysql.MySQLError), client.upload(memoryview(b"(1),"), 65536):
        client.query("LOAD DATA LOCAL INFILE 'sparkonce' INTO TABLE t")
    assert hostile.got == [b"(1),"]
