"""Rule C17: a row that the server refuses."""

from __future__ import annotations

from sparkonce.errors import BadRow, RowRefused, StoreRefused
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.oracles import WITNESS, require_clean, require_rows
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.commits import rows
from sparkonce.tck.suites.suite import Contract

HOSTILE = "first\nERROR all is lost\x1b[31m"
"""What a key may hold: with it raw in a message, a log has a line that nobody wrote, in red."""

REFUSED = (BadRow, RowRefused, StoreRefused)


class RefusalRules(Contract):
    """Checks with a row that only the server can refuse."""

    def test_c17_a_refused_row_costs_and_doubles_nothing(self, new_subject: NewSubject) -> None:
        """It is met by the commit, by a restart, and is then accepted."""
        world = new_subject()
        world.need("refusal")
        query = Query(world)
        run = query.start()
        run.write(0, rows(0, "x"))
        # In each chunk a row stands before the one that is refused.
        first, second = rows(1, HOSTILE)[::-1], rows(1, "second")
        accept = world.refuse(f"a/1#{HOSTILE}.1")
        receipts = run.stage(1, rows(1, "before"), first, rows(1, "after"))
        require_one_line(raises(REFUSED, run.commit, 1, receipts))
        run.abort(1, receipts)
        decided = query.ledger.decision.epoch == 1
        if decided:
            raises(REFUSED, query.start().write, 1, second)
        accept()
        for epoch in (1, 2):
            query.start().write(epoch, rows(epoch, "second"))
        version = [*rows(1, "before"), *first, *rows(1, "after")] if decided else second
        require_rows(world, {*rows(0, "x"), *version, *rows(2, "second")} - {WITNESS})
        require_clean(world, query)


def require_one_line(error: BaseException) -> None:
    """See that a message shows what rows hold, and is not shaped by it.

    Raises:
        AssertionError: it has a character that is no letter on a terminal.
    """
    if not str(error).isprintable():
        raise AssertionError(f"the error has a control character: {str(error)!r}")
