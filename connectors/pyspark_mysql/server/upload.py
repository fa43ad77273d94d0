"""A connection that answers LOAD DATA LOCAL with bytes of its own, and never opens a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pymysql.connections import Connection
from pymysql.protocol import MysqlPacket

PIECE = 256 * 1024
"""Bytes of a packet of it, where the server takes such packets."""


class Uploading(Connection):
    """See `pymysql.connections.Connection`.

    A server answers LOAD DATA LOCAL with the name of a file that it wants, and a hostile one can
    answer so to any statement. The name is never looked at: what is sent is what `upload` was
    given, once; and without `local_infile`, pymysql refuses every other such answer.

    See "Security Considerations for LOAD DATA LOCAL" in MySQL's manual.
    """

    _data: memoryview | None = None
    _piece = PIECE

    @contextmanager
    def upload(self, data: memoryview, packet: int) -> Iterator[None]:
        """Within the block the server may have these bytes, once.

        Args:
            data: to be sent.
            packet: bytes that the server takes in one packet.
        """
        self._data, self._piece = data, min(PIECE, packet // 2)
        try:
            yield
        finally:
            self._data = None

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> MysqlPacket:
        packet: MysqlPacket = super()._read_packet(packet_type)  # type: ignore[no-untyped-call]
        # Taken by the first answer, whatever it is: one that asks again gets nothing.
        data, self._data = self._data, None
        if data is None or not packet.is_load_local_packet():
            return packet
        for start in range(0, len(data), self._piece):
            self.write_packet(data[start : start + self._piece])
        # An empty packet ends the file.
        self.write_packet(b"")
        return self._read_packet(packet_type)
