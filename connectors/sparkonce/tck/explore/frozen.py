"""Tokens and clocks of the core that are the same in every run of a schedule."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from unittest import mock

from sparkonce import store
from sparkonce.exactly_once import commit, ledger
from sparkonce.operate import admin
from sparkonce.tck.simulation import memory


class _Token:
    def __init__(self, number: int) -> None:
        self.hex = f"t{number}"


class Tokens:
    """Replaces the module `uuid`."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def restart(self) -> None:
        """Start again with the first token."""
        self._numbers = count(1)

    def uuid4(self) -> _Token:
        """The next token."""
        return _Token(next(self._numbers))


class _Clock:
    """Replaces the module `time`: the clock never advances, and no caller sleeps."""

    def time(self) -> float:
        """Return a constant time."""
        return 0.0

    monotonic = time

    def sleep(self, seconds: float) -> None:
        """Return without a wait."""


@contextmanager
def frozen() -> Iterator[Tokens]:
    """In this block the core draws the tokens t1, t2, ..., and neither waits nor logs."""
    log = logging.getLogger("sparkonce")
    level, clock, tokens = log.level, _Clock(), Tokens()
    log.setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(ledger, "uuid", tokens))
        for module in (admin, commit, ledger, memory, store):
            stack.enter_context(mock.patch.object(module, "time", clock))
        try:
            yield tokens
        finally:
            log.setLevel(level)
