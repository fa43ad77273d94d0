"""A TCP port of this machine that stays ours while the server behind it comes and goes."""

from __future__ import annotations

import socket
import sys

HOST = "127.0.0.1"


class Port:
    """A free port, chosen by the system and kept until released.

    On Linux a socket that is bound but does not listen keeps the port: with SO_REUSEADDR the
    server may still listen on it, while nobody else, in this or another process, is given it.
    Elsewhere such a socket would keep the server out too, so the port is only chosen.
    """

    def __init__(self) -> None:
        self._hold = socket.socket()
        self._hold.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._hold.bind((HOST, 0))
        self.number: int = self._hold.getsockname()[1]
        if sys.platform != "linux":
            self._hold.close()

    def release(self) -> None:
        self._hold.close()
