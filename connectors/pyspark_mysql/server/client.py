"""Sessions of MySQL and MariaDB, as the connector needs them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pymysql

from pyspark_mysql.server.connection import Access, Live, Pool
from pyspark_mysql.server.failures import number, too_slow
from pyspark_mysql.server.settings import LOCAL, UTC
from sparkonce.connections import shared


class Limit(NamedTuple):
    """The setting that limits the time of a statement.

    Attributes:
        units: of a second.
        digits: behind the point, that it takes.
        error: the number of the error of a statement that took longer.
    """

    variable: str
    units: int
    digits: int
    error: int


LIMIT = {
    True: Limit("max_statement_time", 1, 3, 1969),
    False: Limit("max_execution_time", 1000, 0, 3024),
}
"""By whether it is MariaDB."""

GONE = 1094
"""The number of an error: there is no such connection to be ended."""


class Session:
    """Sends statements, each over a connection that nobody else of the process uses then.

    Each statement is sent once: whoever calls knows what may be repeated.

    Args:
        options: as parsed.
        database: the one that names without a database belong to.

    Raises:
        OptionError: address, credentials and TLS contradict each other, or a file is not there.
    """

    def __init__(self, options: Mapping[str, Any], database: str) -> None:
        self.options, self.database = options, database
        self.access = Access.of(options, database)
        self._local = threading.local()

    @property
    def pool(self) -> Pool:
        """The connections that all sessions of equal access share in this process."""
        return shared(self.access, self.access.pool)

    @property
    def live(self) -> Live:
        """This thread's connection in a block of `connected`; else one that it may have next."""
        with self.connected() as live:
            return live

    @contextmanager
    def connected(self) -> Iterator[Live]:
        """Send all statements of the block, by this thread, over one connection.

        If it breaks they fail: on another one, those of a transaction would take effect each by
        itself, and temporary tables are not there.
        """
        held: Live | None = getattr(self._local, "live", None)
        if held is not None:
            yield held
            return
        with self.pool.lend() as live:
            self._local.live = live
            try:
                yield live
            finally:
                self._local.live = None

    def run(self, sql: str | bytes, *args: Any) -> Sequence[tuple[Any, ...]]:
        """Send one statement, and give its rows.

        Raises:
            pymysql.MySQLError: it failed.
        """
        with self.connected() as live:
            return live.run(sql, *args)

    def change(self, sql: bytes) -> int:
        """Send one statement, and give how many rows it changed.

        Raises:
            pymysql.MySQLError: it failed.
        """
        with self.connected() as live:
            return int(live.sent(sql).rowcount)

    def load(self, sql: str, data: memoryview) -> int:
        """Send a LOAD DATA LOCAL and its rows.

        Returns:
            How many rows it inserted; -1 if the server had to warn of any of them.

        Raises:
            pymysql.MySQLError: it failed.
        """
        with self.connected() as live:
            with live.connection.upload(data, live.packet):
                done = live.sent(sql)
            return int(done.rowcount) if done.warning_count == 0 else -1

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Within the block the server ends each statement that takes longer than ``timeout``.

        Raises:
            pymysql.MySQLError: the server does not answer.
            StoreRefused: it ended a statement.
        """
        with self.connected() as live:
            limit = LIMIT[live.mariadb]
            value = f"{limit.units * self.access.timeout:.{limit.digits}f}"
            live.run(f"SET SESSION {limit.variable} = {value}")
            try:
                yield
            except pymysql.MySQLError as error:
                if number(error) != limit.error:
                    raise
                raise too_slow(self.access.timeout) from None
            finally:
                live.restore(f"{limit.variable} = 0")

    def give_up(self, live: Live) -> bool:
        """End whatever the server still does for a connection, and close it.

        Its number may be that of somebody else on another server to which the address leads.

        Returns:
            Whether the server answered.
        """
        connection: Any = live.connection
        try:
            with self.pool.lend() as other:
                if other.server == live.server:
                    other.run(f"KILL {connection.thread_id()}")
        except pymysql.MySQLError as error:
            return number(error) == GONE
        finally:
            live.drop()
        return True

    @contextmanager
    def local_time(self) -> Iterator[None]:
        """Within the block the time of day is the server's own, as for others who write to it.

        Raises:
            pymysql.MySQLError: the server does not answer.
        """
        with self.connected() as live:
            live.run(LOCAL)
            try:
                yield
            finally:
                live.restore(f"time_zone = '{UTC}'")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements of the block, or none.

        Raises:
            pymysql.MySQLError: a statement failed, or COMMIT; then its outcome may be unknown.
        """
        with self.connected() as live:
            live.run("START TRANSACTION")
            try:
                yield
            # Whatever is no Exception ends the connection, and so the transaction, in `Pool.lend`.
            except Exception:
                live.roll_back()
                raise
            try:
                live.run("COMMIT")
            # The transaction may still be open: lent again, the connection would go on with it.
            except pymysql.MySQLError:
                live.drop()
                raise
