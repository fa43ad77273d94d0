"""Servers of a run whose tests run in several processes: they are started once, by the first one.

The process that hands out the tests keeps the servers, and answers the others over a pipe of the
machine's own. Without such processes each finder finds its server by itself.
"""

from __future__ import annotations

import os
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from threading import Lock, Thread
from time import sleep
from typing import TYPE_CHECKING

import pytest
from integration.support.servers.finder import NoServerError, Server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from integration.support.servers.finder import Finder

Found = Server | NoServerError | pytest.UsageError


class Desk:
    """Finds servers for other processes, each server once.

    Args:
        finders: by name, those that it may be asked for.
    """

    def __init__(self, finders: Mapping[str, Finder]) -> None:
        self._finders = {name: (finder, Lock()) for name, finder in finders.items()}
        self._key = os.urandom(16)
        self._listener = Listener(authkey=self._key, backlog=16)
        self._open = True
        Thread(target=self._serve, name="server desk", daemon=True).start()

    @property
    def address(self) -> tuple[str, str]:
        """What `ask` needs, as texts."""
        return str(self._listener.address), self._key.hex()

    def close(self) -> None:
        self._open = False
        self._listener.close()

    def _serve(self) -> None:
        while self._open:
            try:
                Thread(target=self._answer, args=[self._listener.accept()], daemon=True).start()
            except (OSError, EOFError, AuthenticationError):  # who came has gone again
                sleep(0.1)

    def _answer(self, asking: Connection) -> None:
        with asking, suppress(EOFError, BrokenPipeError):  # who asked has gone
            finder, one_at_a_time = self._finders[asking.recv()]
            with one_at_a_time:
                asking.send(_found(finder))


def ask(address: tuple[str, str], name: str) -> Found:
    """What a desk has found, after the time it takes to start it."""
    place, key = address
    with Client(place, authkey=bytes.fromhex(key)) as desk:
        desk.send(name)
        found: Found = desk.recv()
        return found


def _found(finder: Finder) -> Found:
    try:
        return finder.find()
    except (NoServerError, pytest.UsageError) as absent:
        return absent
