"""What `sparkonce doctor` says of the settings of a MySQL or MariaDB server."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pytest

from pyspark_mysql.health import examine
from sparkonce.health import Level

DURABLE = {"innodb_flush_log_at_trx_commit": "1", "log_bin": "ON", "sync_binlog": "1"}


class Server:
    """It has these settings, and a clock that is so many seconds ahead."""

    def __init__(self, settings: dict[str, str], ahead: float = 0.0) -> None:
        self.settings, self.ahead = settings, ahead

    def run(self, _: str) -> Sequence[tuple[Any, ...]]:
        return [("9.7.4", time.time() + self.ahead)]

    def variables(self, *_: str) -> dict[str, str]:
        return self.settings


class NoTables:
    """Ledger and log are not there yet."""

    def there(self) -> bool:
        return False


def risks(settings: dict[str, str], ahead: float = 0.0) -> list[str]:
    found = list(examine(Server(DURABLE | settings, ahead), NoTables()))  # type: ignore[arg-type]
    return [one.what for one in found if one.level is Level.RISK]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"innodb_flush_log_at_trx_commit": "2"}, "innodb_flush_log_at_trx_commit is 2"),
        ({"sync_binlog": "0"}, "sync_binlog is 0"),
        ({"wsrep_on": "ON", "wsrep_sync_wait": "0"}, "Galera's wsrep_sync_wait is 0"),
        ({"max_binlog_cache_size": "4096"}, "max_binlog_cache_size is 4,096 bytes"),
    ],
    ids=str,
)
def test_a_setting_that_may_lose_or_stop_something_is_a_risk(
    settings: dict[str, str], said: str
) -> None:
    assert risks(settings) == [said]


def test_settings_that_do_not_matter_are_none() -> None:
    assert risks({}) == []
    assert risks({"log_bin": "OFF", "sync_binlog": "0", "max_binlog_cache_size": "4096"}) == []
    assert risks({"wsrep_on": "ON", "wsrep_sync_wait": "7"}) == []


def test_a_clock_that_is_wrong_is_a_risk() -> None:
    assert risks({}, ahead=-60) == ["Its clock differs from the one of this host by -60 s"]
