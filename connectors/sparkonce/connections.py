"""Shared connections of a process: a client, or a pool of connections, for each server and user.

The key has only the options that determine a connection, never all options of a sink. Otherwise a
session with many queries, each with its own checkpoint, would reach the server's limit of
connections. A thread closes and forgets idle connections, with the secrets in their keys; it runs
while any exist. A forked process starts without connections: two processes must not share a socket.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sparkonce.errors import OptionError

log = logging.getLogger("sparkonce")

IDLE = 30.0
"""Seconds without use after which connections are closed."""


class Idling(Protocol):
    """A client or pool that remains usable after its connections were closed."""

    def close_idle(self) -> None:
        """Close the connections that nobody uses now."""


T = TypeVar("T", bound=Idling)


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """The object of this process for a key; the first call creates it, which counts as a use."""
    here = _here()
    with here.lock:
        if key not in here.made:
            here.made[key] = make()
            here.used(here.made[key])
        found: T = here.made[key]
        return found


def used(what: Idling) -> None:
    """Record a use: the object is closed after `IDLE` more seconds."""
    _here().used(what)


def forget() -> None:
    """Close all shared connections that nobody uses now; the next caller opens new ones."""
    _here().forget()


class _Process:
    def __init__(self) -> None:
        self.lock = threading.RLock()  # the garbage collector may return a client while it is held
        self.made: dict[Hashable, Any] = {}
        self._last: dict[Idling, float] = {}
        self._closes = False

    def used(self, what: Idling) -> None:
        with self.lock:
            self._last[what] = time.monotonic()
            begins, self._closes = not self._closes, True
        if begins:
            self._begin()

    def forget(self) -> None:
        with self.lock:
            over = [*self._last]
            self._last.clear()
            self.made.clear()
        _close_all(over)

    def _begin(self) -> None:
        """Start the closing thread; if that fails now, the next use tries again."""
        try:
            threading.Thread(target=self._close, name="sparkonce-idle", daemon=True).start()
        except RuntimeError:
            with self.lock:
                self._closes = False

    def _close(self) -> None:
        wait = IDLE
        while wait:
            time.sleep(wait)
            over, wait = self._over()
            _close_all(over)

    def _over(self) -> tuple[list[Idling], float]:
        """The idle connections, and the seconds until the next check; 0 if none remain."""
        with self.lock:
            since = time.monotonic() - IDLE
            over = [what for what, at in self._last.items() if at <= since]
            for what in over:
                del self._last[what]
            closed = {id(what) for what in over}
            self.made = {key: one for key, one in self.made.items() if id(one) not in closed}
            self._closes = bool(self._last)
            return over, min((at - since for at in self._last.values()), default=0.0)


def _close_all(over: Iterable[Idling]) -> None:
    for what in over:
        try:
            what.close_idle()
        except Exception as error:  # after any error, the others must be closed, too
            log.warning("Idle connections could not be closed: %s: %s", type(error).__name__, error)


_processes: dict[int, _Process] = {}


def _here() -> _Process:
    found = _processes.get(os.getpid())
    return found or _processes.setdefault(os.getpid(), _Process())


class Closable(Protocol):
    """A client that can be closed."""

    def close(self) -> None:
        """Close its connections."""


Client = TypeVar("Client", bound=Closable)


class SharedClient(Generic[Client]):
    """A client for concurrent users; after an idle time the next user gets a new one.

    `make` returns a client that connects at its first request.
    """

    def __init__(self, make: Callable[[], Client]) -> None:
        self._make, self._lock, self._users = make, threading.Lock(), 0
        self._client: Client | None = None

    @contextmanager
    def client(self) -> Iterator[Client]:
        """The client, which stays open within the block; others may use it, too."""
        with self._lock:
            client = self._client = self._client or self._make()
            self._users += 1
        try:
            yield client
        finally:
            with self._lock:
                self._users -= 1
            used(self)

    def close_idle(self) -> None:
        """See `Idling.close_idle`."""
        with self._lock:
            if self._client is not None and not self._users:
                self._client.close()
                self._client = None


FILES = ("tlsCaFile", "tlsCertFile", "tlsKeyFile")


def tls_files(options: Mapping[str, Any]) -> dict[str, str]:
    """The options that name files, with the files."""
    return {name: str(options[name]) for name in FILES if options.get(name)}


def require_files(files: Mapping[str, str]) -> None:
    """Reject missing files.

    Raises:
        OptionError: it names the option.
    """
    for name, path in files.items():
        if not Path(path).is_file():
            raise OptionError(
                f"Option {name}={path!r} names no file",
                why="the driver and every executor read it",
                todo="put the file there, readable by Spark's user",
            )


def tls_context(files: Mapping[str, str], *, verify: bool = True) -> ssl.SSLContext:
    """The TLS context of a client.

    Without ``tlsCaFile`` it trusts the system's certificates.
    """
    made = ssl.create_default_context(cafile=files.get("tlsCaFile"))
    if not verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if "tlsCertFile" in files:
        made.load_cert_chain(files["tlsCertFile"], files.get("tlsKeyFile"))
    return made
