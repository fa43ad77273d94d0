"""MySQL and MariaDB as targets of a chaos run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from integration.support.servers.mysql import MySqlProcess, connect, private_binary, version_at
from tools.chaos.target import COUNTERS, ROWS, Counts, Target, Witness, has

if TYPE_CHECKING:
    from pathlib import Path


DURABLE = ("--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1", "--local-infile=1")
LOG, LEDGER = b"`sparkonce_log`", b"`sparkonce_ledger`"
TABLES = {
    # No key, so a row that is written twice becomes two rows.
    ROWS: "part INT NOT NULL, place BIGINT NOT NULL, amount BIGINT NOT NULL, draw CHAR(36)",
    COUNTERS: "side VARCHAR(5), bucket INT, n BIGINT NOT NULL, amount BIGINT NOT NULL,"
    " PRIMARY KEY (side, bucket)",
}
SUMS = "SELECT SUM(IF(side = 'left', n, 0)), SUM(IF(side = 'right', n, 0)) FROM chaos_counters"


def _applies(request: bytes) -> bool:
    """Whether the request writes rows; a check of rights does not count."""
    return b" INTO" in request and b".`chaos_" in request and b"WHERE 1 = 0" not in request


POINTS = {
    "stage": has(b"INSERT INTO", LOG),
    "lock": has(b"FOR UPDATE", LEDGER),
    "apply": _applies,
    "drop": has(b"DELETE FROM", LOG),
    "decide": has(b"UPDATE", LEDGER, b" SET applied"),
    "commit": lambda request: request[4:].upper().startswith(b"\x03COMMIT"),
}


class MySqlTarget(Target):
    name = format = "mysql"
    tables: Mapping[str, str] = TABLES
    points = POINTS
    in_driver = ("lock", "apply", "drop", "decide", "commit")
    columns = ("part", "place", "amount", "cast(draw as string) as draw")

    def __init__(self, disk: Path | None) -> None:
        super().__init__(MySqlProcess(private_binary(self.name), *DURABLE), disk)

    @property
    def version(self) -> str:
        return version_at(self.url)

    def prepare(self) -> None:
        with connect(self.url) as client, client.cursor() as cursor:
            for name, columns in self.tables.items():
                cursor.execute(f"CREATE TABLE chaos_{name} ({columns})")

    def options(self, query: str) -> dict[str, str]:
        how = {
            ROWS: {"writeMode": "append"},
            COUNTERS: {"writeMode": "increment", "key": "side,bucket"},
        }
        return {"dbtable": f"chaos_{query}", **how[query]}

    def rows(self) -> Iterator[Witness]:
        """One witness for each stored row; two if a row was written twice."""
        from pymysql.cursors import SSCursor

        with connect(self.url) as client, client.cursor(SSCursor) as cursor:
            cursor.execute("SELECT part, place, amount FROM chaos_rows")
            for partition, offset, amount in cursor:
                yield Witness(partition, offset, 1, amount)

    def counters(self) -> Counts:
        with connect(self.url) as client, client.cursor() as cursor:
            cursor.execute("SELECT side, bucket, n, amount FROM chaos_counters")
            return {(side, bucket): (n, amount) for side, bucket, n, amount in cursor.fetchall()}

    def watch(self) -> Callable[[], tuple[int, int]]:
        client = connect(self.url, read_timeout=5)
        with client.cursor() as cursor:
            cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")

        def sides() -> tuple[int, int]:
            with client.cursor() as cursor:
                cursor.execute(SUMS)
                left, right = cursor.fetchone()
                return int(left or 0), int(right or 0)

        return sides

    def residue(self) -> list[str]:
        with connect(self.url) as client, client.cursor() as cursor:
            cursor.execute("SELECT sink, attempt FROM sparkonce_log")
            staged = [f"{sink}: {attempt}" for sink, attempt in cursor.fetchall()]
            cursor.execute(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()"
                " AND table_name NOT LIKE 'chaos%'"
                " AND table_name NOT IN ('sparkonce_log', 'sparkonce_ledger')"
            )
            return staged + [name for (name,) in cursor.fetchall()]


class MariaDbTarget(MySqlTarget):
    """The same connector with a MariaDB server."""

    name = "mariadb"
