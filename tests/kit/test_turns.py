"""Actors that take turns, and clients of their own for them and for who comes after a crash."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.scenarios import MemoryWorld

from sparkonce.store import Store
from sparkonce.tck.simulation import turns
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.duel import Duel
from sparkonce.tck.simulation.faults import DIES_AFTER, DIES_WITHIN, REPLY_LOST, Crash, FaultyStore
from sparkonce.tck.simulation.restarts import SimulatedSpark
from sparkonce.tck.simulation.turns import CHUNK, Turns

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Lets go who hangs."""
    monkeypatch.setattr(turns, "PATIENCE", 0.1)
    event = threading.Event()
    yield event
    event.set()


class Clients:
    """A world that counts its clients."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world, self.made = world, 0

    def connect(self) -> Store:
        self.made += 1
        return self.world.memory.through(self.world.memory.link)


def test_an_actor_that_hangs_in_a_call_is_a_failure(release: threading.Event) -> None:
    world = MemoryWorld()
    slow = world.memory.through(lambda _name, request: (release.wait(), request())[1])
    stores = iter([world.memory, slow])
    acting = Turns(lambda: next(stores), [0, 1, 0])
    with pytest.raises(AssertionError, match=r"^actor 1 hangs in names$"):
        acting.run(lambda store: [store.read("a"), store.read("b")], lambda store: store.names())


def test_an_actor_that_never_calls_is_a_failure(release: threading.Event) -> None:
    acting = Turns(MemoryWorld().connect, [])
    with pytest.raises(AssertionError, match="actor 0 hangs in the work before its first"):
        acting.run(lambda _: release.wait())


def test_an_actor_is_as_slow_as_it_likes_while_it_takes_turns(release: threading.Event) -> None:
    acting = Turns(MemoryWorld().connect, [])
    acting.run(lambda store: [(release.wait(0.04), store.names()) for _ in range(5)])
    assert acting.calls == [(0, "names")] * 5


def test_each_actor_has_a_client_of_its_own() -> None:
    clients = Clients(MemoryWorld())
    Turns(clients.connect, []).run(*[lambda store: store.names()] * 3)
    assert clients.made == 3


def test_another_has_its_turn_between_two_chunks() -> None:
    def fight(order: list[int]) -> tuple[list[str], int]:
        """The calls of a commit, and how many rows were there when another looked."""
        duel, seen = Duel(MemoryWorld(whole_epochs=False)), []
        duel.driver(SimulatedSpark(Query(duel.world)), 0)
        duel.actors.append(lambda store: (store.names(), seen.append(len(duel.world.rows))))
        calls = [name for number, name in duel.fight(order).calls if number == 0]
        return calls, seen[0]

    calls, rows = fight([0] * 99)
    first, chunks = calls.index("apply") + 1, calls.count(CHUNK) + 1
    seen = [fight([0] * (first + done) + [1])[1] for done in range(chunks)]
    assert chunks > 2
    assert len(set(seen)) == chunks
    assert 0 < seen[0] < seen[-1] == rows


@pytest.mark.parametrize("fault", [DIES_AFTER, DIES_WITHIN])
def test_who_comes_after_a_crash_has_a_client_of_its_own(fault: object) -> None:
    world = MemoryWorld(whole_epochs=False)
    clients = Clients(world)
    store = FaultyStore(clients.connect(), connect=clients.connect)
    query = Query(world, through=store)  # type: ignore[arg-type]
    run = query.start()
    receipts = run.stage(0, ["a", "b", "c"])
    store.fail_next("apply", fault)  # type: ignore[arg-type]
    with pytest.raises(Crash):
        run.commit(0, receipts)
    assert clients.made == 2
    store.fail_next("swap", REPLY_LOST)
    query.start().write(1, ["d"])
    assert clients.made == 2
    assert world.took_effect() == Counter("abcd")
