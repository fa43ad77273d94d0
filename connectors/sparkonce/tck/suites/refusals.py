"""Rule C17: a row that the server rejects."""

from __future__ import annotations

from sparkonce.errors import BadRow, RowRefused, StoreRefused
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import raises
from sparkonce.tck.simulation.oracles import WITNESS, require_clean, require_rows
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.commits import rows
from sparkonce.tck.suites.suite import Contract

HOSTILE = "first\nERROR all is lost\x1b[31m"
"""Possible content of a key: raw in a message, it forges a red line in the log."""

REFUSED = (BadRow, RowRefused, StoreRefused)


class RefusalRules(Contract):
    """Checks with a row that only the server can reject."""

    def test_c17_a_rejected_row_loses_and_duplicates_nothing(self, new_subject: NewSubject) -> None:
        """The commit and a restart fail at the row; then the server accepts it."""
        world = new_subject()
        world.need("refusal")
        query = Query(world)
        run = query.start()
        run.write(0, rows(0, "x"))
        # Each chunk has a row before the rejected one.
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
    """Check that a message shows the content of rows, but no raw control character of them.

    Raises:
        AssertionError: it has a character that no terminal prints.
    """
    if not str(error).isprintable():
        raise AssertionError(f"the error has a control character: {str(error)!r}")
