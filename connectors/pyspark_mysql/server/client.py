"""Sessions of MySQL and MariaDB, as the connector needs them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql

from pyspark_mysql.server.connection import Access, LiveConnection, MySqlPool
from pyspark_mysql.server.failures import number, too_slow
from pyspark_mysql.server.literals import placeholders
from pyspark_mysql.server.settings import LOCAL, UTC
from sparkonce.connections import shared

NO_SUCH_CONNECTION = 1094
"""The number of the error of a KILL."""


class MySqlSession:
    """Sends statements, each over a connection that nobody else of the process uses then.

    Each statement is sent once: whoever calls knows what may be repeated. All methods raise
    pymysql.MySQLError where a statement fails or the server does not answer.

    Names without a database are of `database`.

    Raises:
        OptionError: address, credentials and TLS contradict each other, or a file is not there.
    """

    def __init__(self, options: Mapping[str, Any], database: str) -> None:
        self.options, self.database = options, database
        self.access = Access.of(options, database)
        self._local = threading.local()

    @property
    def pool(self) -> MySqlPool:
        """The connections that all sessions of equal access share in this process."""
        return shared(self.access, lambda: MySqlPool(self.access))

    @property
    def live(self) -> LiveConnection:
        """This thread's connection in a block of `connected`; else one that it may have next."""
        with self.connected() as live:
            return live

    @contextmanager
    def connected(self) -> Iterator[LiveConnection]:
        """Send all statements of the block, by this thread, over one connection.

        If it breaks they fail: on another one, those of a transaction would take effect each by
        itself, and temporary tables are not there.
        """
        held: LiveConnection | None = getattr(self._local, "live", None)
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
        """Send one statement, and give its rows."""
        with self.connected() as live:
            return live.run(sql, *args)

    def variables(self, *names: str) -> dict[str, str]:
        """The settings of the server that it has of these names."""
        where = f"variable_name IN ({placeholders(names)})"
        found = self.run(f"SHOW GLOBAL VARIABLES WHERE {where}", *names)
        return {name.lower(): str(value) for name, value in found}

    def change(self, sql: bytes) -> int:
        """Send one statement, and give how many rows it changed."""
        with self.connected() as live:
            return int(live.sent(sql).rowcount)

    def load(self, sql: str, data: memoryview) -> int:
        """Send a LOAD DATA LOCAL and its rows.

        Returns:
            How many rows it inserted; -1 if the server had to warn of any of them.
        """
        with self.connected() as live:
            with live.connection.upload(data, live.packet):
                done = live.sent(sql)
            return int(done.rowcount) if done.warning_count == 0 else -1

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Within the block the server ends each statement that takes longer than ``timeout``.

        Raises:
            StoreRefused: it ended a statement.
        """
        with self.connected() as live:
            seconds = self.access.timeout
            limit, value, too_long = "max_execution_time", f"{1000 * seconds:.0f}", 3024
            if live.mariadb:
                limit, value, too_long = "max_statement_time", f"{seconds:.3f}", 1969
            try:
                with live.setting(f"{limit} = {value}", f"{limit} = 0"):
                    yield
            except pymysql.MySQLError as error:
                if number(error) != too_long:
                    raise
                raise too_slow(seconds) from None

    def give_up(self, live: LiveConnection) -> bool:
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
            return number(error) == NO_SUCH_CONNECTION
        finally:
            live.drop()
        return True

    @contextmanager
    def local_time(self) -> Iterator[None]:
        """Within the block the time of day is the server's own, as for others who write to it."""
        with self.connected() as live, live.setting(LOCAL, f"time_zone = '{UTC}'"):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements of the block, or none; if COMMIT fails the outcome may be unknown."""
        with self.connected() as live:
            live.run("START TRANSACTION")
            try:
                yield
            # Whatever is no Exception closes the connection (`MySqlPool.lend`), which rolls back.
            except Exception:
                live.roll_back()
                raise
            # If COMMIT fails, the transaction may still be open.
            with live.or_dropped():
                live.run("COMMIT")
