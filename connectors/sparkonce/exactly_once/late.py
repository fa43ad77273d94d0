"""A decision that somebody finishes late: it must not undo in silence what others decided since.

Who applies what it has just decided need not ask, so the hot path costs nothing. Who finishes what
it finds decided asks: `sparkonce recover`, a batch that another one stands in the way of, and a
batch that is run again.
"""

from __future__ import annotations

import logging
import time

from sparkonce.errors import told
from sparkonce.exactly_once import conflicts
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.registers import Registers
from sparkonce.protocol import Advance, ignore

log = logging.getLogger("sparkonce")


def overtakers(registers: Registers, ledger: Ledger) -> list[Ledger]:
    """The sinks of the same target that decided after this one, if the order matters."""
    if ledger.manifest is None or ledger.manifest.commutes:
        return []
    names = registers.patience.run(lambda: registers.store.decided_after(ledger.name))
    return [found for found in map(registers.load, names) if found is not None]


def require_latest(registers: Registers, ledger: Ledger) -> None:
    """Refuse to finish a decision after which others have decided.

    Raises:
        BatchOvertaken: they have, and it could undo rows of theirs.
    """
    if found := overtakers(registers, ledger):
        raise conflicts.overtaken(ledger, found)


def finish_late(
    registers: Registers, ledger: Ledger, advance: Advance = ignore, *, over_newer: bool = False
) -> Ledger | None:
    """Finish what another process decided; as `Registers.finish_left`.

    A sink that decides while this applies its rows writes beside it, as two live queries do: no
    order of the two is the right one. A warning names it.

    Args:
        registers: of the store.
        ledger: with the decision.
        advance: told of rows as they are applied.
        over_newer: whether it takes effect over what others have decided since.

    Raises:
        BatchOvertaken: others have decided since, and it could undo rows of theirs.
        StoreError: it can't be finished.
    """
    before = overtakers(registers, ledger)
    if before and not over_newer:
        raise conflicts.overtaken(ledger, before)
    done = registers.finish_left(ledger, advance)
    if done is not None:
        known = {one.token for one in before}
        beside = [one.name for one in overtakers(registers, ledger) if one.token not in known]
        if beside:
            log.warning(told(*conflicts.written_beside(ledger, beside)))
    return done


def is_left(registers: Registers, ledger: Ledger) -> bool:
    """Whether nobody finishes a decision, as far as can be seen in some time.

    A stream that lives finishes its epoch in a moment, and there is nothing to refuse then. It may
    have decided the next one since, which is its own to finish, too.
    """
    for tried in range(1, registers.patience.max_retries + 1):
        time.sleep(registers.patience.wait(tried))
        now = registers.load(ledger.name)
        if now is None or now.manifest is None or now.token != ledger.token:
            return False
    return True
