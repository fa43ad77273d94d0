"""How the rows of each write mode are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pyspark_mysql.write.copying import Copying
from pyspark_mysql.write.gathered import Gathered
from pyspark_mysql.write.inserting import Inserting
from pyspark_mysql.write.loading import Loading, can_load
from pyspark_mysql.write.statements import Frame, frame
from pyspark_mysql.write.winners import Deleting, Winners

if TYPE_CHECKING:
    from pyspark_mysql.server.client import Session
    from pyspark_mysql.target.lookup import Target
    from pyspark_mysql.write.chunks import Rows
    from pyspark_mysql.write.plan import TableRows
    from pyspark_mysql.write.refusals import Refusals
    from sparkonce.change import Names


TRIGGERS = """
SELECT 1 FROM information_schema.triggers
WHERE event_object_schema = %s AND event_object_table = %s LIMIT 1
"""


class Way(Protocol):
    """A way to write rows, inside a transaction."""

    def begin(self) -> None:
        """What must be done in each transaction before the first rows."""

    def write(self, rows: Rows) -> None:
        """Take these rows.

        Raises:
            RefusedRow: one is refused; the caller rolls all of it back.
            pymysql.MySQLError: anything else.
        """

    def end(self) -> bool:
        """Let what was taken take effect; whether the server took any row. Raises as `write`."""


def way(
    session: Session,
    detail: TableRows,
    target: Target,
    refusals: Refusals,
) -> Way:
    """The way of a plan.

    Args:
        session: of the server.
        detail: of the plan.
        target: as it is in this transaction.
        refusals: of the epoch.
    """
    if not detail.makes_rows:
        gathered = Gathered(session, detail, refusals)
        return Deleting(gathered, indexed=target.is_indexed(detail.key))
    if detail.folded:
        return Winners(Gathered(session, detail, refusals), target)
    if target.holds_instants(detail.columns) and _computes_time(session, detail, target):
        return Copying(Gathered(session, detail, refusals), target)

    def form(left: Names = ()) -> Frame:
        mariadb, ambiguous = session.live.mariadb, refusals.ambiguous
        return frame(detail, mariadb=mariadb, ambiguous=ambiguous, left=left)

    inserting = Inserting(session, form(), refusals, form if detail.nulls == "keep" else None)
    if can_load(session, detail, target.columns):
        return Loading(inserting, detail, target.columns)
    return inserting


def _computes_time(session: Session, detail: TableRows, target: Target) -> bool:
    """Whether a default, or a trigger that the user may see, may ask for the time of day."""
    return target.computes_time(detail.columns) or bool(session.run(TRIGGERS, *detail.table))
