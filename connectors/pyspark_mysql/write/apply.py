"""Makes the rows of chunks take effect, inside a transaction of the caller's."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from pyspark_mysql.server.client import Session
from pyspark_mysql.target.lookup import Target
from pyspark_mysql.write.aside import Aside
from pyspark_mysql.write.chunks import Chunk
from pyspark_mysql.write.inserting import Inserting
from pyspark_mysql.write.loading import Loading
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.refusals import Refusals
from pyspark_mysql.write.ways import way


class Applier:
    """Applies chunks by the plan of one manifest.

    Args:
        session: of the server.
        detail: of the manifest.
        target: as it is in this transaction, and in all in which this is used.
        aside: takes the rows that can't be stored; None if one of them stops the epoch.
    """

    def __init__(
        self, session: Session, detail: TableRows, target: Target, aside: Aside | None
    ) -> None:
        self.session, self.target, self.aside = session, target, aside
        self.refusals = Refusals(detail, aside, ambiguous=target.is_ambiguous(detail))
        self.way = way(session, detail, target, self.refusals)
        # Instants are sent in UTC. What is gathered is copied in the server's own time of day.
        direct = isinstance(self.way, Inserting | Loading)
        self.local = direct and not target.holds_instants(detail.columns)

    def apply(self, chunks: Iterable[Chunk]) -> None:
        """Apply chunks, in one transaction.

        Raises:
            RefusedRow: a row is refused; the caller rolls all of it back.
            TooManyBadRows: so are more than may go aside.
            pymysql.MySQLError: anything else.
        """
        with self.session.local_time() if self.local else nullcontext():
            self._apply(chunks)

    def _apply(self, chunks: Iterable[Chunk]) -> None:
        self.way.begin()
        for chunk in chunks:
            self.refusals.partition = chunk.partition
            for letter in chunk.bad:
                self.refusals.of_task(letter)
            self.way.write(chunk.rows)
        self.refusals.partition = None  # of what is left, a key's rows may come from several
        if self.way.end() and self.aside is not None:
            self.aside.tally.stored = True
