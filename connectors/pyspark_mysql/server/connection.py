"""Connections, each with the same settings, and the pool that lends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any

import pymysql
from pymysql.constants import CLIENT, COMMAND, SERVER_STATUS
from pymysql.protocol import FieldDescriptorPacket

from pyspark_mysql.server import address, settings, tls
from pyspark_mysql.server.address import Address
from pyspark_mysql.server.failures import DEMOTED, Kind, known, number
from pyspark_mysql.server.upload import Uploading
from pyspark_mysql.server.versions import MARIADB, supported
from sparkonce.connections import FILES, IDLE, used
from sparkonce.errors import StoreRefused
from sparkonce.options import password

NAMED = ("password", "passwordFile", "tlsMode", *FILES)
"""Options that, with the address, say who comes and what is asked of the server's certificate."""


SERVER = "@@hostname, @@port, @@server_id"
"""What tells servers apart that one address leads to."""


@dataclass(eq=False)
class Live:
    """An open connection, and what its server is.

    Attributes:
        packet: bytes that a statement may have.
        loads: whether LOAD DATA LOCAL is allowed.
        used: when it last had an answer.
        server: which one it leads to, behind whatever balances connections.
    """

    connection: Uploading
    mariadb: bool
    packet: int
    loads: bool
    used: float
    server: tuple[Any, ...] = ()

    def run(self, sql: str | bytes, *args: Any) -> Sequence[tuple[Any, ...]]:
        """Send one statement, and give its rows."""
        rows: Sequence[tuple[Any, ...]] = self.sent(sql, *args).fetchall()
        return rows

    def sent(self, sql: str | bytes, *args: Any) -> Any:
        """Send one statement, and give the cursor that has its outcome."""
        cursor: Any = self.connection.cursor()
        with self._asking():
            cursor.execute(sql, args or None)
        return cursor

    def prepared(self, sql: str) -> list[FieldDescriptorPacket]:
        """The columns that a statement would give; it does not run.

        See https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_com_stmt_prepare.html.
        """
        connection: Any = self.connection
        with self._asking():
            connection._execute_command(COMMAND.COM_STMT_PREPARE, sql)
            answer = connection._read_packet()
            _, statement, columns, parameters = answer.read_struct("<BIHH")
            for _ in range(parameters + bool(parameters)):
                connection._read_packet()
            found = [connection._read_packet(FieldDescriptorPacket) for _ in range(columns)]
            if columns:
                connection._read_packet()  # the end of them
            connection._execute_command(COMMAND.COM_STMT_CLOSE, statement.to_bytes(4, "little"))
        return found

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Close the connection where what is asked for in the block leaves it in doubt."""
        try:
            yield
        except pymysql.MySQLError as error:
            if known(error).kind is Kind.LOST or number(error) in DEMOTED:
                self.drop()
            raise
        except BaseException:
            self.drop()  # in mid-answer, perhaps
            raise
        self.used = time.monotonic()

    def roll_back(self) -> None:
        """End the transaction, whatever it takes."""
        if self.connection.open:
            try:
                self.run("ROLLBACK")
            except pymysql.MySQLError:
                self.drop()

    def restore(self, setting: str) -> None:
        """Set a variable of the session to what all sessions have; or close the connection.

        Raises:
            pymysql.MySQLError: the server does not answer.
        """
        if self.connection.open:
            try:
                self.run(f"SET SESSION {setting}")
            except pymysql.MySQLError:
                self.drop()  # lent again, it would have the other value
                raise

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
    """Lends each connection to one user at a time. See `sparkonce.connections`.

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
                autocommit=None,  # among the settings: what the handshake says may not be so
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
            _greet(live, self.database, self.timeout)
        except BaseException:
            live.drop()
            raise
        return live


def _greet(live: Live, database: str, timeout: float) -> None:
    """Learn what the server is, and set what must not depend on it."""
    asked = "SELECT VERSION(), @@version_comment, @@max_allowed_packet, @@local_infile, DATABASE()"
    version, comment, packet, loads, home, *server = live.run(f"{asked}, {SERVER}")[0]
    live.server = tuple(server)
    version = supported(version, comment)
    live.mariadb, live.packet, live.loads = MARIADB in version, int(packet), bool(loads)
    wanted = settings.settings(version, timeout, mariadb=live.mariadb)
    live.run(settings.statement(wanted))
    (found,) = live.run(settings.reading(wanted))
    settings.require(wanted, found)
    _undo(live, home, database)


def _undo(live: Live, home: str | None, database: str) -> None:
    """Leave what the server's `init_connect` may have led to: a transaction, another database."""
    connection: Any = live.connection  # the stubs don't have what it knows of the server
    if connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
        live.run("ROLLBACK")
    if database and (home or "").lower() != database.lower():
        live.connection.select_db(database)
