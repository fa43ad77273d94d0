"""Other sinks of one target: where a sink begins, its rows may be those that they have read."""

from __future__ import annotations

import logging

from sparkonce.errors import StoreError, told
from sparkonce.guards import Driver
from sparkonce.ledger import sink_name
from sparkonce.registers import Registers

log = logging.getLogger("sparkonce")


def warn_of_neighbours(registers: Registers, driver: Driver) -> None:
    """Say, where a sink begins, that its rows may be read for the second time."""
    if driver.epoch or driver.name != sink_name(driver.query_id, driver.target):
        return
    try:
        others = _neighbours(registers, driver)
    except StoreError as error:
        log.warning("Sink %r: others of its target can't be listed: %s", driver.name, error)
        return
    if others:
        log.warning(
            told(
                f"Sink {driver.name!r} begins at epoch 0 on target {driver.target}, to which"
                f" {', '.join(others)} wrote before",
                why="if its checkpoint is new, in place of another one, rows that are read"
                " again are applied again",
                todo="if so, stop it and go on with the old checkpoint; set option sinkId,"
                " which has that noticed wherever the checkpoint lies",
            )
        )


def _neighbours(registers: Registers, driver: Driver) -> list[str]:
    """Up to three other sinks that have written to the same target."""
    kin = driver.name.removeprefix(driver.query_id)
    found: list[str] = []
    for name in registers.patience.run(registers.store.names):
        if name.endswith(kin) and name != driver.name and len(found) < 3:
            ledger = registers.load(name)
            if ledger is not None and ledger.epochs and not ledger.forgotten:
                found.append(name)
    return found
