"""What operators do to queries: delete, restore, copy and move checkpoints, rename sinks.

The source holds the rows 0, 1, 2, ... A query reads on from where its checkpoint says, a new one
from the beginning. No option overrides anything. Then, whatever the order of events: no row ever
takes effect twice, and each commit that is acknowledged has all rows up to its end behind it.
"""

from __future__ import annotations

import contextlib
import copy
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import pytest
from tests.scenarios import MemoryWorld

from sparkonce.errors import SparkonceError, StoreError, StoreLostData
from sparkonce.protocol import Receipt
from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import ALL, Crash, Fault, FaultyStore

pytestmark = pytest.mark.usefixtures("quiet")


@dataclass
class Checkpoint:
    """A checkpoint directory: which source rows each epoch holds, and which are committed."""

    query_id: str
    committed: int = -1
    offsets: list[tuple[int, int]] = field(default_factory=list)


class Site:
    """A store, two places for a checkpoint, and a seeded operator."""

    def __init__(self, seed: str, *, sink_id: str | None, whole_epochs: bool) -> None:
        self.dice = random.Random(seed)
        self.world = MemoryWorld(whole_epochs=whole_epochs)
        self.sink_id = sink_id
        self._ids = (f"query-{number}" for number in count())
        self.paths: dict[str, Checkpoint] = {"/p": self.new()}
        self.runs: dict[tuple[str, str], Run] = {}
        self.backups: list[Checkpoint] = []
        self.snapshots: list[dict[str, object]] = []
        self.story: list[str] = []

    def new(self) -> Checkpoint:
        return Checkpoint(next(self._ids))

    # -- what happens

    def commit(self) -> None:
        self.commit_at(self.dice.choice(sorted(self.paths)))

    def commit_with_fault(self) -> None:
        fault = {self.dice.randrange(14): self.dice.choice(ALL)}
        self.commit_at(self.dice.choice(sorted(self.paths)), fault)

    def restart(self) -> None:
        self.runs.clear()

    def die_before_the_commit_log(self) -> None:
        checkpoint = self.paths["/p"]
        checkpoint.committed = max(-1, checkpoint.committed - 1)
        self.runs.clear()

    def delete_checkpoint(self) -> None:
        self.paths["/p"] = self.new()

    def back_up(self) -> None:
        self.backups.append(copy.deepcopy(self.paths["/p"]))

    def restore(self) -> None:
        if self.backups:
            self.paths["/p"] = copy.deepcopy(self.dice.choice(self.backups))
            self.runs.clear()

    def copy_checkpoint(self) -> None:
        self.paths["/q"] = copy.deepcopy(self.paths["/p"])

    def move_checkpoint(self) -> None:
        self.paths["/q"] = self.paths["/p"]
        self.paths["/p"] = self.new()

    def back_up_store(self) -> None:
        self.snapshots.append(copy.deepcopy(self.world.snapshot()))

    def restore_store(self) -> None:
        if self.snapshots:
            self.world.restore(self.dice.choice(self.snapshots))

    def rename_sink(self) -> None:
        self.sink_id = self.dice.choice([None, "orders", "sales"])
        self.runs.clear()

    # -- one epoch, and the promises

    def commit_at(self, path: str, faults: dict[int, Fault] | None = None) -> None:
        checkpoint = self.paths[path]
        epoch, offsets = checkpoint.committed + 1, checkpoint.offsets
        if epoch == len(offsets):
            begin = offsets[-1][1] if offsets else 0
            offsets.append((begin, begin + self.dice.randint(1, 3)))
        query = Query(self.world, checkpoint.query_id, self.sink_id, path)
        run = self.runs.setdefault((path, checkpoint.query_id), query.start())
        run.query.through = store = FaultyStore(self.world.memory, faults or {})
        if self._attempt(run, epoch, offsets):
            checkpoint.committed = epoch
            rows = Counter(self.world.rows)
            wrong = [row for row in range(offsets[epoch][1]) if rows[str(row)] != 1]
            assert not wrong, f"rows {wrong} are not there once, after {self.story}"
        else:
            self.runs.pop((path, checkpoint.query_id))
        store.deliver_all()
        twice = [row for row, number in Counter(self.world.rows).items() if number > 1]
        assert not twice, f"rows {twice} took effect twice, after {self.story}"

    def _attempt(self, run: Run, epoch: int, offsets: list[tuple[int, int]]) -> bool:
        receipts: list[Receipt] = []
        before = str(offsets[epoch - 1]) if epoch else None
        try:
            receipts = run.stage(epoch, [str(row) for row in range(*offsets[epoch])])
            run.commit(epoch, receipts, str(offsets[epoch]), before)
        except Crash:
            return False
        except StoreLostData:
            raise
        except SparkonceError as error:
            self.story.append(type(error).__name__)
            with contextlib.suppress(Crash, StoreError):
                run.abort(epoch, receipts)
            return False
        return True


DRIVERS = [Site.commit] * 4 + [Site.commit_with_fault] * 2 + [Site.restart]
ANYWHERE = [Site.die_before_the_commit_log, Site.delete_checkpoint, Site.back_up, Site.restore]
STORE = [Site.back_up_store, Site.restore_store]
AFIELD = [Site.copy_checkpoint, Site.move_checkpoint]
Event = Callable[[Site], None]


@pytest.mark.parametrize("whole_epochs", [True, False], ids=["whole epochs", "chunk by chunk"])
@pytest.mark.parametrize(
    ("sink_id", "events"),
    [
        (None, [*DRIVERS, *ANYWHERE]),
        (None, [*DRIVERS, *ANYWHERE, *STORE, Site.rename_sink]),
        ("orders", [*DRIVERS, *ANYWHERE, *AFIELD]),
        ("orders", [*DRIVERS, *ANYWHERE, *STORE, *AFIELD]),
    ],
    ids=["checkpoints", "names and store", "copies", "copies and store"],
)
def test_no_order_of_events_loses_or_doubles_a_row(
    sink_id: str | None, events: list[Event], whole_epochs: bool
) -> None:
    acknowledged = 0
    for seed in range(60):
        site = Site(f"{sink_id}{len(events)}{seed}", sink_id=sink_id, whole_epochs=whole_epochs)
        for _ in range(20):
            event = site.dice.choice(events)
            site.story.append(event.__name__)
            event(site)
        acknowledged += sum(1 for row in site.world.rows)
    assert acknowledged > 180, "hardly anything was written"


def test_a_checkpoint_whose_last_epoch_is_not_that_of_the_sink_is_refused(
    world: MemoryWorld,
) -> None:
    site = Site("", sink_id="orders", whole_epochs=world.memory.whole_epochs)
    site.commit_at("/p")
    site.back_up_store()
    site.copy_checkpoint()
    site.paths["/p"].offsets.append((site.paths["/p"].offsets[-1][1], 9))
    site.commit_at("/p")
    site.restore_store()
    site.commit_at("/q")
    site.restart()
    site.commit_at("/p")
