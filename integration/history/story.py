"""The story that every recording tells, and how it goes on: the same for all stores."""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from integration.counters import ones
from integration.epochs import DirectQuery

from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.retry import Patience
from sparkonce.operate.admin import Admin
from sparkonce.tck.simulation.faults import DIES_WITHIN, Crash, FaultyStore

HOME = Path(__file__).parent
QUERY = "5eed0000000000000000000000000000"
DONE, DECIDED, STAGED = range(10), range(10, 40), range(40, 50)
REPLAYED = range(50, 80)
"""What the replay of the decided epoch computes: other rows, none of which may take effect."""

CHUNK = "5"


@dataclass(frozen=True)
class Recording:
    """What one release has left in one store."""

    release: str
    path: Path

    @property
    def mode(self) -> str:
        """What its rows do."""
        return self.path.stem.partition("-")[2] or "increment"

    def __str__(self) -> str:
        return f"{self.release}-{self.path.stem}"


def recordings(store: str) -> list[Recording]:
    """All of a kind of store, the oldest first."""
    found = [Recording(path.parent.name, path) for path in HOME.glob(f"*/{store}[-.]*")]
    return sorted(found, key=lambda one: ([*map(int, one.release.split("."))], one.mode))


def ledger_format(recording: str) -> int:
    """The number of the format in which a recording holds its ledger."""
    words = re.findall(r"[\w+/=]{40,}", recording)  # Redis: in Base64; MySQL: in hexadecimals
    bodies = [recording.replace("\\", ""), *map(_plain, words)]
    return max(int(n) for body in bodies for n in re.findall(r'"format":(\d+),"name"', body))


def _plain(word: str) -> str:
    for decode in (bytes.fromhex, b64decode):
        with suppress(ValueError):
            return decode(word).decode("latin-1")
    return ""


def tell(query: DirectQuery) -> None:
    """An epoch is done; the next is decided, one chunk of it applied; one more is staged."""
    query.run(0, ones(DONE))
    receipts = query.stage(1, ones(DECIDED[:15]), ones(DECIDED[15:]))
    sink = query.sink
    dying = FaultyStore(sink.store)
    dying.fail_next("apply", DIES_WITHIN)
    driver = query.driver(1)
    with suppress(Crash):
        Committer(dying, sink.plan, sink.policy, Patience(0)).commit(driver, receipts)
    query.stage(2, ones(STAGED))


def goes_on(query: DirectQuery, counts: Callable[[], Counter[int]]) -> None:
    """The query is started again, by the present release: Spark replays epoch 1."""
    query.run(1, ones(REPLAYED))
    assert counts() == Counter([*DONE, *DECIDED])
    query.run(2, ones(STAGED))
    assert counts() == Counter([*DONE, *DECIDED, *STAGED])
    assert query.sink.store.staged(query.name) == []


def is_recovered(query: DirectQuery, counts: Callable[[], Counter[int]]) -> None:
    """An operator recovers it, by the present release, without Spark."""
    admin = Admin(query.sink.store)
    (sink,) = [sink for sink in admin.sinks() if sink.name == query.name]
    assert sink.ledger is not None
    assert sink.ledger.manifest is not None, "the recording must hold a decided epoch"
    admin.recover(sink)
    assert counts() == Counter([*DONE, *DECIDED])
    assert admin.gc(admin.sink(query.name), 0.0) >= 1
    assert query.sink.store.staged(query.name) == []
