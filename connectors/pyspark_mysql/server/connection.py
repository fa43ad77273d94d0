"""Connections, each with the same settings, and the pool that lends them."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, SERVER_STATUS
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

from pyspark_mysql.server import address, settings
from pyspark_mysql.server.address import Address
from pyspark_mysql.server.failures import DEMOTED, failure_of, number
from sparkonce import connections
from sparkonce.connections import FILES, IDLE, used
from sparkonce.errors import FailureKind, OptionError, StoreRefused
from sparkonce.options import password

ACCESS_OPTIONS = ("password", "passwordFile", "tlsMode", *FILES)
"""Options that, with the address, say who comes and what is asked of the server's certificate."""

SERVER = "@@hostname, @@port, @@server_id"
"""What tells servers apart that one address leads to."""

UPLOAD_PACKET = 256 * 1024
"""Bytes of a packet of LOAD DATA LOCAL, where the server takes such packets."""


class UploadingConnection(Connection):
    """A connection that answers LOAD DATA LOCAL with bytes of its own, and never opens a file.

    A server answers LOAD DATA LOCAL with the name of a file that it wants, and a hostile one can
    answer so to any statement. The name is never looked at: what is sent is what `upload` was
    given, once; and without `local_infile`, pymysql refuses every other such answer.

    See "Security Considerations for LOAD DATA LOCAL" in MySQL's manual.
    """

    _data: memoryview | None = None
    _packet = UPLOAD_PACKET

    @contextmanager
    def upload(self, data: memoryview, packet: int) -> Iterator[None]:
        """Within the block the server may have these bytes, once; `packet` is what it takes."""
        self._data, self._packet = data, min(UPLOAD_PACKET, packet // 2)
        try:
            yield
        finally:
            self._data = None

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> MysqlPacket:
        packet: MysqlPacket = super()._read_packet(packet_type)  # type: ignore[no-untyped-call]
        # Taken by the first answer, whatever it is: one that asks again gets nothing.
        data, self._data = self._data, None
        if data is None or not packet.is_load_local_packet():
            return packet
        for start in range(0, len(data), self._packet):
            self.write_packet(data[start : start + self._packet])
        # An empty packet ends the file.
        self.write_packet(b"")
        return self._read_packet(packet_type)


@dataclass(eq=False)
class LiveConnection:
    """An open connection, and what its server is.

    Attributes:
        packet: bytes that a statement may have.
        loads: whether LOAD DATA LOCAL is allowed.
        used: when it last had an answer.
        server: which one it leads to, behind whatever balances connections.
    """

    connection: UploadingConnection
    mariadb: bool = False
    packet: int = 0
    loads: bool = False
    used: float = field(default_factory=time.monotonic)
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
            if failure_of(error).kind is FailureKind.LOST or number(error) in DEMOTED:
                self.drop()
            raise
        except BaseException:
            self.drop()  # in mid-answer, perhaps
            raise
        self.used = time.monotonic()

    @contextmanager
    def or_dropped(self) -> Iterator[None]:
        """Close the connection where the block fails: lent again, it would go on in that state."""
        try:
            yield
        except pymysql.MySQLError:
            self.drop()
            raise

    def roll_back(self) -> None:
        """End the transaction, whatever it takes."""
        if self.connection.open:
            with suppress(pymysql.MySQLError), self.or_dropped():
                self.run("ROLLBACK")

    @contextmanager
    def setting(self, setting: str, usual: str) -> Iterator[None]:
        """Within the block a variable of the session differs from what all sessions have."""
        self.run(f"SET SESSION {setting}")
        try:
            yield
        finally:
            if self.connection.open:
                with self.or_dropped():
                    self.run(f"SET SESSION {usual}")

    def answers(self) -> bool:
        """Whether it still leads to a server."""
        with suppress(pymysql.MySQLError), self.or_dropped():
            self.connection.ping(reconnect=False)
            return True
        return False

    def drop(self) -> None:
        """Close it."""
        with suppress(pymysql.MySQLError):  # closed already
            self.connection.close()


class MySqlPool:
    """Lends each connection to one user at a time. See `sparkonce.connections`."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._idle: list[LiveConnection] = []

    @contextmanager
    def lend(self) -> Iterator[LiveConnection]:
        """A connection, for the time of the block.

        Raises:
            pymysql.MySQLError: the server can't be reached.
        """
        used(self)  # also if nobody answers: the key, which holds secrets, must go
        live = self._answering() or self._access.open()
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

    def _answering(self) -> LiveConnection | None:
        while live := self._next():
            # It may have been closed unseen; a server does so after twice the time-out.
            if time.monotonic() - live.used < self._access.timeout / 2 or live.answers():
                return live
        return None

    def _next(self) -> LiveConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # asked for first, another thread might have come in between
            return None

    def _take_back(self, live: LiveConnection) -> None:
        used(self)
        if not live.connection.open:
            self.close_idle()  # what broke one may have broken all
            return
        self._idle.append(live)
        # Of a burst of users, what nobody has needed since; the first has waited longest.
        with suppress(IndexError):  # another thread took it
            while time.monotonic() - self._idle[0].used > IDLE:
                self._idle.pop(0).drop()


@dataclass(frozen=True)
class Access:
    """What determines a connection: those of equal ones can stand for each other.

    Attributes:
        options: the values of `ACCESS_OPTIONS`.
        context: made of them.
    """

    address: Address = field(repr=False)
    database: str
    timeout: float
    options: tuple[Any, ...] = field(repr=False)
    context: ssl.SSLContext | None = field(compare=False)

    @classmethod
    def of(cls, options: Mapping[str, Any], database: str) -> Access:
        """What options say of it.

        Raises:
            OptionError: they contradict each other, or a file is not there.
        """
        at = address.parse(options)
        values = tuple(options[name] for name in ACCESS_OPTIONS)
        return cls(at, database, float(options["timeout"]), values, tls_context(options, at))

    def open(self) -> LiveConnection:
        """A new connection. Raises pymysql.MySQLError, StoreRefused or StoreUnsafe."""
        where, options = self.address, dict(zip(ACCESS_OPTIONS, self.options, strict=True))
        try:
            connection = UploadingConnection(
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
        live = LiveConnection(connection)
        try:
            _greet(live, self.database, self.timeout)
        except BaseException:
            live.drop()
            raise
        return live


def tls_context(options: Mapping[str, Any], address: Address) -> ssl.SSLContext | None:
    """What the client asks of the server's certificate; None for a connection without TLS.

    TLS is on and verified by default, unless no network lies between.

    Raises:
        OptionError: options contradict each other, or a file is not there.
    """
    given = connections.tls_files(options)
    mode = options["tlsMode"] or ("off" if address.local and not given else "verify")
    if mode == "off":
        if given:
            raise OptionError(
                f"Options tlsMode=off and {next(iter(given))} contradict each other",
                why="without TLS no certificate is looked at",
                todo="leave one of them out",
            )
        return None
    connections.require_files(given)
    return connections.tls_context(given, verify=mode == "verify")


def _greet(live: LiveConnection, database: str, timeout: float) -> None:
    """Learn what the server is, and set what must not depend on it."""
    asked = "SELECT VERSION(), @@version_comment, @@max_allowed_packet, @@local_infile, DATABASE()"
    version, comment, packet, loads, home, *server = live.run(f"{asked}, {SERVER}")[0]
    live.server = tuple(server)
    version = settings.supported(version, comment)
    live.mariadb = settings.MARIADB in version
    live.packet, live.loads = int(packet), bool(loads)
    wanted = settings.settings(version, timeout, mariadb=live.mariadb)
    live.run(settings.statement(wanted))
    (found,) = live.run("SELECT " + ", ".join(f"@@SESSION.{name}" for name in wanted))
    settings.require(wanted, found)
    # What the server's `init_connect` may have led to: a transaction, another database.
    connection: Any = live.connection  # the stubs don't have what it knows of the server
    if connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
        live.run("ROLLBACK")
    if database and (home or "").lower() != database.lower():
        connection.select_db(database)
