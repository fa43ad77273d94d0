"""Ordered ways to get a test server: the first that answers is used, and what was used is told."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import pytest

T = TypeVar("T")


@dataclass(frozen=True)
class Server:
    """A server that answers, and how it was come by."""

    name: str
    version: str
    how: str
    url: str

    def __str__(self) -> str:
        return f"{self.name}: {self.version} ({self.how})"


# A way starts what it needs, leaves the undoing on the stack, and raises when it cannot.
Way = Callable[[ExitStack], Server]


class UnavailableError(Exception):
    """This way gives no server here; the text says why.

    Attributes:
        cure: the command that would change it, where there is one.
    """

    def __init__(self, why: str, cure: str = "") -> None:
        super().__init__(why)
        self.cure = cure


BREW = {
    "redis-server": "redis",
    "mariadb-server": "mariadb",
    "openjdk-17-jdk-headless": "openjdk@17",
    "openjdk-21-jdk-headless": "openjdk@21",
}


def installing(*packages: str) -> str:
    """The command that installs these of Debian's packages, or what macOS has for them."""
    if sys.platform == "darwin":
        return f"brew install {' '.join(BREW.get(package, package) for package in packages)}"
    return f"{'sudo ' if os.geteuid() else ''}apt-get install {' '.join(packages)}"


NO_SERVER = "no {} server"


class NoServerError(Exception):
    """No way gave a server; the text lists each way and why it failed, and what would help."""

    def __init__(
        self, name: str, reasons: Mapping[str, str], cure: str = "", asked: str | None = None
    ) -> None:
        super().__init__(name, reasons, cure, asked)  # all of it, to go from process to process
        self.name, self.cure, self.asked = name, cure, asked
        self.listed = "; ".join(f"{way}: {why}" for way, why in reasons.items())

    def __str__(self) -> str:
        helps = f"; what brings one: {self.cure}" if self.cure else ""
        return f"{NO_SERVER.format(self.name)} ({self.listed}){helps}"


def reason(error: Exception) -> str:
    """One line for a list of reasons; an unforeseen error is told with its type."""
    first_line = (str(error).strip().splitlines() or [""])[0]
    foreseen = isinstance(error, UnavailableError)
    return first_line if foreseen else f"{type(error).__name__}: {first_line}"


def first_that_works(
    name: str,
    ways: Mapping[str, Callable[[], T]],
    asked: str | None,
    reasons: dict[str, str] | None = None,
) -> T:
    """Try the ways in their order, or only the one asked for; `reasons` tells what failed."""
    reasons, cure = {} if reasons is None else reasons, ""
    if asked and asked not in ways:
        raise pytest.UsageError(f"no way {asked!r} to get {name}: choose of {', '.join(ways)}")
    for way in [asked] if asked else ways:
        try:
            return ways[way]()
        except Exception as error:  # whatever a way dies of, the next one may still answer
            reasons[way] = reason(error)
            cure = getattr(error, "cure", "") or cure
    raise NoServerError(name, reasons, cure, asked)


class Finder:
    """Finds one server, once, and keeps it until closed.

    `SPARKONCE_TEST_<NAME>=<way>` forces a way. So does setting `SPARKONCE_TEST_<NAME>_URL`: a
    server that was asked for by its address is never replaced in silence by another one.

    Args:
        name: of the server.
        ways: tried in their order.
        asked_for: taken only where a setting names them.

    Attributes:
        elsewhere: asks the process that keeps the server for all; see `desk` here.
        passed_over: the ways that failed, and why.
    """

    def __init__(
        self, name: str, ways: Mapping[str, Way], asked_for: Mapping[str, Way] | None = None
    ) -> None:
        self.name = name
        self._ways, self._asked_for = ways, asked_for or {}
        self._running = ExitStack()
        self._found: Server | Exception | None = None
        self.passed_over: dict[str, str] = {}
        self.elsewhere: Callable[[], Server | Exception] | None = None

    @property
    def setting(self) -> str:
        return f"SPARKONCE_TEST_{self.name.upper()}"

    @property
    def asked(self) -> str | None:
        given_url = "url" if os.environ.get(f"{self.setting}_URL") else None
        return os.environ.get(self.setting) or given_url

    def find(self) -> Server:
        if self._found is None:
            self._found = self.elsewhere() if self.elsewhere else self._search()
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def describe(self, *, fully: bool = False) -> list[str]:
        """Tell what was found, and fully: why not an earlier way; for the head of the report."""
        try:
            found = str(self.find())
        except NoServerError as absent:
            return [f"{self.name}: none ({absent.listed})"]
        whys = [f"  not by {way}: {why}" for way, why in self.passed_over.items()]
        return [found, *whys] if fully else [found]

    def found(self) -> list[str]:
        """The server, if there is one by now."""
        return [str(self._found)] if isinstance(self._found, Server) else []

    def close(self) -> None:
        self._found = None
        self._running.close()

    def _search(self) -> Server | NoServerError:
        known = {**self._ways, **self._asked_for} if self.asked in self._asked_for else self._ways
        ways = {how: partial(self._open, way) for how, way in known.items()}
        try:
            return first_that_works(self.name, ways, self.asked, self.passed_over)
        except NoServerError as absent:
            return absent

    def _open(self, way: Way) -> Server:
        with ExitStack() as attempt:  # undone at once if the way fails half-way
            server = way(attempt)
            self._running = attempt.pop_all()
        return server


def required() -> bool:
    """Whether a server that is lacking is a failure."""
    return os.environ.get("REQUIRE_SERVERS") == "1"


def or_skip(get: Callable[[], T]) -> T:
    """Skip the test that has no server; fail it where servers are required.

    They are required where REQUIRE_SERVERS is 1, or where the address of one was given.
    """
    try:
        return get()
    except NoServerError as absent:
        if absent.asked == "url" or required():
            pytest.fail(str(absent), pytrace=False)
        pytest.skip(str(absent))
