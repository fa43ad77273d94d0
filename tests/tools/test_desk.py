"""A server that tests in several processes share."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

import pytest
from integration.support.servers.desk import Desk, ask
from integration.support.servers.finder import Finder, NoServerError, UnavailableError
from tests.ways import Fake

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Finder], Finder]]:
    """Another process's finder of the same server, which asks the one that is given."""
    with ExitStack() as desks:

        def elsewhere(finder: Finder) -> Finder:
            desk = Desk({finder.name: finder})
            desks.callback(desk.close)
            other = Finder(finder.name, {})
            other.elsewhere = partial(ask, desk.address, finder.name)
            return other

        yield elsewhere


def test_a_server_that_processes_share_is_started_once(
    fake: Fake, elsewhere: Callable[[Finder], Finder]
) -> None:
    kept = fake.finder(native=fake.works("native"))
    others = [elsewhere(kept), elsewhere(kept)]
    found = [other.find() for other in others]
    for other in others:
        other.close()
    assert found == [kept.find()] * 2
    assert fake.events == ["start native"]
    assert kept.found() == ["fake: 1.2 (native)"]


def test_all_processes_hear_why_there_is_no_server(
    fake: Fake, elsewhere: Callable[[Finder], Finder]
) -> None:
    absent = UnavailableError("not on PATH", "apt-get install fake")
    finder = elsewhere(fake.finder(native=fake.fails("native", absent)))
    said = r"no fake server \(native: not on PATH\); what brings one: apt-get install fake"
    with pytest.raises(NoServerError, match=said):
        finder.find()
