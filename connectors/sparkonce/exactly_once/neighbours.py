"""Other sinks of one target: where a sink begins, its rows may be those that they have read."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from itertools import islice

from sparkonce.errors import DecisionLost, SparkonceError, StoreError, StoreUnreachable, error_text
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.driver import Driver
from sparkonce.exactly_once.ledger import Ledger, kin_of, sink_name
from sparkonce.exactly_once.registers import Registers
from sparkonce.protocol import Advance, Follows, no_progress

log = logging.getLogger("sparkonce")


def overtakers(registers: Registers, ledger: Ledger) -> list[Ledger]:
    """The sinks of the same target that decided after this one, if the order matters."""
    # Appends and increments have the same outcome in either order, so nobody is asked.
    if ledger.decision.manifest is None or ledger.decision.manifest.commutes:
        return []
    names = registers.patience.run(lambda: registers.store.decided_after(ledger.name))
    return [found for found in map(registers.load, names) if found is not None]


def finish_late(
    registers: Registers,
    ledger: Ledger,
    advance: Advance = no_progress,
    *,
    over_newer: bool = False,
) -> Ledger | None:
    """Finish what another process decided, which may live, and finish it as well.

    Gives the ledger as it then is; None if the other has taken the record away, as it does with
    that of a batch without a name. A sink that decides meanwhile writes beside it, as two live
    queries do: no order of the two is the right one. A warning names it. `over_newer` has it take
    effect over what others have decided since.

    Raises:
        BatchOvertaken: others have decided since, and it could undo rows of theirs.
        StoreError: it can't be finished.
    """
    # Looked at before and after: no step spans this decision and those of other sinks.
    before = overtakers(registers, ledger)
    if before and not over_newer:
        raise conflicts.overtaken(ledger, before)
    try:
        done: Ledger | None = registers.finish(ledger, advance)
    except DecisionLost:
        if not ledger.owner.once:
            raise
        done = registers.load(ledger.name)
    if done is not None:
        known = {one.decision.token for one in before}
        beside = [
            one.name for one in overtakers(registers, ledger) if one.decision.token not in known
        ]
        if beside:
            log.warning(error_text(*conflicts.written_beside(ledger, beside)))
    return done


def is_left(registers: Registers, ledger: Ledger) -> bool:
    """Whether nobody finishes a decision, as far as can be seen in some time.

    A stream that lives finishes its epoch in a moment, and there is nothing to refuse then. It may
    have decided the next one since, which is its own to finish, too.
    """
    for tried in range(1, registers.patience.max_retries + 1):
        time.sleep(registers.patience.wait(tried))
        now = registers.load(ledger.name)
        if (
            now is None
            or now.decision.manifest is None
            or now.decision.token != ledger.decision.token
        ):
            return False
    return True


def warn_of_neighbours(registers: Registers, driver: Driver) -> None:
    """Say, where a sink begins, that its rows may be read for the second time."""
    # A sinkId needs no warning: its ledger tells that another query wrote to it before.
    begins = not driver.epoch and driver.name == sink_name(driver.query_id, driver.target)
    if driver.follows is not Follows.NEXT or not begins:
        return
    try:
        wrote = (one.name for one in _neighbours(registers, driver) if one.totals.epochs)
        others = list(islice(wrote, 3))
    except StoreError as error:
        # Only a warning hangs on the list, so the commit goes on.
        log.warning("Sink %r: others of its target can't be listed: %s", driver.name, error)
        return
    if others:
        log.warning(
            error_text(
                f"Sink {driver.name!r} begins at epoch 0 on target {driver.target}, to which"
                f" {', '.join(others)} wrote before",
                why="if its checkpoint is new, in place of another one, rows that are read"
                " again are applied again",
                todo="if so, stop it and go on with the old checkpoint; set option sinkId,"
                " which has that noticed wherever the checkpoint lies",
            )
        )


def finish_others(registers: Registers, driver: Driver) -> None:
    """Finish what others have decided for the target, before a batch outside a stream decides.

    Nobody comes back to the batch of a driver that died, but by `sparkonce recover`; and that may
    come after this one, whose rows it would put older ones over.

    Raises:
        BatchOvertaken: an epoch is older than what others have decided.
        StoreError: an epoch can't be finished.
    """
    for name in _unfinished(registers, driver.name):
        try:
            ledger = registers.load(name)
            if ledger is None or ledger.decision.manifest is None:
                continue
            if overtakers(registers, ledger) and not is_left(registers, ledger):
                continue
            log.warning("Finishing epoch %d of %s, of the same target", ledger.decision.epoch, name)
            finish_late(registers, ledger)
        except StoreUnreachable:
            raise
        except SparkonceError as error:
            raise conflicts.in_the_way(error, name, driver.target) from error


def is_any_unfinished(registers: Registers, name: str) -> bool:
    """Whether another sink of the same target has decided what is not wholly applied.

    Earlier releases left what `Store.unfinished` goes by in ledgers that are finished.
    """
    found = map(registers.load, _unfinished(registers, name))
    return any(ledger is not None and ledger.decision.manifest is not None for ledger in found)


def _unfinished(registers: Registers, name: str) -> list[str]:
    kin = kin_of(name)
    found = registers.patience.run(lambda: registers.store.unfinished(kin))
    return [one for one in found if one != name]


def _neighbours(registers: Registers, driver: Driver) -> Iterator[Ledger]:
    """Other sinks that have written to the same target."""
    kin = kin_of(driver.name)
    for name in registers.patience.run(registers.store.names):
        if name.endswith(kin) and name != driver.name:
            ledger = registers.load(name)
            if ledger is not None and not ledger.owner.forgotten:
                yield ledger
