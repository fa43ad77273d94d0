"""Followed servers: replicas after a failover, tags and domains of GTIDs, rights, TLS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from integration.support.mysql_following import GTIDS, LOGGED, between, feed, purge, told
from integration.support.servers.mysql import MySqlProcess, connect
from integration.support.servers.process import wait_until

from sparkonce.errors import StoreRefused, StoreUnreachable

Private = Callable[..., MySqlProcess]
REPLICAS = {
    "mysql": "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port},"
    " SOURCE_USER='root', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA",
    "mariadb": "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='root',"
    " MASTER_USE_GTID=slave_pos; START SLAVE",
}


@pytest.fixture
def followed(private_mysql: Private, mysql_name: str) -> MySqlProcess:
    return private_mysql(*LOGGED, *GTIDS[mysql_name])


def run(server: MySqlProcess, *statements: str) -> list[tuple[Any, ...]]:
    """The rows of the last one."""
    with closing(connect(server.url)) as client, client.cursor() as cursor:
        for one in statements:
            cursor.execute(one)
        return list(cursor.fetchall())


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
    assert told(other, begin, first, "id") == [("c", 1)]
    with pytest.raises(StoreUnreachable, match="has never had transactions") as behind:
        other.between(first, second)
    assert between(made, first, second) in str(behind.value)
    run(replica, stop.replace("STOP", "START"))
    wait_until(lambda: _has(replica, 2), 30, "the replica does not go on")
    followed.kill()
    run(replica, stop)
    run(replica, "INSERT INTO t VALUES (3)")
    assert told(other, begin, other.latest(), "id") == [("c", 1), ("c", 2), ("c", 3)]
    assert told(other, first, second, "id") == [("c", 2)]


def _has(server: MySqlProcess, number: int) -> bool:
    try:
        return bool(run(server, f"SELECT 1 FROM t WHERE id = {number}"))
    except Exception:
        return False


def test_transactions_with_tags_and_of_several_domains_come_once(
    followed: MySqlProcess, mysql_name: str
) -> None:
    """A tag is a source of numbers of its own, and so is a domain."""
    setting = {
        "mysql": "SET gtid_next = 'AUTOMATIC{}'",
        "mariadb": "SET gtid_domain_id = {}",
    }[mysql_name]
    kinds = ("", ":orders", ":refunds") if mysql_name == "mysql" else ("0", "5", "7")
    create(followed)
    made = feed(followed.url, "t")
    at, expected = made.begin(), list[Any]()
    positions = [at]
    with closing(connect(followed.url)) as client, client.cursor() as cursor:
        for number in range(12):
            cursor.execute(setting.format(kinds[number % 3]))
            cursor.execute(f"INSERT INTO t VALUES ({number})")
            expected.append(("c", number))
            positions.append(made.latest())
    assert told(made, at, positions[-1], "id") == expected
    for after, end in pairwise(positions):
        assert told(made, after, end, "id") == [expected.pop(0)]
    begin, sizes = at, []
    while begin != positions[-1]:
        end = made.advance(begin, positions[-1], 5)
        sizes.append(len(told(made, begin, end, "id")))
        begin = end
    assert sizes == [5, 5, 2]
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
    with closing(connect(followed.url)) as client, client.cursor() as cursor:
        for number in range(8):
            before = made.latest()
            cursor.execute(setting[mysql_name].format(kinds[number % 2]))
            cursor.execute(f"INSERT INTO t VALUES ({number})")
            if number in (1, 3, 5):  # the second source is ahead by three
                one = made._gtids(before["gtids"]).lacks(made.latest()["gtids"])
                read = {"gtids": made._gtids(read["gtids"]).joined(one)}
    goal, found = made.latest(), list[Any]()
    assert read != begin
    while read != goal:
        end = made.advance(read, goal, 1)
        found += told(made, read, end, "id")
        read = end
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
        return told(made, begin, made.latest(), "id")[-1:]

    assert read(**_user(followed, "able", rights)) == [("c", 1)]
    for at, missing in enumerate(rights):
        login = _user(followed, f"unable{at}", [one for one in rights if one != missing])
        with pytest.raises(StoreRefused, match=r"denied|There is no table"):
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
    found = told(made, begin, made.latest(), "id")
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
    with pytest.raises(StoreRefused, match="leaves out databases: other"):
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
    assert told(made, begin, middle, "id") == [("c", 1)]
    assert made.advance(middle, end, None) == end
    assert told(made, middle, end, "id") == [("c", 2)]
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
    assert sorted(told(tolerant, at, end, "id")) == expected
    assert tolerant.advance(end, tolerant.latest(), None) == end
    with pytest.raises(StoreRefused, match=r"before transactions 0-7-60 can't be told"):
        tolerant.between({"gtids": "0-7-60"}, end)


def test_a_domain_that_was_deleted_is_none_any_more(
    followed: MySqlProcess, mysql_name: str
) -> None:
    if mysql_name == "mysql":
        pytest.skip("it has no domains")
    create(followed)
    run(followed, "SET gtid_domain_id = 7", "INSERT INTO t VALUES (1)")
    with closing(connect(followed.url)) as client, client.cursor() as cursor:
        cursor.execute("FLUSH BINARY LOGS")
        cursor.execute("FLUSH BINARY LOGS")
        purge(cursor)
        cursor.execute("FLUSH BINARY LOGS DELETE_DOMAIN_ID = (7)")
    made = feed(followed.url, "t")
    begin = made.begin()
    run(followed, "INSERT INTO t VALUES (2)")
    assert told(made, begin, made.latest(), "id") == [("c", 2)]
