"""A network that fails at each request in turn, and rows that count once all the same."""

from __future__ import annotations

from collections import Counter

import pytest
from integration.support.counters import COUNTER, counting, counts, ones, until_committed
from integration.support.epochs import MySqlQuery
from integration.support.marks import slow_cases
from integration.support.mysql_rivals import twin
from integration.support.mysql_statements import is_query, queries_of
from integration.support.proxy import CUTS, Proxy
from integration.support.servers.mysql import connect
from pymysql.cursors import Cursor

from sparkonce.errors import SparkonceError, StoreUnreachable


@pytest.fixture(scope="session", params=["mysql", *slow_cases("mariadb")])
def mysql_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("atomicity", ["epoch", *slow_cases("chunk")])
@pytest.mark.parametrize("fault", CUTS)
def test_rows_count_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, mysql: Cursor, counters: str, fault: str, atomicity: str
) -> None:
    query = counting(mysql_proxy.url, counters, chunkRows="4", atomicity=atomicity)
    until_committed(query, 0, range(10))
    statements = queries_of(mysql_proxy, lambda: until_committed(query, 1, range(10)))
    assert statements > 15
    for nth in range(1, statements + 1):
        cuts = mysql_proxy.cuts
        getattr(mysql_proxy, fault)(is_query, nth=nth)
        until_committed(query, nth + 1, range(10))
        assert mysql_proxy.cuts == cuts + 1, "the fault must really happen"
        assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), nth + 2))
    last = statements + 2
    assert query.run(last).totals.rows == 10 * last
    assert query.sink.store.staged(query.name) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", CUTS)
def test_folded_epochs_take_effect_once_whichever_statement_the_network_cuts(
    mysql_proxy: Proxy, mysql: Cursor, counters: str, fault: str
) -> None:
    query = MySqlQuery(
        COUNTER, url=mysql_proxy.url, dbtable=counters, key="id", sequenceColumn="n", chunkRows="4"
    )
    run = lambda epoch: query.run(epoch, [{"id": i, "n": epoch} for i in range(10)])  # noqa: E731
    run(0)
    statements = queries_of(mysql_proxy, lambda: run(1))
    for nth in range(1, statements + 1):
        cuts = mysql_proxy.cuts
        getattr(mysql_proxy, fault)(is_query, nth=nth)
        while True:
            try:
                run(nth + 1)
                break
            except SparkonceError:
                query.restart()
        assert mysql_proxy.cuts == cuts + 1
        assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), nth + 1))
    assert query.run(statements + 2).totals.rows == 10 * (statements + 2)


def test_lost_answer_to_commit_is_learned_from_the_ledger(
    mysql_proxy: Proxy, mysql: Cursor, counters: str, caplog: pytest.LogCaptureFixture
) -> None:
    query = counting(mysql_proxy.url, counters)
    query.run(0, ones(range(10)))
    mysql_proxy.cut_reply(b"COMMIT")
    receipts = query.stage(1, ones(range(10)))
    assert query.commit(1, receipts).decision.epoch == 1
    assert mysql_proxy.cuts == 1
    assert "finding out what became of the last write" in caplog.text
    assert counts(mysql, counters) == Counter(dict.fromkeys(range(10), 2))


def test_late_commit_of_a_driver_that_was_given_up_changes_nothing(
    mysql_proxy: Proxy, mysql_url: str, mysql: Cursor, counters: str
) -> None:
    """Its COMMIT is stalled on its way, and arrives after the replay."""
    zombie = counting(mysql_proxy.url, counters, timeout="1s", maxRetries="0")
    zombie.run(0, ones(range(5)))
    receipts = zombie.stage(1, ones(range(10)))
    mysql_proxy.stall(b"COMMIT")
    mysql_proxy.refuse()
    with pytest.raises(StoreUnreachable):
        zombie.commit(1, receipts)
    assert mysql_proxy.cuts == 1

    heir = twin(zombie, url=mysql_url, timeout="2s", maxRetries="8")
    heir.run(1, ones(range(10)))
    mysql_proxy.restore()
    heir.run(2, ones(range(10, 20)))
    assert counts(mysql, counters) == Counter([*range(5), *range(20)])


def test_transaction_never_goes_on_over_another_connection(
    mysql_url: str, mysql: Cursor, counters: str
) -> None:
    """Else, after a long stop, its last statements would take effect without the first."""
    session = counting(mysql_url, counters).sink.store.session
    mysql.execute("SELECT DATABASE()")
    counters = f"{mysql.fetchone()[0]}.{counters}"
    with pytest.raises(Exception, match=r"(?i)lost|closed|\(0, ''\)"), session.transaction():  # noqa: PT012
        session.run(f"INSERT INTO {counters} VALUES (1, 1)")
        session.live.used -= 3600
        with connect(mysql_url) as other:
            other.kill(session.live.connection.thread_id())
        session.run(f"INSERT INTO {counters} VALUES (2, 1)")
    assert session.run(f"SELECT * FROM {counters}") == ()


def test_unreachable_server_is_named_with_what_to_do() -> None:
    query = counting("mysql://127.0.0.1:1/d", "t")
    with pytest.raises(StoreUnreachable, match="check option url and the server"):
        query.sink.check()
