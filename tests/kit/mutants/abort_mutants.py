"""A core whose abort has a fault, or whose tasks leave a trace where they fail."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tests.kit.mutants.commit_mutants import COMMITTER, attempts_of
from tests.kit.mutants.mutant import CHUNKS, ROWS, WHOLE, Mutant, nothing
from tests.ledgers import by_part, with_fields

from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.protocol import Receipt, Task
from sparkonce.spark.writer import StreamWriter
from sparkonce.store import Store

ABORT, LEAVE = Committer.abort, Committer._leave
DECIDED, WRITER_ABORT = Ledger.decided, StreamWriter.abort


def _undoes(self: Committer, driver: Driver, receipts: Sequence[Receipt]) -> None:
    ABORT(self, driver, receipts)
    ledger = self.registers.load(driver.name)
    if ledger is not None and ledger.decision.epoch == driver.epoch:
        self.registers.swap(
            ledger.moved(**by_part(ledger, epoch=driver.epoch - 1, token="", manifest=None))
        )


def _drops_all(self: Committer, driver: Driver, receipts: Sequence[Receipt]) -> None:
    self.store.discard(driver.name, attempts_of(receipts))


def _dooms_nothing(self: Committer, driver: Driver, receipts: Sequence[Receipt]) -> None:
    ledger = self.registers.load(driver.name)
    held = ledger.decision.held if ledger is not None else set()
    self.store.discard(driver.name, sorted({*attempts_of(receipts)} - held))


def _dooms_what_is_held(self: Ledger, attempts: Mapping[str, str]) -> Ledger:
    return self.moved(**by_part(self, doomed={**self.decision.doomed, **attempts}))


def _decides_away_all_doom(self: Ledger, *decision: Any, **more: Any) -> Ledger:
    return DECIDED(with_fields(self, doomed={}), *decision, **more)


def _leaves_anyway(self: Committer, driver: Driver, _: Collection[str]) -> None:
    ledger = self.registers.load(driver.name)
    LEAVE(self, driver, ledger.decision.doomed if ledger is not None else ())


@contextlib.contextmanager
def _keeps_what_failed(*_: Any) -> Iterator[None]:
    yield


@contextlib.contextmanager
def _hides_the_error(store: Store, task: Task) -> Iterator[None]:
    try:
        yield
    except Exception:
        store.discard(task.sink, [task.attempt])
        raise


def _gives_up_on_none(self: StreamWriter, messages: Sequence[Any], epoch: int) -> None:
    if None not in messages:
        WRITER_ABORT(self, messages, epoch)


ABORT_MUTANTS = [
    Mutant(
        "messages with None mishandled in abort",
        "an abort with a None among its messages drops nothing",
        "C11",
        patches={"sparkonce.spark.writer.StreamWriter.abort": _gives_up_on_none},
    ),
    Mutant(
        "abort that undoes a published epoch",
        "an abort puts the ledger back to the epoch before, though its rows took effect",
        "A01",
        (WHOLE,),
        patches={f"{COMMITTER}.abort": _undoes},
    ),
    Mutant(
        "abort that drops nothing",
        "what the tasks of an aborted epoch staged stays",
        "A01",
        patches={f"{COMMITTER}.abort": nothing},
    ),
    Mutant(
        "abort that drops a decided epoch",
        "an abort drops chunks that a decision holds",
        "A01",
        (CHUNKS, ROWS),
        patches={f"{COMMITTER}.abort": _drops_all},
    ),
    Mutant(
        "abort without doom",
        "an abort looks whether its chunks are decided, and drops them while they are",
        "A02",
        (CHUNKS, ROWS),
        patches={f"{COMMITTER}.abort": _dooms_nothing},
    ),
    Mutant(
        "doom of what is decided",
        "an abort dooms, and drops, attempts that a decision holds",
        "A01",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.ledger.Ledger.dooming": _dooms_what_is_held},
    ),
    Mutant(
        "doom ends with any decision",
        "what one query's abort has doomed can be decided once another query has decided",
        "A02",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.ledger.Ledger.decided": _decides_away_all_doom},
    ),
    Mutant(
        "doom ignored",
        "a commit that is tried again decides what an abort is about to drop",
        "A02",
        (CHUNKS, ROWS),
        patches={"sparkonce.exactly_once.commit.require_not_doomed": nothing},
    ),
    Mutant(
        "ledger left that another abort needs",
        "an abort takes away the ledger in which another one has doomed what it is about to drop",
        "A02",
        patches={f"{COMMITTER}._leave": _leaves_anyway},
    ),
    Mutant(
        "failed tasks never cleaned",
        "what a task staged before it raised stays",
        "C18",
        patches={"sparkonce.exactly_once.staging._dropped_if_failed": _keeps_what_failed},
    ),
    Mutant(
        "clean-up hides the error of a task",
        "a drop that fails is raised in place of what made the task fail",
        "C18",
        patches={"sparkonce.exactly_once.staging._dropped_if_failed": _hides_the_error},
    ),
]
