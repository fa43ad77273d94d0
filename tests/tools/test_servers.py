"""How a test server is chosen, shared, told and required. No server runs here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest
from examples.__main__ import _binary_and_log
from integration.support.servers.finder import (
    Finder,
    NoServerError,
    Registry,
    Server,
    UnavailableError,
    ask,
    first_that_works,
    or_skip,
)
from integration.support.servers.mysql import SERVERS
from integration.support.servers.process import Binary


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith(("SPARKONCE_TEST_", "REQUIRE_SERVERS")):
            monkeypatch.delenv(name)


class Fake:
    """A finder of fake servers, and a record of what was started and stopped."""

    def __init__(self, *programs: str, **failing: Exception) -> None:
        self.events: list[str] = []
        self.failing = failing
        found = {name: partial(SimpleNamespace, how=name) for name in (*failing, *programs)}
        self.finder = Finder("fake", found, self.run, lambda _: "1.2", on_request=("other",))

    @contextmanager
    def run(self, program: SimpleNamespace) -> Iterator[SimpleNamespace]:
        self.events.append(f"start {program.how}")
        try:
            if error := self.failing.get(program.how):
                raise error
            yield SimpleNamespace(url=f"fake://{program.how}")
        finally:
            self.events.append(f"stop {program.how}")


def test_the_first_program_that_answers_is_used_and_no_later_one_is_tried() -> None:
    fake = Fake("native", "tree")
    assert fake.finder.find() is fake.finder.find()
    fake.finder.close()
    assert fake.events == ["start native", "stop native"]


def test_a_program_that_fails_half_way_is_undone_before_the_next_is_tried() -> None:
    fake = Fake("tree", native=OSError("exec format error"))
    assert str(fake.finder.find()) == "fake: 1.2 (tree)"
    assert fake.events == ["start native", "stop native", "start tree"]


def test_the_search_is_not_repeated_for_each_test_when_it_found_nothing() -> None:
    fake = Fake(native=UnavailableError("not on PATH"))
    for _ in range(2):
        with pytest.raises(NoServerError, match="native: not on PATH"):
            fake.finder.find()
    assert fake.events.count("start native") == 1


@pytest.mark.parametrize("asked", ["tree", "other"])
def test_a_program_asked_for_is_the_only_one_tried(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_FAKE", asked)
    fake = Fake("native", "tree", "other")
    assert fake.finder.find().how == asked
    assert fake.finder.program().how == asked
    assert fake.events == [f"start {asked}"]


def test_some_programs_run_on_request_alone() -> None:
    with pytest.raises(NoServerError):
        Fake("other").finder.find()


def test_a_url_that_was_given_is_never_replaced_by_another_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_FAKE_URL", "fake://down")
    fake = Fake("native")
    finder = Finder("fake", fake.finder.programs, fake.run, lambda _: str(1 / 0))
    with pytest.raises(NoServerError, match="url: ZeroDivisionError"):
        finder.find()
    assert fake.events == []
    assert fake.finder.find() == Server("fake", "1.2", "at SPARKONCE_TEST_FAKE_URL", "fake://down")
    assert fake.finder.program().how == "native"


def test_an_unknown_program_is_told_with_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARKONCE_TEST_FAKE", "natvie")
    with pytest.raises(pytest.UsageError, match="'natvie' to get fake: choose of url, native"):
        Fake("native").finder.find()


def nothing(asked: str | None = None) -> Server:
    def way() -> Server:
        raise UnavailableError("not on PATH", "apt-get install fake")

    return first_that_works("fake", {"url": way, "native": way}, asked)


def test_without_a_server_a_test_is_skipped_and_told_why_each_way_failed() -> None:
    with pytest.raises(pytest.skip.Exception) as skipped:
        or_skip(nothing)
    assert str(skipped.value) == (
        "no fake server (url: not on PATH; native: not on PATH);"
        " what brings one: apt-get install fake"
    )


def test_without_a_server_a_test_fails_where_servers_are_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(pytest.fail.Exception, match="url: not on PATH"):
        or_skip(lambda: nothing("url"))
    monkeypatch.setenv("REQUIRE_SERVERS", "1")
    with pytest.raises(pytest.fail.Exception, match="native: not on PATH"):
        or_skip(nothing)


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Fake], Finder[SimpleNamespace]]]:
    """Another process's finder of the same server, which asks the process of the first one."""
    registries = []

    def elsewhere(fake: Fake) -> Finder[SimpleNamespace]:
        registries.append(Registry({"fake": fake.finder}))
        other = Fake().finder
        other.elsewhere = partial(ask, registries[-1].address, "fake")
        return other

    yield elsewhere
    for registry in registries:
        registry.close()


def test_a_server_that_processes_share_is_started_once(
    elsewhere: Callable[[Fake], Finder[SimpleNamespace]],
) -> None:
    kept = Fake("native")
    others = [elsewhere(kept), elsewhere(kept)]
    found = [other.find() for other in others]
    for other in others:
        other.close()
    assert found == [kept.finder.find()] * 2
    assert kept.events == ["start native"]


def test_all_processes_hear_why_there_is_no_server(
    elsewhere: Callable[[Fake], Finder[SimpleNamespace]],
) -> None:
    absent = UnavailableError("not on PATH", "apt-get install fake")
    with pytest.raises(NoServerError, match="what brings one: apt-get install fake"):
        elsewhere(Fake(native=absent)).find()


def test_examples_take_mariadb_where_there_is_no_mysql(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> Binary:
        raise UnavailableError("no mysqld on PATH")

    native = partial(Binary, "native mariadbd", ("/mariadbd",))
    monkeypatch.setattr(SERVERS["mysql"], "programs", {"native": absent})
    monkeypatch.setattr(SERVERS["mariadb"], "programs", {"native": native})
    assert _binary_and_log()[0].how == "native mariadbd"
