"""Ledgers in the store, written by compare-and-set.

Where the answer to a write is lost, its outcome is learned by moving the revision, never by
reading alone: the write may still be on its way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sparkonce.errors import StoreLostData, StoreUnreachable
from sparkonce.ledger import Ledger, from_record
from sparkonce.protocol import Advance, Record, Store, ignore
from sparkonce.retry import Patience

log = logging.getLogger("sparkonce")


class Registers:
    """The ledgers of one store.

    Args:
        store: where they lie.
        patience: how long to wait for a store that does not answer.
    """

    def __init__(self, store: Store, patience: Patience) -> None:
        self.store, self.patience = store, patience

    def read(self, name: str) -> Record:
        """The record as last written."""
        return self.patience.run(lambda: self.store.read(name))

    def load(self, name: str) -> Ledger | None:
        """The ledger of a sink, None before its first write."""
        return from_record(self.read(name))

    def swap(self, new: Ledger) -> Ledger:
        """Write the next revision of a ledger; gives what is there now, ours or another's.

        Raises:
            StoreLostData: the ledger vanished.
        """
        return self.learn(new, lambda: self.store.swap(new.name, new.revision - 1, new.to_record()))

    def learn(self, new: Ledger, step: Callable[[], Record]) -> Ledger:
        """Run a step that writes `new`; find out what became of it if its answer is lost."""
        try:
            return _known(new.name, step())
        except StoreUnreachable as error:
            log.warning("%s; finding out what became of the last write", error.what)
            return self.patience.run(lambda: self._fence(new))

    def move(self, name: str, absent: Ledger) -> Ledger:
        """Move the revision, so that no decide which is on its way can land any more.

        Args:
            name: of the ledger.
            absent: written if there is none.
        """
        while True:
            moved = (self.load(name) or absent).moved()
            now = self.swap(moved)
            if now.stamp == moved.stamp:
                return now

    def finish(self, ledger: Ledger, advance: Advance = ignore) -> Ledger:
        """Apply a decided epoch from its manifest alone (roll forward), and mark it done.

        Returns the ledger as it then is: another driver may have gone on from there.

        Raises:
            RowRefused: the server refused a row; a later call goes on from it.
            StoreLostData: a chunk is gone that was not applied.
        """
        token = ledger.token
        while ledger.manifest is not None and ledger.token == token:
            manifest = ledger.manifest
            self.patience.run(lambda manifest=manifest: self.store.apply(manifest, advance))  # type: ignore[misc]
            ledger = self.swap(ledger.finished())
        return ledger

    def _fence(self, new: Ledger) -> Ledger:
        """See that `new` is written or never can be, by having its revision taken."""
        now = self.store.read(new.name)
        if now.revision >= new.revision or (now.revision == 0 and new.revision > 1):
            return _known(new.name, now)
        ledger = from_record(now) or Ledger(new.name, new.query_id, new.target)
        moved = ledger.moved().to_record()
        return _known(new.name, self.store.swap(new.name, now.revision, moved))


def _known(name: str, record: Record) -> Ledger:
    ledger = from_record(record)
    if ledger is None:
        raise StoreLostData(
            f"The ledger of sink {name!r} vanished during a commit",
            why="the store was emptied or lost its last writes",
            todo="restore the store, then restart the query",
        )
    return ledger
