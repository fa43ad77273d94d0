"""Finds test servers: one at a given address, or the first program that starts on this machine.

Tests in several processes share one server: see `Registry`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener
from threading import Lock, Thread
from time import sleep
from typing import Any, Generic, Protocol, TypeVar

import pytest

T = TypeVar("T")


class Program(Protocol):
    """A server that this machine can run."""

    @property
    def how(self) -> str:
        """A description of the program."""


P = TypeVar("P", bound=Program)


@dataclass(frozen=True)
class Server:
    """A server that replies, and its origin."""

    name: str
    version: str
    how: str
    url: str

    def __str__(self) -> str:
        return f"{self.name}: {self.version} ({self.how})"


class UnavailableError(Exception):
    """This machine cannot run the server; the text says why.

    Attributes:
        cure: the command that would change it, if any.
    """

    def __init__(self, why: str, cure: str = "") -> None:
        super().__init__(why)
        self.cure = cure


NO_SERVER = "no {} server"


class NoServerError(Exception):
    """No way found a server; the text lists each way, why it failed, and a cure."""

    def __init__(
        self, name: str, reasons: Mapping[str, str], cure: str = "", asked: str | None = None
    ) -> None:
        super().__init__(name, reasons, cure, asked)  # all arguments, so that pickle works
        self.name, self.cure, self.asked = name, cure, asked
        self.listed = "; ".join(f"{way}: {why}" for way, why in reasons.items())

    def __str__(self) -> str:
        helps = f"; what brings one: {self.cure}" if self.cure else ""
        return f"{NO_SERVER.format(self.name)} ({self.listed}){helps}"


BREW = {
    "redis-server": "redis",
    "mariadb-server": "mariadb",
    "openjdk-17-jdk-headless": "openjdk@17",
    "openjdk-21-jdk-headless": "openjdk@21",
}


def installing(*packages: str) -> str:
    """The command that installs these packages of Debian, or their equivalents on macOS."""
    if sys.platform == "darwin":
        return f"brew install {' '.join(BREW.get(package, package) for package in packages)}"
    return f"{'sudo ' if os.geteuid() else ''}apt-get install {' '.join(packages)}"


def reason(error: Exception) -> str:
    """One line for a list of reasons; an unexpected error includes its type."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    foreseen = isinstance(error, UnavailableError)
    return first_line if foreseen else f"{type(error).__name__}: {first_line}"


def first_that_works(name: str, ways: Mapping[str, Callable[[], T]], asked: str | None = None) -> T:
    """Try the ways in order, or only the requested one."""
    reasons, cure = dict[str, str](), ""
    if asked and asked not in ways:
        raise pytest.UsageError(f"no way {asked!r} to get {name}: choose of {', '.join(ways)}")
    for way in [asked] if asked else ways:
        try:
            return ways[way]()
        except Exception as error:  # after any error the next way may still work
            reasons[way] = reason(error)
            cure = getattr(error, "cure", "") or cure
    raise NoServerError(name, reasons, cure, asked)


@dataclass(eq=False)
class Finder(Generic[P]):
    """Finds one server, once, and keeps it until closed.

    `SPARKONCE_TEST_<NAME>=<program>` chooses a program, `SPARKONCE_TEST_<NAME>_URL` a server that
    runs already; the finder never silently replaces a server that was requested by its address.

    Attributes:
        name: the name of the server.
        programs: find programs on this machine, tried in this order.
        start: starts a program as a server with a `url`; a context manager.
        version_at: returns the version of the server at a URL.
        on_request: the programs that run only if the setting names them.
        elsewhere: asks the process that keeps the server for all; see `Registry`.
    """

    name: str
    programs: Mapping[str, Callable[[], P]]
    start: Callable[[P], Any]
    version_at: Callable[[str], str]
    on_request: Collection[str] = ()
    elsewhere: Callable[[], Server | Exception] | None = field(default=None, init=False)
    _running: ExitStack = field(default_factory=ExitStack, init=False)
    _found: Server | Exception | None = field(default=None, init=False)

    @property
    def setting(self) -> str:
        return f"SPARKONCE_TEST_{self.name.upper()}"

    @property
    def asked(self) -> str | None:
        given_url = "url" if os.environ.get(f"{self.setting}_URL") else None
        return os.environ.get(self.setting) or given_url

    def program(self) -> P:
        """The program of private servers: the first available one, or the requested one."""
        asked = self.asked if self.asked in self.programs else None
        return first_that_works(self.name, self._allowed(), asked)

    def find(self) -> Server:
        if self._found is None:
            self._found = self.elsewhere() if self.elsewhere else self._search()
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    @property
    def found(self) -> Server | None:
        """The server, if one was found already."""
        return self._found if isinstance(self._found, Server) else None

    def close(self) -> None:
        self._found = None
        self._running.close()

    def _allowed(self) -> dict[str, Callable[[], P]]:
        allowed = {*self.programs} - {*self.on_request} | {self.asked}
        return {how: find for how, find in self.programs.items() if how in allowed}

    def _search(self) -> Server | NoServerError:
        local = {how: partial(self._started, find) for how, find in self._allowed().items()}
        try:
            return first_that_works(self.name, {"url": self._at_url, **local}, self.asked)
        except NoServerError as absent:
            return absent

    def _at_url(self) -> Server:
        setting = f"{self.setting}_URL"
        url = os.environ.get(setting)
        if not url:
            raise UnavailableError(f"{setting} is not set")
        return Server(self.name, self.version_at(url), f"at {setting}", url)

    def _started(self, find: Callable[[], P]) -> Server:
        with ExitStack() as attempt:  # undone immediately if the program fails half-way
            program = find()
            url = attempt.enter_context(self.start(program)).url
            server = Server(self.name, self.version_at(url), program.how, url)
            self._running = attempt.pop_all()
        return server


def required() -> bool:
    """Whether a missing server is a failure."""
    return os.environ.get("REQUIRE_SERVERS") == "1"


def or_skip(get: Callable[[], T]) -> T:
    """Skip a test without its server; fail it if servers are required.

    REQUIRE_SERVERS=1 requires them, and so does a given address of a server.
    """
    try:
        return get()
    except NoServerError as absent:
        if absent.asked == "url" or required():
            pytest.fail(str(absent), pytrace=False)
        pytest.skip(str(absent))


Found = Server | NoServerError | pytest.UsageError


class Registry:
    """Finds servers for other processes, each server once.

    The process that distributes the tests keeps the servers, and replies to the others over a local
    pipe.
    """

    def __init__(self, finders: Mapping[str, Finder[Any]]) -> None:
        self._finders = {name: (finder, Lock()) for name, finder in finders.items()}
        self._key = os.urandom(16)
        self._listener = Listener(authkey=self._key, backlog=16)
        self._open = True
        Thread(target=self._serve, name="server registry", daemon=True).start()

    @property
    def address(self) -> tuple[str, str]:
        """The arguments of `ask`, as texts."""
        return str(self._listener.address), self._key.hex()

    def close(self) -> None:
        self._open = False
        self._listener.close()

    def _serve(self) -> None:
        while self._open:
            try:
                Thread(target=self._answer, args=[self._listener.accept()], daemon=True).start()
            except (OSError, EOFError, AuthenticationError):  # the client has disconnected
                sleep(0.1)

    def _answer(self, asking: Connection) -> None:
        with asking, suppress(EOFError, BrokenPipeError):  # the client has disconnected
            finder, one_at_a_time = self._finders[asking.recv()]
            with one_at_a_time:
                asking.send(_outcome(finder))


def ask(address: tuple[str, str], name: str) -> Found:
    """The server of a registry, after the time of its start."""
    place, key = address
    with Client(place, authkey=bytes.fromhex(key)) as registry:
        registry.send(name)
        found: Found = registry.recv()
        return found


def _outcome(finder: Finder[Any]) -> Found:
    try:
        return finder.find()
    except (NoServerError, pytest.UsageError) as absent:
        return absent
