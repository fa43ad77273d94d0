"""Connections with equal settings, and the pool that lends them."""

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
from pyspark_mysql.server.failures import DEMOTED, failure_of, message, number
from sparkonce import connections
from sparkonce.connections import FILES, IDLE, used
from sparkonce.errors import FailureKind, OptionError, StoreRefused
from sparkonce.options import password

ACCESS_OPTIONS = ("password", "passwordFile", "tlsMode", *FILES)
"""Options that, with the address, determine the user and the check of the server's certificate."""

FIRST = "sessionInitStatement"

SERVER = "@@hostname, @@port, @@server_id"
"""The variables that distinguish servers behind one address."""

UPLOAD_PACKET = 256 * 1024
"""Bytes of a packet of LOAD DATA LOCAL, if the server accepts packets of this size."""


class UploadingConnection(Connection):
    """A connection that uploads bytes from memory for LOAD DATA LOCAL, and never opens a file.

    A server replies to LOAD DATA LOCAL with the name of a requested file, and a hostile server can
    send this reply to any statement. The connection ignores the name, and sends the bytes of
    `upload` once. Without `local_infile`, pymysql rejects every other request for a file.

    See "Security Considerations for LOAD DATA LOCAL" in MySQL's manual.
    """

    _data: memoryview | None = None
    _packet = UPLOAD_PACKET

    @contextmanager
    def upload(self, data: memoryview, packet: int) -> Iterator[None]:
        """Within the block the server may request `data` once; `packet` is its packet limit."""
        self._data, self._packet = data, min(UPLOAD_PACKET, packet // 2)
        try:
            yield
        finally:
            self._data = None

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> MysqlPacket:
        packet: MysqlPacket = super()._read_packet(packet_type)  # type: ignore[no-untyped-call]
        # The first reply consumes the data, whatever it is: a second request gets nothing.
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
    """An open connection, and the properties of its server.

    Attributes:
        packet: maximum bytes of a statement.
        loads: whether the server allows LOAD DATA LOCAL.
        used: the time of the last reply.
        server: identifies the server, also behind a load balancer.
    """

    connection: UploadingConnection
    mariadb: bool = False
    packet: int = 0
    loads: bool = False
    used: float = field(default_factory=time.monotonic)
    server: tuple[Any, ...] = ()

    def run(self, sql: str | bytes, *args: Any) -> Sequence[tuple[Any, ...]]:
        """Send one statement, and return its rows."""
        rows: Sequence[tuple[Any, ...]] = self.sent(sql, *args).fetchall()
        return rows

    def sent(self, sql: str | bytes, *args: Any) -> Any:
        """Send one statement, and return its cursor."""
        cursor: Any = self.connection.cursor()
        with self._asking():
            cursor.execute(sql, args or None)
        return cursor

    def prepared(self, sql: str) -> list[FieldDescriptorPacket]:
        """The columns that a statement would return; it does not run.

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
        """Close the connection if an error in the block leaves its state in doubt."""
        try:
            yield
        except pymysql.MySQLError as error:
            if failure_of(error).kind is FailureKind.LOST or number(error) in DEMOTED:
                self.drop()
            raise
        except BaseException:
            self.drop()  # perhaps in the middle of a reply
            raise
        self.used = time.monotonic()

    @contextmanager
    def or_dropped(self) -> Iterator[None]:
        """Close the connection if the block fails: its next user would inherit its state."""
        try:
            yield
        except pymysql.MySQLError:
            self.drop()
            raise

    def roll_back(self) -> None:
        """Roll the transaction back, or close the connection."""
        if self.connection.open:
            with suppress(pymysql.MySQLError), self.or_dropped():
                self.run("ROLLBACK")

    @contextmanager
    def setting(self, setting: str, usual: str) -> Iterator[None]:
        """Within the block a variable of the session has another value than in all sessions."""
        self.run(f"SET SESSION {setting}")
        try:
            yield
        finally:
            if self.connection.open:
                with self.or_dropped():
                    self.run(f"SET SESSION {usual}")

    def answers(self) -> bool:
        """Whether a server still replies."""
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
        """Lend a connection during the block.

        Raises:
            pymysql.MySQLError: the server is unreachable.
        """
        used(self)  # also if no server replies: the key, which holds secrets, must expire
        live = self._answering() or self._access.open()
        try:
            yield live
        except Exception:
            raise
        except BaseException:
            live.drop()  # perhaps interrupted within a transaction
            raise
        finally:
            self._take_back(live)

    def close_idle(self) -> None:
        """See `Idling.close_idle`."""
        while live := self._next():
            live.drop()

    def _answering(self) -> LiveConnection | None:
        while live := self._next():
            # The server may have closed it; servers do so after twice the time-out.
            if time.monotonic() - live.used < self._access.timeout / 2 or live.answers():
                return live
        return None

    def _next(self) -> LiveConnection | None:
        try:
            return self._idle.pop()
        except IndexError:  # a check before pop would race with another thread
            return None

    def _take_back(self, live: LiveConnection) -> None:
        used(self)
        if not live.connection.open:
            self.close_idle()  # the failure may have broken all connections
            return
        self._idle.append(live)
        # After a burst of users, close the unused connections; the first is idle longest.
        with suppress(IndexError):  # another thread took it
            while time.monotonic() - self._idle[0].used > IDLE:
                self._idle.pop(0).drop()


@dataclass(frozen=True)
class Access:
    """All that determines a connection: connections with equal access are interchangeable.

    Attributes:
        options: the values of `ACCESS_OPTIONS`.
        first: the statement that a user wants in each session; may be empty.
        context: the TLS context for these options.
    """

    address: Address = field(repr=False)
    database: str
    timeout: float
    options: tuple[Any, ...] = field(repr=False)
    first: str
    context: ssl.SSLContext | None = field(compare=False)

    @classmethod
    def of(cls, options: Mapping[str, Any], database: str) -> Access:
        """The access that options describe.

        Raises:
            OptionError: options contradict each other, or a file does not exist.
        """
        at = address.parse(options)
        values = tuple(options[name] for name in ACCESS_OPTIONS)
        context, first = tls_context(options, at), options.get(FIRST) or ""
        return cls(at, database, float(options["timeout"]), values, first, context)

    def open(self) -> LiveConnection:
        """Open a connection. Raises pymysql.MySQLError, StoreRefused or StoreUnsafe."""
        where, options = self.address, dict(zip(ACCESS_OPTIONS, self.options, strict=True))
        try:
            connection = UploadingConnection(
                host=where.host,
                port=where.port,
                user=where.user,
                password=where.password or password(options) or "",
                database=self.database,
                charset="utf8mb4",
                autocommit=None,  # one of the settings: the value in the handshake may be wrong
                # With local_infile=True pymysql would send any file that a server requests.
                client_flag=CLIENT.LOCAL_FILES,
                ssl=self.context,
                ssl_disabled=self.context is None,
                connect_timeout=max(1, min(self.timeout, 10)),
                read_timeout=self.timeout,
                write_timeout=self.timeout,
            )
        except RuntimeError as error:  # pymysql reports a missing package
            raise StoreRefused(
                f"The login to MySQL failed: {error}",
                why="without TLS, caching_sha2_password encrypts the password by RSA",
                todo="set option tlsMode=verify, or install the wheel of sparkonce with extra"
                " [mysql] (docs/deploy.md)",
            ) from None
        live = LiveConnection(connection)
        try:
            if self.first:
                _send_first(live, self.first)
            _greet(live, self.database, self.timeout)
        except BaseException:
            live.drop()
            raise
        return live


def tls_context(options: Mapping[str, Any], address: Address) -> ssl.SSLContext | None:
    """The TLS context of a connection; None for a connection without TLS.

    By default TLS is on and verified, unless the server is on this host.

    Raises:
        OptionError: options contradict each other, or a file does not exist.
    """
    given = connections.tls_files(options)
    mode = options["tlsMode"] or ("off" if address.local and not given else "verify")
    if mode == "off":
        if given:
            raise OptionError(
                f"Options tlsMode=off and {next(iter(given))} contradict each other",
                why="without TLS the client checks no certificate",
                todo="omit one of them",
            )
        return None
    connections.require_files(given)
    return connections.tls_context(given, verify=mode == "verify")


def _send_first(live: LiveConnection, statement: str) -> None:
    """Send the statement of a user, before the settings on which the connector relies."""
    try:
        live.run(statement)
    except pymysql.MySQLError as error:
        if failure_of(error).kind is FailureKind.LOST:
            raise
        raise StoreRefused(
            f"Option {FIRST} failed: {message(error)}",
            why="the server runs this statement at the start of each session",
            todo="correct the statement; it must be a single one",
        ) from None


def _greet(live: LiveConnection, database: str, timeout: float) -> None:
    """Query the properties of the server, and apply the settings of a session."""
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
    # `init_connect`, or the statement of a user, may have begun a transaction, or changed the
    # database.
    connection: Any = live.connection  # the stubs lack the status of the server
    if connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS:
        live.run("ROLLBACK")
    if database and (home or "").lower() != database.lower():
        connection.select_db(database)
