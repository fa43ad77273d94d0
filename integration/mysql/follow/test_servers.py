"""Followed servers: replicas after a failover, tags and domains of GTIDs, rights, TLS."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from integration.support.mysql import (
    GTIDS,
    LOGGED,
    Private,
    between,
    changes,
    client,
    each_epoch,
    feed,
    purge,
    run,
)
from integration.support.servers.mysql import MySqlProcess
from integration.support.servers.process import wait_until

from pyspark_mysql.follow.feed import MySqlFeed
from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable

REPLICAS = {
    "mysql": "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port},"
    " SOURCE_USER='root', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA",
    "mariadb": "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='root',"
    " MASTER_USE_GTID=slave_pos; START SLAVE",
}


@pytest.fixture
def followed(private_mysql: Private, mysql_name: str) -> MySqlProcess:
    return private_mysql(*LOGGED, *GTIDS[mysql_name])


def create(server: MySqlProcess) -> None:
    run(server, "CREATE TABLE t (id INT PRIMARY KEY)")


def test_a_replica_is_followed_where_the_primary_was_left(
    private_mysql: Private, followed: MySqlProcess, mysql_name: str
) -> None:
    create(followed)
    more = "--log-slave-updates" if mysql_name == "mariadb" else "--log-replica-updates"
    ours = [one for one in LOGGED if "server-id" not in one]
    replica = private_mysql(*ours, *GTIDS[mysql_name], "--server-id=2", more)
    run(replica, *REPLICAS[mysql_name].format(port=followed.port).split("; "))
    made, other = feed(followed.url, "t"), feed(followed.url, "t")
    begin = made.begin()
    run(followed, "INSERT INTO t VALUES (1)")
    first = made.latest()
    wait_until(lambda: _has(replica, 1), 30, "the replica gets nothing")
    stop = "STOP SLAVE" if mysql_name == "mariadb" else "STOP REPLICA"
    run(replica, stop)
    run(followed, "INSERT INTO t VALUES (2)")
    second = made.latest()
    other = feed(replica.url, "t", made.schema)
    assert changes(other, begin, first, "id") == [("c", 1)]
    with pytest.raises(StoreUnreachable, match="has never had transactions") as behind:
        other.between(first, second)
    assert between(made, first, second) in str(behind.value)
    run(replica, stop.replace("STOP", "START"))
    wait_until(lambda: _has(replica, 2), 30, "the replica does not go on")
    followed.kill()
    run(replica, stop)
    run(replica, "INSERT INTO t VALUES (3)")
    assert changes(other, begin, None, "id") == [("c", 1), ("c", 2), ("c", 3)]
    assert changes(other, first, second, "id") == [("c", 2)]


def _has(server: MySqlProcess, number: int) -> bool:
    try:
        return bool(run(server, f"SELECT 1 FROM t WHERE id = {number}"))
    except Exception:
        return False


def test_transactions_with_tags_and_of_several_domains_come_once(
    followed: MySqlProcess, mysql_name: str
) -> None:
    """A tag is a source of numbers of its own, and so is a domain."""
    setting = {"mysql": "SET gtid_next = 'AUTOMATIC{}'", "mariadb": "SET gtid_domain_id = {}"}[
        mysql_name
    ]
    kinds = ("", ":orders", ":refunds") if mysql_name == "mysql" else ("0", "5", "7")
    create(followed)
    made = feed(followed.url, "t")
    at, expected = made.begin(), list[Any]()
    positions = [at]
    with client(followed.url) as cursor:
        for number in range(12):
            cursor.execute(setting.format(kinds[number % 3]))
            cursor.execute(f"INSERT INTO t VALUES ({number})")
            expected.append(("c", number))
            positions.append(made.latest())
    assert changes(made, at, positions[-1], "id") == expected
    for after, end in pairwise(positions):
        assert changes(made, after, end, "id") == [expected.pop(0)]
    epochs = each_epoch(made, at, 5)
    assert [len(changes(made, *epoch, "id")) for epoch in epochs] == [5, 5, 2]
    assert made.behind(at, positions[-1]) == 12


def test_what_was_read_of_one_source_before_others_is_not_told_again(
    followed: MySqlProcess, mysql_name: str
) -> None:
    """Though it lies behind the place in the log where the stream is."""
    setting = {"mysql": "SET gtid_next = 'AUTOMATIC{}'", "mariadb": "SET gtid_domain_id = {}"}
    kinds = (":orders", ":refunds") if mysql_name == "mysql" else ("0", "5")
    create(followed)
    made = feed(followed.url, "t")
    begin, read = made.begin(), made.begin()
    with client(followed.url) as cursor:
        for number in range(8):
            before = made.latest()
            cursor.execute(setting[mysql_name].format(kinds[number % 2]))
            cursor.execute(f"INSERT INTO t VALUES ({number})")
            if number in (1, 3, 5):  # the second source is ahead by three
                one = made._gtids(before["gtids"]).lacks(made.latest()["gtids"])
                read = {"gtids": made._gtids(read["gtids"]).joined(one)}
    assert read != begin
    found = [one for epoch in each_epoch(made, read, 1) for one in changes(made, *epoch, "id")]
    assert found == [("c", one) for one in (0, 2, 4, 6, 7)]


RIGHTS = {
    "mysql": ("SELECT ON sparkonce_test.t", "REPLICATION SLAVE ON *.*"),
    "mariadb": ("SELECT ON sparkonce_test.t", "REPLICATION SLAVE ON *.*", "BINLOG MONITOR ON *.*"),
}
"""What docs/permissions.md says that a reader of changes needs."""


def _user(server: MySqlProcess, name: str, rights: Iterable[str]) -> dict[str, str]:
    run(server, f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'secret'")
    run(server, *(f"GRANT {right} TO {name}@'127.0.0.1'" for right in rights))
    return {"user": name, "password": "secret"}


def test_these_rights_suffice_and_each_is_needed(followed: MySqlProcess, mysql_name: str) -> None:
    create(followed)
    rights, url = RIGHTS[mysql_name], followed.url.replace("root@", "")

    def read(**login: str) -> list[tuple[Any, ...]]:
        made = feed(url, "t", **login)
        begin = made.begin()
        run(followed, "DELETE FROM t", "INSERT INTO t VALUES (1)")
        return changes(made, begin, None, "id")[-1:]

    assert read(**_user(followed, "able", rights)) == [("c", 1)]
    for at, missing in enumerate(rights):
        login = _user(followed, f"unable{at}", [one for one in rights if one != missing])
        with pytest.raises(StoreRefused, match=r"denied|does not exist"):
            read(**login)


def test_the_log_comes_over_tls(followed: MySqlProcess, mysql_name: str) -> None:
    if mysql_name == "mariadb" and run(followed, "SHOW VARIABLES LIKE 'have_ssl'")[0][1] != "YES":
        pytest.skip("this server makes itself no certificate")
    create(followed)
    run(
        followed,
        "CREATE USER reader@'127.0.0.1' IDENTIFIED BY 'secret' REQUIRE SSL",
        "GRANT ALL ON *.* TO reader@'127.0.0.1'",
    )
    login = {"user": "reader", "password": "secret", "tlsMode": "unverified"}
    made = feed(followed.url.replace("root@", ""), "t", **login)
    begin = made.begin()
    values = ", ".join(f"({one})" for one in range(100_000))
    run(followed, f"INSERT INTO t VALUES {values}")
    found = changes(made, begin, None, "id")
    assert found == [("c", one) for one in range(100_000)]


def test_a_log_that_was_begun_anew_is_told(followed: MySqlProcess, mysql_name: str) -> None:
    """A server that was made anew has other transactions under the same names."""
    create(followed)
    made = feed(followed.url, "t")
    begin = made.begin()
    run(followed, "INSERT INTO t VALUES (1)")
    end = made.latest()
    is_mariadb = mysql_name == "mariadb"
    run(followed, "RESET MASTER" if is_mariadb else "RESET BINARY LOGS AND GTIDS")
    with pytest.raises(StoreUnreachable, match="has never had transactions"):
        made.between(begin, end)
    with pytest.raises(StoreUnreachable, match="has never had transactions"):
        made.advance(begin, end, None)


def test_a_replica_that_logs_not_what_it_gets_is_refused(
    private_mysql: Private, mysql_name: str
) -> None:
    off = "--log-slave-updates=0" if mysql_name == "mariadb" else "--log-replica-updates=0"
    server = private_mysql(*LOGGED, *GTIDS[mysql_name], off)
    create(server)
    if mysql_name == "mariadb":
        feed(server.url, "t").begin()
        run(server, "SET GLOBAL gtid_slave_pos = '7-9-6'")
    with pytest.raises(StoreRefused, match=r"The server's log_\w+_updates is off"):
        feed(server.url, "t").begin()


def test_a_log_that_leaves_databases_out_is_refused(
    private_mysql: Private, mysql_name: str
) -> None:
    server = private_mysql(*LOGGED, *GTIDS[mysql_name], "--binlog-ignore-db=other")
    create(server)
    with pytest.raises(StoreRefused, match="excludes databases: other"):
        feed(server.url, "t").begin()


def test_a_number_that_two_servers_gave_is_two_transactions(
    private_mysql: Private, mysql_name: str
) -> None:
    if mysql_name == "mysql":
        pytest.skip("its numbers are by server")
    server, other = private_mysql(*LOGGED), private_mysql(*LOGGED)
    create(server)
    create(other)
    made = feed(server.url, "t")
    begin = made.begin()
    run(server, "SET gtid_seq_no = 50", "INSERT INTO t VALUES (1)")
    middle = made.latest()
    run(server, "SET server_id = 2, gtid_seq_no = 50", "INSERT INTO t VALUES (2)")
    end = made.latest()
    assert changes(made, begin, middle, "id") == [("c", 1)]
    assert made.advance(middle, end, None) == end
    assert changes(made, middle, end, "id") == [("c", 2)]
    run(other, "SET server_id = 3, gtid_seq_no = 50", "INSERT INTO t VALUES (3)")
    run(other, "SET server_id = 3, gtid_seq_no = 60", "INSERT INTO t VALUES (4)")
    promoted = feed(other.url, "t")
    with pytest.raises(StoreUnreachable, match="has never had transactions 0-2-50"):
        promoted.between(end, promoted.latest())


def test_after_a_failover_that_lost_transactions_a_query_goes_on_with_the_new_ones(
    private_mysql: Private, mysql_name: str
) -> None:
    """The new primary gives the numbers of the lost ones again; each case is a domain."""
    if mysql_name == "mysql":
        pytest.skip("its numbers are by server")
    server, other = private_mysql(*LOGGED), private_mysql(*LOGGED)
    create(server)
    create(other)
    expected = []
    for domain, (lost, new) in enumerate([(1, 1), (2, 1), (1, 3), (3, 3)], 1):
        begin = [f"SET gtid_domain_id = {domain}, gtid_seq_no = 50"]
        both = [*begin, f"INSERT INTO t VALUES ({100 * domain})"]
        run(server, *both, *(f"INSERT INTO t VALUES ({100 * domain + n + 1})" for n in range(lost)))
        run(other, *both)
        added = [100 * domain + n + 50 for n in range(new)]
        run(
            other,
            "SET server_id = 2",
            *begin[:1],
            "SET gtid_seq_no = 51",
            *(f"INSERT INTO t VALUES ({n})" for n in added),
        )
        expected += [("c", n) for n in added]
    at = feed(server.url, "t").latest()
    strict, tolerant = (feed(other.url, "t", failOnDataLoss=fails) for fails in ("true", "false"))
    with pytest.raises(StoreUnreachable, match="has never had transactions"):
        strict.between(at, strict.latest())
    end = tolerant.advance(at, tolerant.latest(), None)
    assert sorted(changes(tolerant, at, end, "id")) == expected
    assert tolerant.advance(end, tolerant.latest(), None) == end
    with pytest.raises(StoreRefused, match=r"before 0-7-60 is unknown"):
        tolerant.between({"gtids": "0-7-60"}, end)


def test_a_domain_that_was_deleted_is_none_any_more(
    followed: MySqlProcess, mysql_name: str
) -> None:
    if mysql_name == "mysql":
        pytest.skip("it has no domains")
    create(followed)
    run(followed, "SET gtid_domain_id = 7", "INSERT INTO t VALUES (1)")
    with client(followed.url) as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("FLUSH BINARY LOGS")
        purge(cursor)
        cursor.execute("FLUSH BINARY LOGS DELETE_DOMAIN_ID = (7)")
    made = feed(followed.url, "t")
    begin = made.begin()
    run(followed, "INSERT INTO t VALUES (2)")
    assert changes(made, begin, None, "id") == [("c", 2)]


HEADER, GTID, XID = 19, 162, 16


def events(log: bytes) -> Iterator[bytes]:
    at = 4
    while at < len(log):
        size = int.from_bytes(log[at + 9 : at + 13], "little")
        yield log[at : at + size]
        at += size


def moved(event: bytes, end: int) -> bytes:
    """The same event at another place, of the next transaction."""
    made = bytearray(event)
    made[13:17] = end.to_bytes(4, "little")
    if made[4] == GTID:
        number = int.from_bytes(made[HEADER : HEADER + 8], "little") + 1
        made[HEADER : HEADER + 8] = number.to_bytes(8, "little")
    made[-4:] = zlib.crc32(made[:-4]).to_bytes(4, "little")
    return bytes(made)


def leave_half(data: Path, cut: int) -> None:
    """Write the last transaction of the log again, without its end, and bytes of that cut off."""
    last = sorted(data.glob("b.0*"))[-1]
    log = last.read_bytes()
    found = [*events(log)]
    begin = max(at for at, one in enumerate(found) if one[4] == GTID)
    for one in found[begin:-1]:
        assert one[4] != XID
        log += moved(one, len(log) + len(one))
    last.write_bytes(log[: len(log) - cut])


@pytest.fixture
def crashing(private_mysql: Private, mysql_name: str) -> MySqlProcess:
    if mysql_name == "mysql":
        pytest.skip("it trims its log when it starts")
    return private_mysql(*LOGGED, "--binlog-checksum=CRC32")


def crash(crashing: MySqlProcess, cut: int = 0) -> MySqlFeed:
    """A feed of the server that starts again, with a half of its last transaction once more."""
    crashing.kill()
    leave_half(crashing.data, cut)
    crashing.start()
    with suppress(StoreUnreachable):  # a connection from before
        feed(crashing.url, "t")
    return feed(crashing.url, "t")


@pytest.mark.parametrize("cut", [0, 1, 30, 60])
def test_a_transaction_without_an_end_is_not_told(crashing: MySqlProcess, cut: int) -> None:
    """Cut in mid-event, the server can't send its log on from there."""
    run(
        crashing,
        "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
        "INSERT INTO t VALUES (1, 1), (2, 1)",
    )
    made = feed(crashing.url, "t")
    begin = made.begin()
    run(crashing, "INSERT INTO t VALUES (3, 1)", "UPDATE t SET n = n + 1")
    middle = made.latest()
    made = crash(crashing, cut)
    updated = [("u", 1, 2), ("u", 2, 2), ("u", 3, 2)]
    assert changes(made, begin, middle, "id", "n") == [("c", 3, 1), *updated]
    run(crashing, "DELETE FROM t WHERE id = 2", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (9, 9)")
    end = made.latest()
    expected = [("d", 2, 2), ("c", 9, 9)]
    assert changes(feed(crashing.url, "t"), middle, end, "id", "n") == expected
    assert changes(made, begin, end, "id", "n") == [("c", 3, 1), *updated, *expected]
    epochs = each_epoch(made, middle, 1)
    assert [one for epoch in epochs for one in changes(made, *epoch, "id", "n")] == expected


def test_a_file_that_is_damaged_elsewhere_is_told(crashing: MySqlProcess) -> None:
    """The server knew of more when it began the next file."""
    run(crashing, "CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    made = feed(crashing.url, "t")
    begin = made.begin()
    run(crashing, "INSERT INTO t VALUES (1, 1)", "INSERT INTO t VALUES (2, 1)", "FLUSH BINARY LOGS")
    first = min(crashing.data.glob("b.0*"))
    first.write_bytes(first.read_bytes()[:-250])
    with pytest.raises(StoreError, match="1236"):
        changes(made, begin, None, "id")


def test_half_a_transaction_of_an_engine_without_any_is_refused(crashing: MySqlProcess) -> None:
    run(crashing, "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=MyISAM")
    begin = feed(crashing.url, "t").begin()
    run(crashing, "INSERT INTO t VALUES (1, 1)")
    made = crash(crashing)
    run(crashing, "INSERT INTO t VALUES (2, 1)")
    with pytest.raises(StoreRefused, match="has no end in the log, and changes the table"):
        changes(made, begin, None, "id")


def test_a_half_that_is_passed_over_takes_no_other_transaction_with_it(
    crashing: MySqlProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gives its GTID again, if nothing was logged meanwhile."""
    monkeypatch.setattr("integration.support.servers.mysql.INIT", "SET sql_log_bin=0;")
    run(crashing, "CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=MyISAM")
    begin = feed(crashing.url, "t").begin()
    run(crashing, "INSERT INTO t VALUES (1, 1)")
    crash(crashing)
    run(crashing, "INSERT INTO t VALUES (2, 1)")
    ((again,),) = run(crashing, "SELECT @@gtid_binlog_pos")
    skipping = feed(crashing.url, "t", skipTransactions=again)
    assert changes(skipping, begin, None, "id") == [("c", 1), ("c", 2)]
