"""Other sinks of one target: the rows of a new sink may be those that others have written."""

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
    # Appends and increments have the same outcome in either order, so no check is needed.
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
    """Finish the decision of another process, which may still run and finish it as well.

    Returns the present ledger; None if the other process removed it, as it does after a batch
    without a name. A sink that decides meanwhile writes concurrently, like two running queries: no
    order of the two is the right one. A warning names that sink. `over_newer` applies the decision
    even over what others have decided since.

    Raises:
        BatchOvertaken: others have decided since, and the decision could undo their rows.
        StoreError: the decision cannot be finished.
    """
    # Checked before and after: no step spans this decision and those of other sinks.
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
    """Whether nobody finishes a decision within the retries of an unreachable store.

    A running stream finishes its epoch soon, so nothing is left to reject. It may then have decided
    the next epoch, which it finishes, too.
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
    """Warn at the start of a sink that another one may have written its rows before."""
    # A sinkId needs no warning: its ledger shows that another query wrote to it before.
    begins = not driver.epoch and driver.name == sink_name(driver.query_id, driver.target)
    if driver.follows is not Follows.NEXT or not begins:
        return
    try:
        wrote = (one.name for one in _neighbours(registers, driver) if one.totals.epochs)
        others = list(islice(wrote, 3))
    except StoreError as error:
        # Only a warning depends on the list, so the commit continues.
        log.warning("Sink %r: can't list other sinks of its target: %s", driver.name, error)
        return
    if others:
        log.warning(
            error_text(
                f"Sink {driver.name!r} begins at epoch 0 on target {driver.target}, to which"
                f" {', '.join(others)} wrote before",
                why="if its checkpoint replaces another one, the query reads earlier rows again and"
                " applies them a second time",
                todo="if so, stop it and continue with the old checkpoint; option sinkId reveals a"
                " replaced checkpoint at any path",
            )
        )


def finish_others(registers: Registers, driver: Driver) -> None:
    """Finish what others have decided for the target, before a batch outside a stream decides.

    Only `sparkonce recover` finishes the batch of a dead driver. After this batch, it would
    overwrite the rows of this batch with older ones.

    Raises:
        BatchOvertaken: an epoch is older than what others have decided.
        StoreError: an epoch cannot be finished.
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
    """Whether another sink of the same target has decided an epoch and not finished it.

    The ledgers show what has finished since `Store.unfinished` listed it.
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
