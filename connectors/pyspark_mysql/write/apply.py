"""Makes the rows of chunks take effect, inside a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial

from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.target.lookup import Target
from pyspark_mysql.write.chunks import DecodedChunk
from pyspark_mysql.write.gathering import CopyWriter, DeleteWriter, WinnerWriter
from pyspark_mysql.write.inserting import InsertWriter, LoadWriter, RowWriter
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import PutAside, Refusals
from pyspark_mysql.write.statements import frame

TRIGGERS = """
SELECT 1 FROM information_schema.triggers
WHERE event_object_schema = %s AND event_object_table = %s LIMIT 1
"""


class Applier:
    """Applies chunks to a target that stays as it is while this is used.

    Rows that can't be stored are `put_aside`; where that is None, one of them stops the epoch.
    """

    def __init__(
        self,
        session: MySqlSession,
        detail: TableRows,
        target: Target,
        put_aside: PutAside | None = None,
    ) -> None:
        self.session = session
        # A row could be taken for a stored one by another unique key than its own.
        ambiguous = detail.updates and bool(target.others(detail.key, detail.columns))
        self.refusals = Refusals(detail, put_aside, ambiguous=ambiguous)
        self.writer = _writer(session, detail, target, self.refusals)
        # Instants are sent in UTC. What is gathered is copied in the server's own time of day.
        self.uses_local_time = self.writer.is_direct and not target.holds_instants(detail.columns)

    def apply(self, chunks: Iterable[DecodedChunk]) -> bool:
        """Apply chunks, in one transaction; whether the server took any row.

        Raises:
            RefusedRow: a row is refused; the caller rolls all of it back.
            TooManyBadRows: so are more than may go aside.
            pymysql.MySQLError: anything else.
        """
        with self.session.local_time() if self.uses_local_time else nullcontext():
            self.writer.begin()
            for chunk in chunks:
                self.refusals.partition = chunk.partition
                for letter in chunk.bad:
                    self.refusals.of_task(letter)
                self.writer.write(chunk.rows)
            self.refusals.partition = None  # of what is left, a key's rows may come from several
            return self.writer.end()


def _writer(
    session: MySqlSession, detail: TableRows, target: Target, refusals: Refusals
) -> RowWriter:
    """How the rows of a plan are written to the target as it is."""
    if not detail.makes_rows:
        return DeleteWriter(session, detail, target, refusals)
    if detail.folded:
        return WinnerWriter(session, detail, target, refusals)
    # A default, or a trigger that the user may see, may ask for the time of day.
    if target.holds_instants(detail.columns) and (
        target.computes_time(detail.columns) or session.run(TRIGGERS, *detail.table)
    ):
        return CopyWriter(session, detail, target, refusals)

    mariadb, ambiguous = session.live.mariadb, refusals.ambiguous
    form = partial(frame, detail, mariadb=mariadb, ambiguous=ambiguous)
    given = session, form(), refusals, form if detail.keeps_nulls else None
    if LoadWriter.fits(session, detail, target.columns):
        return LoadWriter(*given, target.columns)
    return InsertWriter(*given)
