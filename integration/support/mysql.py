"""Shared by tests of MySQL and MariaDB: a table with its queries, reads and changes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pyarrow as pa
from integration.support.epochs import COUNTER, MySqlQuery, Named
from integration.support.proxy import Proxy
from integration.support.servers.mysql import MySqlProcess, connect, private_binary
from integration.support.servers.process import wait_until
from pymysql.cursors import Cursor

from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce import options
from sparkonce.reading import Position, Scan

Private = Callable[..., MySqlProcess]
"""Starts a private server of the test, with these settings."""

Rows = tuple[tuple[Any, ...], ...]
LOGGED = ("--log-bin=b", "--server-id=1", "--binlog-format=ROW")
GTIDS = {"mysql": ("--gtid-mode=ON", "--enforce-gtid-consistency=ON"), "mariadb": ()}
"""By the name of a server, the options that let streams follow it."""


@contextmanager
def client(url: str, **settings: Any) -> Iterator[Cursor]:
    """A plain client of a server inside the block."""
    with closing(connect(url, **settings)) as connection, connection.cursor() as cursor:
        yield cursor


def run(server: MySqlProcess | str, *statements: str) -> Rows:
    """Send statements over a new connection; return the rows of the last one."""
    with client(server if isinstance(server, str) else server.url) as cursor:
        for one in statements:
            cursor.execute(one)
        return tuple(cursor.fetchall())


QUOTED = "CONCAT('`', REPLACE({0}, '`', '``'), '`')"
OF_TABLE = QUOTED.format("table_name") + ", table_name FROM information_schema.tables"
MADE = {
    "VIEW": f"{OF_TABLE} WHERE table_schema = DATABASE() AND table_type = 'VIEW'",
    "TABLE": f"{OF_TABLE} WHERE table_schema = DATABASE()",
    "DATABASE": QUOTED.format("schema_name") + ", schema_name FROM information_schema.schemata",
    "USER": "CONCAT('`', user, '`@`', host, '`'), user FROM mysql.user",
}
"""The objects that a test may create: the name in a statement, and the name."""


def clear(cursor: Cursor, home: str, begin: str) -> None:
    """Drop all tables and views of a database, databases, and users with this prefix."""
    cursor.execute(f"USE {home}")
    cursor.execute("SET SESSION foreign_key_checks = 0")
    for kind, known in MADE.items():
        cursor.execute(f"SELECT {known}")
        for quoted, name in cursor.fetchall():
            if name.startswith(begin):
                cursor.execute(f"DROP {kind} {quoted}")


class Table(Named):
    """The name of a test's private table, and the operations of tests on it."""

    def run(self, *statements: str | bytes, values: Any = None) -> Rows:
        """Send statements over the connection of the test; return the rows of the last one."""
        for one in statements:
            self.client.execute(one, values)
        return tuple(self.client.fetchall())

    def create(self, definition: str, more: str = "") -> None:
        self.run(f"CREATE TABLE {self} ({definition}) {more}")

    def rows(self, columns: str = "*", order: str = "") -> Rows:
        return self.run(f"SELECT {columns} FROM {self}{order and f' ORDER BY {order}'}")

    def stored(self, columns: str = "*") -> list[tuple[Any, ...]]:
        """Its rows, in the order of the first column."""
        return list(self.rows(columns, "1"))

    def count(self, suffix: str = "") -> int:
        """The number of rows of the table, or of a table named after it."""
        return int(self.run(f"SELECT COUNT(*) FROM {self}{suffix}")[0][0])

    def query(self, schema: pa.Schema, **options: str) -> MySqlQuery:
        return MySqlQuery(schema, **{"url": self.url, "dbtable": self, **options})

    def checked(self, schema: pa.Schema, **options: str) -> MySqlQuery:
        """A query that has checked its target."""
        query = self.query(schema, **options)
        query.sink.check()
        return query

    def make(self, schema: pa.Schema, definition: str, **options: str) -> MySqlQuery:
        """Create the table, and a checked query into it."""
        self.create(definition)
        return self.checked(schema, **options)

    def aside(self, schema: pa.Schema, **options: str) -> MySqlQuery:
        """A checked query whose bad rows go to the table of this name with suffix `_bad`."""
        letters = {"onBadRow": "deadLetter", "deadLetter": f"{self}_bad"}
        return self.checked(schema, **{**letters, **options})

    def counting(self, **options: str) -> MySqlQuery:
        """A query that adds to a counter for each of its rows."""
        return counting(self.url, self, **options)

    def counts(self) -> Counter[int]:
        """The number of effects of each row: a multiset."""
        return Counter(dict(self.rows("id, n")))

    def source(self, schema: pa.Schema | None = None, **raw: str) -> Any:
        """A source that reads the table."""
        return source(self.url, schema, **{"dbtable": self, **raw})[1]

    def feed(self, schema: pa.Schema | None = None, **raw: str) -> MySqlFeed:
        """The changes from now on, with all columns or those of a schema."""
        return feed(self.url, self, schema, **raw)

    def follow(self, schema: pa.Schema | None = None, **raw: str) -> tuple[MySqlFeed, Position]:
        """The same, and the position where they begin."""
        made = self.feed(schema, **raw)
        return made, made.begin()


def counting(url: str, table: str, **options: str) -> MySqlQuery:
    return MySqlQuery(COUNTER, url=url, dbtable=table, key="id", writeMode="increment", **options)


def counts(server: MySqlProcess | str, table: str = "t") -> Counter[int]:
    """The number of effects of each row: a multiset."""
    return Counter(dict(run(server, f"SELECT id, n FROM {table}")))


# -- other drivers and sessions


def twin(query: MySqlQuery, **options: str) -> MySqlQuery:
    """A second driver on the same checkpoint, with its own connections."""
    other = MySqlQuery(query.schema, **{**query.options, "maxRetries": "9", **options})
    other.query_id = query.query_id
    return other


def waits_for_a_lock(mysql: Cursor) -> int:
    """Wait until a session of this database waits for a lock; return its id."""
    waiting: list[tuple[int]] = []

    def waits() -> bool:
        time.sleep(0.15)  # the server caches its reply for a shorter time
        mysql.execute(
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id IN"
            " (SELECT trx_mysql_thread_id FROM information_schema.innodb_trx"
            " WHERE trx_state = 'LOCK WAIT')"
        )
        waiting.extend(mysql.fetchall())
        return bool(waiting)

    wait_until(waits, 10, "nothing waits for a lock")
    return waiting[0][0]


def is_query(request: bytes) -> bool:
    return request[4:5] == b"\x03"


def queries_of(proxy: Proxy, step: Callable[[], object]) -> int:
    """The number of statements that a step sends through the proxy."""
    seen = []
    proxy.cut_request(lambda request: is_query(request) and seen.append(request) is not None)
    step()
    proxy.restore()
    return len(seen)


# -- spark.read


def source(url: str, schema: pa.Schema | None, **raw: str) -> tuple[pa.Schema, Any]:
    """A source, and the schema that it infers."""
    parsed = options.parse(MySqlConnector.reads, {"url": url, **raw})
    inferred = MySqlConnector().infer(parsed)
    return inferred, MySqlConnector().source(parsed, Scan(schema or inferred))


def values(made: Any) -> pa.Table:
    batches = [batch for split in made.splits() for batch in made.read(split)]
    return pa.Table.from_batches(batches, pa.schema([(f.name, f.type) for f in made.scan.schema]))


# -- spark.readStream


def logging_server(name: str) -> MySqlProcess:
    """Start a server that streams can follow."""
    return MySqlProcess(private_binary(name), *LOGGED, *GTIDS[name])


def purge(mysql: Cursor) -> None:
    """Purge all logs except the last; a log that was just sent to a reader may stay."""

    def one_is_left() -> bool:
        mysql.execute("SHOW BINARY LOGS")
        *old, last = mysql.fetchall()
        mysql.execute(f"PURGE BINARY LOGS TO '{last[0]}'")
        return not old

    wait_until(one_is_left, 30, "the server keeps its logs")


def feed(url: str, table: str, schema: pa.Schema | None = None, **raw: str) -> MySqlFeed:
    """A table's changes from now on, with all columns or those of a schema."""
    given = {"url": url, "dbtable": table, "startingPosition": "latest", **raw}
    parsed = options.parse(MySqlConnector.follows, given)
    schema = schema or MySqlConnector().infer_feed(parsed)
    return MySqlConnector().feed(parsed, Scan(schema))


def planned(made: MySqlFeed) -> Position:
    """The end of the first epoch."""
    return made.advance(made.begin(), made.latest(), None)


def read(made: MySqlFeed, after: Position, end: Position | None = None) -> pa.Table:
    """The changes between two positions; without a second one, all available changes."""
    splits = made.between(after, end or made.latest())
    return pa.Table.from_batches([one for each in splits for one in made.read(each)], made.schema)


def rows(made: MySqlFeed, after: Position, end: Position | None = None) -> list[dict[str, Any]]:
    """The same, row by row."""
    return read(made, after, end).to_pylist()


def changes(
    made: MySqlFeed, after: Position, end: Position | None, *names: str
) -> list[tuple[Any, ...]]:
    """The same, each with the operation on the row and these of its columns."""
    return [tuple(row[name] for name in ("_op", *names)) for row in rows(made, after, end)]


def each_epoch(
    made: MySqlFeed, begin: Position, most: int | None
) -> Iterator[tuple[Position, Position]]:
    """The begin and the end of each epoch, for everything available at the beginning."""
    goal = made.latest()
    while begin != goal:
        end = made.advance(begin, goal, most)
        if end == begin:  # a table that the goal lacks was dropped
            return
        yield begin, end
        begin = end


def between(made: MySqlFeed, after: Position, end: Position) -> str:
    """The transactions between two positions."""
    return made._gtids(after["gtids"]).lacks(end["gtids"])
