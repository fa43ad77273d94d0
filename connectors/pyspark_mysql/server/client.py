"""Sessions with MySQL and MariaDB for the connector."""

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
"""The number of the error of a KILL for an unknown connection."""


class MySqlSession:
    """Sends statements, each over a connection that no other thread of the process uses then.

    A session sends each statement once: the caller knows which statements may be repeated. All
    methods raise pymysql.MySQLError if a statement fails or the server does not reply.

    `database` is the default database of names.

    Raises:
        OptionError: address, credentials and TLS contradict each other, or a file does not exist.
    """

    def __init__(self, options: Mapping[str, Any], database: str) -> None:
        self.options, self.database = options, database
        self.access = Access.of(options, database)
        self._local = threading.local()

    @property
    def pool(self) -> MySqlPool:
        """The connections that all sessions with equal access share in this process."""
        return shared(self.access, lambda: MySqlPool(self.access))

    @property
    def live(self) -> LiveConnection:
        """The connection of this thread in a block of `connected`; else the next idle one."""
        with self.connected() as live:
            return live

    @contextmanager
    def connected(self) -> Iterator[LiveConnection]:
        """Send all statements of this thread in the block over one connection.

        If the connection breaks, the statements fail. On another connection each statement of a
        transaction would take effect alone, and temporary tables would be missing.
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
        """Send one statement, and return its rows."""
        with self.connected() as live:
            return live.run(sql, *args)

    def variables(self, *names: str) -> dict[str, str]:
        """The global variables of these names that the server has."""
        where = f"variable_name IN ({placeholders(names)})"
        found = self.run(f"SHOW GLOBAL VARIABLES WHERE {where}", *names)
        return {name.lower(): str(value) for name, value in found}

    def change(self, sql: bytes) -> int:
        """Send one statement, and return the number of rows that it changed."""
        with self.connected() as live:
            return int(live.sent(sql).rowcount)

    def load(self, sql: str, data: memoryview) -> int:
        """Send a LOAD DATA LOCAL and its rows.

        Returns:
            The number of inserted rows; -1 if the server warned about any of them.
        """
        with self.connected() as live:
            with live.connection.upload(data, live.packet):
                done = live.sent(sql)
            return int(done.rowcount) if done.warning_count == 0 else -1

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Within the block the server ends each statement that takes longer than ``timeout``.

        Raises:
            StoreRefused: the server ended a statement.
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
        """End the running statement of a connection, and close the connection.

        On another server behind the same address, its number may belong to somebody else.

        Returns:
            Whether the server replied.
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
        """Within the block the session uses the server's local time, as other writers do."""
        with self.connected() as live, live.setting(LOCAL, f"time_zone = '{UTC}'"):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Apply all statements of the block, or none; if COMMIT fails the outcome is unknown."""
        with self.connected() as live:
            live.run("START TRANSACTION")
            try:
                yield
            # A BaseException closes the connection (`MySqlPool.lend`), which rolls back.
            except Exception:
                live.roll_back()
                raise
            # If COMMIT fails, the transaction may still be open.
            with live.or_dropped():
                live.run("COMMIT")
