"""Connections, each with the same settings, and the pool that lends them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

import pymysql
from pymysql.constants import CLIENT

from pyspark_mysql.server import address, tls
from pyspark_mysql.server.address import Address
from pyspark_mysql.server.failures import DEMOTED, Kind, known, number
from pyspark_mysql.server.upload import Uploading
from pyspark_mysql.server.versions import MARIADB, supported
from sparkonce.errors import StoreRefused
from sparkonce.options import password
from sparkonce.shared import IDLE, used
from sparkonce.tls import FILES

# NO_AUTO_VALUE_ON_ZERO: a zero in an auto-increment column stays one.
MODE = "STRICT_ALL_TABLES,NO_ZERO_DATE,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
MODE += "NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO"
NAMED = ("password", "passwordFile", "tlsMode", *FILES)
"""Options that, with the address, say who comes and what is asked of the server's certificate."""


@dataclass(eq=False)
class Live:
    """An open connection, and what its server is.

    Attributes:
        packet: bytes that a statement may have.
        loads: whether LOAD DATA LOCAL is allowed.
        used: when it last had an answer.
    """

    connection: Uploading
    mariadb: bool
    packet: int
    loads: bool
    used: float

    def run(self, sql: str | bytes, *args: Any) -> Sequence[tuple[Any, ...]]:
        """Send one statement, and give its rows."""
        rows: Sequence[tuple[Any, ...]] = self.sent(sql, *args).fetchall()
        return rows

    def sent(self, sql: str | bytes, *args: Any) -> Any:
        """Send one statement, and give the cursor that has its outcome."""
        cursor: Any = self.connection.cursor()
        try:
            cursor.execute(sql, args or None)
        except pymysql.MySQLError as error:
            if known(error).kind is Kind.LOST or number(error) in DEMOTED:
                self.drop()
            raise
        except BaseException:
            self.drop()  # in mid-answer, perhaps
            raise
        self.used = time.monotonic()
        return cursor

    def roll_back(self) -> None:
        """End the transaction, whatever it takes."""
        if self.connection.open:
            try:
                self.run("ROLLBACK")
            except pymysql.MySQLError:
                self.drop()

    def answers(self) -> bool:
        """Whether it still leads to a server."""
        try:
            self.connection.ping(reconnect=False)
        except pymysql.MySQLError:
            self.drop()
            return False
        return True

    def drop(self) -> None:
        """Close it."""
        with suppress(pymysql.MySQLError):  # closed already
            self.connection.close()


class Pool:
    """Lends each connection to one user at a time. See `sparkonce.shared`.

    Args:
        make: opens one.
        quiet: seconds without an answer after which one is tried before it is lent.
    """

    def __init__(self, make: Callable[[], Live], quiet: float) -> None:
        self._make, self._quiet = make, quiet
        self._idle: list[Live] = []

    @contextmanager
    def lend(self) -> Iterator[Live]:
        """A connection, for the time of the block.

        Raises:
            pymysql.MySQLError: the server can't be reached.
        """
        used(self)  # also if nobody answers: the key, which holds secrets, must go
        live = self._known() or self._make()
        try:
            yield live
        except Exception:
            raise
        except BaseException:
            live.drop()  # interrupted in mid-transaction, perhaps
            raise
        finally:
            self._take_back(live)

    def close_idle(self) -> None:
        """See `Idling.close_idle`."""
        while live := self._next():
            live.drop()

    def _known(self) -> Live | None:
        while live := self._next():
            # It may have been closed unseen; a server does so after twice the time-out.
            if time.monotonic() - live.used < self._quiet or live.answers():
                return live
        return None

    def _next(self) -> Live | None:
        try:
            return self._idle.pop()
        except IndexError:  # asked for first, another thread might have come in between
            return None

    def _take_back(self, live: Live) -> None:
        used(self)
        if not live.connection.open:
            self.close_idle()  # what broke one may have broken all
            return
        self._idle.append(live)
        self._drop_old()

    def _drop_old(self) -> None:
        """Of a burst of users, what nobody has needed since; the first has waited longest."""
        try:
            while time.monotonic() - self._idle[0].used > IDLE:
                self._idle.pop(0).drop()
        except IndexError:  # another thread took it
            return


@dataclass(frozen=True)
class Access:
    """What determines a connection: those of equal ones can stand for each other.

    Attributes:
        options: the values of `NAMED`.
        context: made of them.
    """

    address: Address = field(repr=False)
    database: str
    timeout: float
    options: tuple[Any, ...] = field(repr=False)
    context: SSLContext | None = field(compare=False)

    @classmethod
    def of(cls, options: Mapping[str, Any], database: str) -> Access:
        """What options say of it.

        Raises:
            OptionError: they contradict each other, or a file is not there.
        """
        at = address.parse(options)
        named = tuple(options[name] for name in NAMED)
        return cls(at, database, float(options["timeout"]), named, tls.context(options, at))

    def pool(self) -> Pool:
        """A new pool of such connections."""
        return Pool(self._open, self.timeout / 2)

    def _open(self) -> Live:
        where, options = self.address, dict(zip(NAMED, self.options, strict=True))
        try:
            connection = Uploading(
                host=where.host,
                port=where.port,
                user=where.user,
                password=where.password or password(options) or "",
                database=self.database,
                charset="utf8mb4",
                autocommit=True,
                # By local_infile=True pymysql would send any file that a server asks for.
                client_flag=CLIENT.LOCAL_FILES,
                ssl=self.context,
                ssl_disabled=self.context is None,
                connect_timeout=max(1, min(self.timeout, 10)),
                read_timeout=self.timeout,
                write_timeout=self.timeout,
            )
        except RuntimeError as error:  # pymysql asks for a package so
            raise StoreRefused(
                f"MySQL can't be logged in to: {error}",
                why="caching_sha2_password sends a password encrypted by RSA where there is no TLS",
                todo="set option tlsMode=verify, or pip install 'sparkonce[mysql]'",
            ) from None
        live = Live(connection, mariadb=False, packet=0, loads=False, used=time.monotonic())
        try:
            _greet(live, self.timeout)
        except BaseException:
            live.drop()
            raise
        return live


def _greet(live: Live, timeout: float) -> None:
    """Learn what the server is, and set what must not depend on it."""
    asked = "SELECT VERSION(), @@version_comment, @@max_allowed_packet, @@local_infile"
    version, comment, packet, loads = live.run(asked)[0]
    version = supported(version, comment)
    live.mariadb, live.packet, live.loads = MARIADB in version, int(packet), bool(loads)
    _set_up(live, timeout, "tx" if _OLD_MARIADB.match(version) else "transaction")


def _set_up(live: Live, timeout: float, prefix: str) -> None:
    """Set what must not depend on the server's defaults.

    A driver that hangs in mid-transaction holds the ledger until its session is ended, so that
    is soon; while whoever waits for it hears of it before its own time-out.
    """
    idle, wait = math.ceil(2 * timeout), max(1, int(timeout * 0.8))
    settings = {
        # Fractions of a second are cut: MySQL would round them, unlike MariaDB.
        "sql_mode": f"'{MODE}'" if live.mariadb else f"'{MODE},TIME_TRUNCATE_FRACTIONAL'",
        "time_zone": "'+00:00'",
        # A server may have set these for all sessions, and would cut results or refuse statements.
        "sql_safe_updates": 0,
        "sql_select_limit": 2**64 - 1,
        "sql_big_selects": 1,
        # MariaDB compares no more of the keys of a window than it sorts by.
        "max_sort_length": 2**23,
        # Without both, MariaDB fills empty tables in bulk: an error would undo all rows so far.
        "unique_checks": 1,
        "foreign_key_checks": 1,
        # With CHAIN what is sent behind COMMIT would be in a transaction that nobody commits.
        "completion_type": 0,
        "wait_timeout": idle,
        "lock_wait_timeout": wait,
        "innodb_lock_wait_timeout": wait,
        f"{prefix}_isolation": "'READ-COMMITTED'",
        f"{prefix}_read_only": 0,
        **({"idle_transaction_timeout": idle} if live.mariadb else _UNBOUNDED_RANGES),
    }
    live.run("SET " + ", ".join(f"SESSION {k}={v}" for k, v in settings.items()))


_OLD_MARIADB = re.compile(r"(10\.|11\.0).*MariaDB")
"""Its settings of a transaction have names of their own."""

_UNBOUNDED_RANGES = {"range_optimizer_max_mem_size": 0}
"""Else a condition with a long list of rows is looked up by reading the whole table."""
