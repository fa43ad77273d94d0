"""What holds for each test of this project: its process has kept nothing of the tests before."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings, strategies

from sparkonce import connections, sink
from sparkonce.spark import checkpoint, session, storage

if TYPE_CHECKING:
    from collections.abc import Iterator

settings.register_profile("any machine", deadline=None, database=None)  # which may be busy
settings.load_profile("any machine")

pytest_plugins = ["integration.support.together", "integration.support.slices"]

KEPT = sink._open, checkpoint._warn, session.warn_of_mixing, storage._reader
"""What the core remembers for the life of a process, connections aside."""


@pytest.fixture(autouse=True)
def _a_process_that_has_kept_nothing() -> Iterator[None]:
    """No connection, sink or warning of another test; and no socket is left to the next one.

    Python tells of a socket that nobody has closed when it collects it. So it collects here, and
    pytest fails the test that has left the socket. What lives on is not looked at again, or each
    test would pay for all before it.
    """
    _forget()
    yield
    _forget()
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)  # where pytest keeps the frames of a test that failed
    gc.collect()
    gc.freeze()


def pytest_fixture_post_finalizer(fixturedef: pytest.FixtureDef[object]) -> None:
    """Look once at all, after a fixture that many tests shared: its socket isn't new."""
    if fixturedef.scope != "function" and fixturedef.cached_result:
        gc.unfreeze()
        gc.collect()
        gc.freeze()


def _forget() -> None:
    connections.forget()
    for cache in KEPT:
        cache.cache_clear()


def pytest_collection_finish() -> None:
    """Make each collection cheap: it looks only at what came since.

    Hypothesis makes its random source in the first test, and warns if no object refers to it.
    Under `CI`, Python 3.14 sees no frozen object there. So the source is made here.
    """
    given(strategies.none())(lambda _: None)()
    gc.collect()
    gc.freeze()
