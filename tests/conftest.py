"""Fixtures of the tests that need no server."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.answering import Say, saying
from tests.scenarios import MemoryWorld

from sparkonce.operate.admin import Admin
from sparkonce.tck.simulation.actors import Query


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """No log lines, for tests that fail ten thousand times."""
    caplog.set_level(logging.CRITICAL, logger="sparkonce")


@pytest.fixture(params=[True, False], ids=["whole epochs", "chunk by chunk"])
def world(request: pytest.FixtureRequest) -> MemoryWorld:
    """A store in memory that publishes whole epochs, and one that applies chunk by chunk."""
    return MemoryWorld(whole_epochs=request.param)


@pytest.fixture
def query(world: MemoryWorld) -> Query:
    """A query that increments, so that a repeated row would be seen."""
    return Query(world)


@pytest.fixture
def admin(world: MemoryWorld) -> Admin:
    """An operator beside that query."""
    return Admin(world.memory)


@pytest.fixture
def say() -> Iterator[Say]:
    """Servers that give one answer each."""
    with saying() as say:
        yield say
