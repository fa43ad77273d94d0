"""Short transactions, which a reader decodes many at once: the steps are those of single events."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest
from integration.support.marks import slow_cases
from integration.support.mysql import Table, feed, run

from pyspark_mysql.binlog import events, packets, short
from pyspark_mysql.binlog.carrying import Carrier
from pyspark_mysql.binlog.events import LogFile, LogPlace
from pyspark_mysql.binlog.gtids import Gtid, gtids
from pyspark_mysql.binlog.names import FollowedNames
from pyspark_mysql.binlog.reader import BinlogReader, Step, TransactionEnd
from pyspark_mysql.follow import request
from sparkonce.errors import StoreRefused

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(300), n INT) ENGINE=InnoDB"
OTHER = "11111111-2222-3333-4444-555555555555"

# Most are short transactions; of the others each has another form.
STATEMENTS = (
    *("INSERT INTO {a} VALUES ({new}, '{text}', 7)",) * 12,
    *("UPDATE {a} SET v = '{text}' WHERE id < {new} ORDER BY id DESC LIMIT 1",) * 6,
    "DELETE FROM {a} LIMIT 1",
    "DELETE FROM {a} LIMIT 3",
    "INSERT INTO {a} VALUES ({new}, '{text}', 1), (-{new}, NULL, NULL)",
    "BEGIN; INSERT INTO {a} VALUES ({new}, 'x', 1); INSERT INTO {b} VALUES ({new}, 'y', 2); COMMIT",
    "BEGIN; INSERT INTO {a} VALUES ({new}, '', 1); ROLLBACK",
    "FLUSH BINARY LOGS",
    "TRUNCATE TABLE {a}",
    "ALTER TABLE {a} ADD COLUMN c{new} INT FIRST, DROP COLUMN c{new}",
    "ALTER TABLE {a} MODIFY n BIGINT",
    "ALTER TABLE {a} MODIFY n INT",
    "SET SESSION binlog_row_image=MINIMAL; UPDATE {a} SET n = {new} LIMIT 1",
    "SET SESSION binlog_format='STATEMENT'; UPDATE {a} SET n = {new}",
    "XA START 'x{new}'; INSERT INTO {a} VALUES ({new}, 'x', 1); XA END 'x{new}';"
    " XA PREPARE 'x{new}'; XA COMMIT 'x{new}'",
    "SET timestamp=1700000000.25; INSERT INTO {a} VALUES ({new}, '{text}', 1)",
)
OF_SERVERS = {
    "mysql": (
        "SET SESSION binlog_transaction_compression=ON; INSERT INTO {a} VALUES ({new}, 'z', 1)",
        f"SET gtid_next='{OTHER}:{{new}}'; INSERT INTO {{a}} VALUES ({{new}}, 'z', 1)",
    ),
    "mariadb": ("SET SESSION gtid_domain_id=3; INSERT INTO {a} VALUES ({new}, 'z', 1)",),
}


class Log:
    """What a server sends of drawn transactions, on two followed tables and another one."""

    def __init__(self, table: Table, server: str, chance: random.Random) -> None:
        self.mariadb, self.chance = server == "mariadb", chance
        names = [f"{table}_{one}" for one in "abc"]
        for one in names:
            table.run(f"CREATE TABLE {one} {COLUMNS}")
        made = feed(table.url, names[0])
        self.names = FollowedNames(tuple((made.table.name[0], one) for one in names[:2]))
        self.begin = made.latest()["gtids"]
        statements = (*STATEMENTS, *OF_SERVERS[server])
        for number in range(400):
            one, other = chance.sample(names, 2)
            drawn = chance.choice(statements)
            text = chance.choice(("", "\u00e9", "x" * chance.randrange(300)))
            sent = drawn.format(a=one, b=other, new=number + 1, text=text)
            with suppress(pymysql.MySQLError):  # a later drawn statement may lack its column
                run(table.url, *sent.split("; "))
        self.end = made.latest()["gtids"]
        with request._sending(made.session, self.begin, "") as connection:
            self.payloads = [*_payloads(connection._rfile.raw)]

    def received(self, *, decode: bool, most: int = 0) -> Iterator[packets.Received]:
        """What a reader receives of it, in parts of this many bytes at most."""
        sent = b"".join(len(one).to_bytes(3, "little") + b"\0" + one for one in self.payloads)
        raw = Raw(sent, lambda: self.chance.randrange(1, most) if most else 1 << 18)
        return packets.received(SimpleNamespace(_rfile=SimpleNamespace(raw=raw)), decode=decode)

    def reached(self, read: Sequence[Gtid]) -> str:
        """The position after these transactions."""
        found: Any = gtids(self.begin, mariadb=self.mariadb)
        for one in read:
            found.add(one)
        return str(found)

    def steps(self, of: Reading, *, decode: bool, most: int = 0) -> tuple[list[Step], object]:
        """The steps of a reader, and what it knows at the end."""
        wanted = gtids(of.after, mariadb=self.mariadb).up_to(of.upto)
        carrier = Carrier(self.names, self.mariadb, alterations=of.carries, truncations=of.carries)
        reader = BinlogReader(
            self.names,
            wanted,
            of.skipped,
            mariadb=self.mariadb,
            behind=of.behind,
            carrier=carrier,
        )
        found = [*reader.steps(self.received(decode=decode, most=most))]
        return found, (reader.place, wanted.reached(), wanted.missing())


@dataclass(frozen=True)
class Reading:
    """How a reader reads the log."""

    after: str
    upto: str
    skipped: tuple[str, ...] = ()
    carries: bool = False
    behind: LogPlace | None = None


class Raw:
    """Bytes that arrive in parts."""

    def __init__(self, data: bytes, size: Callable[[], int]) -> None:
        self.data, self.at, self.size = data, 0, size

    def read(self, size: int) -> bytes:
        found = self.data[self.at : self.at + min(size, self.size())]
        self.at += len(found)
        return found


def _payloads(raw: Any) -> Iterator[bytes]:
    for block, bounds in packets._blocks(raw):
        for at, following in pairwise(bounds):
            yield block[at : following - 4]
            if block[at] == 0xFE:
                return


@pytest.fixture(params=[1, *slow_cases(*range(2, 8))])
def log(
    request: pytest.FixtureRequest,
    table: Table,
    mysql_name: str,
    set_global: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> Log:
    set_global("binlog_row_metadata", "FULL")
    monkeypatch.setattr(short, "FEWEST", 5)
    return Log(table, mysql_name, random.Random(request.param))


def test_steps_of_short_transactions_are_those_of_their_events(log: Log) -> None:
    runs = [one for one in log.received(decode=True, most=9000) if isinstance(one, short.ShortRun)]
    assert sum(len([*one]) for one in runs) > 60
    steps, _ = log.steps(Reading(log.begin, log.end), decode=False)
    read = [one.gtid for one in steps if isinstance(one, TransactionEnd)]
    assert len(read) > 250
    for _ in range(12):
        first, last = sorted(log.chance.sample(range(1, len(read)), 2))
        after, upto = (
            log.chance.choice((log.reached(read[:at]), whole))
            for at, whole in ((first, log.begin), (last, log.end))
        )
        skipped = tuple(map(str, log.chance.sample(read, log.chance.choice((0, 0, 40)))))
        place = LogPlace(LogFile(), 4, str(read[log.chance.choice((0, first))]))
        carries = log.chance.random() < 0.5
        one = Reading(after, upto, skipped, carries, log.chance.choice((None, place)))
        most = log.chance.choice((0, 9, 3000, 3000, 9000, 20_000))
        assert log.steps(one, decode=True, most=most) == log.steps(one, decode=False)


def test_a_damaged_event_of_a_short_transaction_is_reported(log: Log) -> None:
    for _ in range(20):
        at = log.chance.randrange(10, len(log.payloads) - 1)
        whole = log.payloads[at]
        if whole[5] in (*events.OUTSIDE, events.FORMAT):
            continue
        # Not its kind: some kinds need no checksum.
        place = log.chance.choice([*range(1, 5), *range(6, len(whole))])
        log.payloads[at] = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        with pytest.raises(StoreRefused, match="does not match its checksum"):
            deque(log.received(decode=True, most=9000), maxlen=0)
        log.payloads[at] = whole
