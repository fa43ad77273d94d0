"""Each alert rule fires, in a real Prometheus, over what really happens to a sink."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from integration.epochs import MySqlQuery
from integration.proxy import Proxy
from integration.servers.finder import or_skip
from integration.servers.process import wait_until
from integration.servers.prometheus import PrometheusProcess
from prometheus_client import CollectorRegistry, start_http_server
from pymysql.cursors import Cursor

from sparkonce import options
from sparkonce.errors import RowRefused
from sparkonce.exactly_once.ledger import new_token
from sparkonce.operate.admin import Admin
from sparkonce.operate.metrics import Ledgers
from sparkonce.protocol import Chunk
from sparkonce.registry import for_url

RULES = Path(__file__).parents[1] / "docs" / "monitoring" / "alerts.yml"
COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])
WAIT = 60.0
GOOD, BAD = {"id": 1, "n": 1}, {"id": 2, "n": 300}


def at_once(rules: str) -> str:
    """The same rules without their patience: seconds and minutes are waited for by nobody."""
    rules = re.sub(r"for: \d+m", "for: 0s", rules)
    return rules.replace("> 900", "> 1").replace("apply_seconds > 60", "apply_seconds > -1")


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
    connector = for_url(proxy.url)
    given = {"url": proxy.url, "timeout": "1"}
    store = connector.connect(options.parse(connector.options, given, complete=False))
    registry = CollectorRegistry()
    registry.register(Ledgers(Admin(store)))
    server, thread = start_http_server(0, "127.0.0.1", registry)
    target = f"127.0.0.1:{server.server_port}"
    with or_skip(lambda: PrometheusProcess(target, at_once(RULES.read_text()))) as started:
        yield started
    server.shutdown()
    server.server_close()
    thread.join()


def query(url: str, **options: str) -> MySqlQuery:
    given = {"dbtable": "t", "key": "id", "writeMode": "increment", "atomicity": "chunk"}
    given["checkpointLocation"] = f"/nowhere/{new_token()}"
    return MySqlQuery(COUNTER, url=url, **given, **options)


def test_each_alert_fires(url: str, proxy: Proxy, prometheus: PrometheusProcess) -> None:
    def fires(*names: str) -> None:
        wanted = {f"Sparkonce{name}" for name in names}
        wait_until(lambda: wanted <= prometheus.firing(), WAIT, f"{wanted} did not fire")
        fired.update(wanted)

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
    assert fired == set(re.findall(r"alert: (\w+)", RULES.read_text()))
