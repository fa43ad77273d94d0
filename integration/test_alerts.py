"""Each alert rule fires, in a real Prometheus, over what really happens to a sink."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.proxy import Proxy
from integration.support.servers.finder import or_skip
from integration.support.servers.process import wait_until
from integration.support.servers.prometheus import NAMES, PrometheusProcess, watched
from pymysql.cursors import Cursor

from sparkonce.errors import RowRefused
from sparkonce.exactly_once.ledger import new_token
from sparkonce.protocol import Chunk

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
WAIT = 60.0
GOOD, BAD = {"id": 1, "n": 1}, {"id": 2, "n": 300}


@pytest.fixture
def url(mysql: Cursor, own_url: str, unique: str) -> str:
    mysql.execute(f"CREATE TABLE {unique}.t (id BIGINT PRIMARY KEY, n TINYINT)")
    return own_url


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(url) as proxy:
        yield proxy


@pytest.fixture
def prometheus(proxy: Proxy) -> Iterator[PrometheusProcess]:
    with ExitStack() as stack:
        yield or_skip(lambda: stack.enter_context(watched(proxy.url)))


def query(url: str, **options: str) -> MySqlQuery:
    given = {"dbtable": "t", "key": "id", "writeMode": "increment", "atomicity": "chunk"}
    given["checkpointLocation"] = f"/nowhere/{new_token()}"
    return MySqlQuery(COUNTER, url=url, **given, **options)


def test_each_alert_fires(url: str, proxy: Proxy, prometheus: PrometheusProcess) -> None:
    def fires(*names: str) -> None:
        wait_until(lambda: {*names} <= prometheus.firing(), WAIT, f"{names} did not fire")
        fired.update(names)

    fired = set[str]()
    aside = query(url, onBadRow="deadLetter", deadLetter="bad", maxBadRows="100%")
    aside.run(0, [GOOD])
    fires("EpochLate", "ApplySlow")
    aside.sink.store.stage(Chunk(aside.task(0, 0), 0, 1, b"of a task that comes late"))
    fires("Leftovers")
    aside.run(1, [BAD])
    fires("DeadLetters", "NothingStored")

    stopped = query(url)
    with pytest.raises(RowRefused):
        stopped.run(0, [BAD])
    fires("EpochUnfinished")
    proxy.refuse()
    proxy.disconnect()
    fires("StoreUnreachable")
    assert fired == NAMES
