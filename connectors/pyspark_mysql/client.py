"""Sessions of MySQL and MariaDB, as the connector needs them."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import CLIENT

from pyspark_mysql import address, tls
from pyspark_mysql.failures import Kind, known
from pyspark_mysql.upload import Uploading
from pyspark_mysql.versions import MARIADB, supported
from sparkonce.errors import StoreRefused
from sparkonce.options import password

MODE = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
MODE += "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"


@dataclass
class Live:
    """An open connection, and what its server is.

    Attributes:
        packet: bytes that a statement may have.
        loads: whether LOAD DATA LOCAL is allowed.
    """

    connection: Uploading
    process: int
    mariadb: bool
    packet: int
    loads: bool
    used: float


class Session:
    """One connection for each thread, opened when it is first used, and again after a failure.

    Each statement is sent once: whoever calls knows what may be repeated.

    Args:
        options: as parsed.
        database: the one that names without a database belong to.
    """

    def __init__(self, options: Mapping[str, Any], database: str) -> None:
        self.database = database
        self.options, self.address = options, address.parse(options)
        self.tls = tls.context(options, self.address)
        self._local = threading.local()

    @property
    def live(self) -> Live:
        """This thread's connection.

        In a transaction that is the one on which it began: on another one its other statements
        would take effect each by itself.
        """
        live: Live | None = getattr(self._local, "transaction", None)
        if live is not None:
            return live
        live = getattr(self._local, "live", None)
        # A forked process must not speak on its parent's connection.
        if live is None or live.process != os.getpid() or not live.connection.open:
            live = self._local.live = self._open()
        elif time.monotonic() - live.used > float(self.options["timeout"]) / 2:
            # It may have been closed unseen; a server does so after twice the time-out.
            live = self._local.live = self._tried(live)
        return live

    def run(self, sql: str | bytes, *args: Any) -> Sequence[tuple[Any, ...]]:
        """Send one statement, and give its rows.

        Raises:
            pymysql.MySQLError: it failed.
        """
        return self._run(self.live, sql, *args)

    def change(self, sql: bytes) -> int:
        """Send one statement, and give how many rows it changed.

        Raises:
            pymysql.MySQLError: it failed.
        """
        return int(self._sent(self.live, sql).rowcount)

    def load(self, sql: str, data: memoryview) -> int:
        """Send a LOAD DATA LOCAL and its rows.

        Returns:
            How many rows it inserted; -1 if the server had to warn of any of them.

        Raises:
            pymysql.MySQLError: it failed.
        """
        live = self.live
        with live.connection.upload(data, live.packet):
            done = self._sent(live, sql)
        return int(done.rowcount) if done.warning_count == 0 else -1

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements of the block, or none.

        Raises:
            pymysql.MySQLError: a statement failed, or COMMIT; then its outcome may be unknown.
        """
        live = self.live
        self._run(live, "START TRANSACTION")
        self._local.transaction = live
        try:
            yield
        except Exception:
            self._roll_back(live)
            raise
        except BaseException:
            _drop(live)  # interrupted in mid-answer, perhaps
            raise
        finally:
            self._local.transaction = None
        try:
            self._run(live, "COMMIT")
        except pymysql.MySQLError:
            _drop(live)
            raise

    def close(self) -> None:
        """Close this thread's connection."""
        live: Live | None = getattr(self._local, "live", None)
        if live is not None:
            _drop(live)

    def _run(self, live: Live, sql: str | bytes, *args: Any) -> Sequence[tuple[Any, ...]]:
        rows: Sequence[tuple[Any, ...]] = self._sent(live, sql, *args).fetchall()
        return rows

    def _sent(self, live: Live, sql: str | bytes, *args: Any) -> Any:
        cursor: Any = live.connection.cursor()
        try:
            cursor.execute(sql, args or None)
        except pymysql.MySQLError as error:
            if known(error).kind is Kind.LOST:
                _drop(live)
            raise
        live.used = time.monotonic()
        return cursor

    def _roll_back(self, live: Live) -> None:
        if live.connection.open:
            try:
                self._run(live, "ROLLBACK")
            except pymysql.MySQLError:
                _drop(live)

    def _tried(self, live: Live) -> Live:
        try:
            live.connection.ping(reconnect=False)
        except pymysql.MySQLError:
            return self._open()
        return live

    def _open(self) -> Live:
        where, timeout = self.address, float(self.options["timeout"])
        try:
            connection = Uploading(
                host=where.host,
                port=where.port,
                unix_socket=where.socket,
                user=where.user,
                password=where.password or password(self.options) or "",
                database=self.database,
                charset="utf8mb4",
                autocommit=True,
                client_flag=CLIENT.LOCAL_FILES,
                ssl=self.tls,
                ssl_disabled=self.tls is None,
                connect_timeout=max(1, min(timeout, 10)),
                read_timeout=timeout,
                write_timeout=timeout,
            )
        except RuntimeError as error:  # pymysql asks for a package so
            raise StoreRefused(
                f"MySQL can't be logged in to: {error}",
                why="caching_sha2_password sends a password encrypted by RSA where there is no TLS",
                todo="set option tlsMode=verify, or pip install 'sparkonce[mysql]'",
            ) from None
        live = Live(
            connection, os.getpid(), mariadb=False, packet=0, loads=False, used=time.monotonic()
        )
        asked = "SELECT VERSION(), @@version_comment, @@max_allowed_packet, @@local_infile"
        version, comment, packet, loads = self._run(live, asked)[0]
        version = supported(version, comment)
        live.mariadb, live.packet, live.loads = MARIADB in version, int(packet), bool(loads)
        self._set_up(live, timeout, "tx" if _OLD_MARIADB.match(version) else "transaction")
        return live

    def _set_up(self, live: Live, timeout: float, prefix: str) -> None:
        """Set what must not depend on the server's defaults.

        A driver that hangs in mid-transaction holds the ledger until its session is ended, so that
        is soon; while whoever waits for it hears of it before its own time-out.
        """
        idle, wait = math.ceil(2 * timeout), max(1, int(timeout * 0.8))
        settings = {
            "sql_mode": f"'{MODE}'" if live.mariadb else f"'{MODE},TIME_TRUNCATE_FRACTIONAL'",
            "time_zone": "'+00:00'",
            "sql_safe_updates": 0,
            "sql_select_limit": 2**64 - 1,
            "sql_big_selects": 1,
            # Without both, MariaDB fills empty tables in bulk: an error would undo all rows so far.
            "unique_checks": 1,
            "foreign_key_checks": 1,
            "completion_type": 0,
            "wait_timeout": idle,
            "lock_wait_timeout": wait,
            "innodb_lock_wait_timeout": wait,
            f"{prefix}_isolation": "'READ-COMMITTED'",
            f"{prefix}_read_only": 0,
            **({"idle_transaction_timeout": idle} if live.mariadb else _UNBOUNDED_RANGES),
        }
        self._run(live, "SET " + ", ".join(f"SESSION {k}={v}" for k, v in settings.items()))


def _drop(live: Live) -> None:
    with suppress(pymysql.MySQLError):  # closed already
        live.connection.close()


_OLD_MARIADB = re.compile(r"(10\.|11\.0).*MariaDB")
"""Its settings of a transaction have names of their own."""

_UNBOUNDED_RANGES = {"range_optimizer_max_mem_size": 0}
"""Else a condition with a long list of rows is looked up by reading the whole table."""
