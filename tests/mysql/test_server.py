"""Servers of MySQL and MariaDB: errors, releases, settings and pools of connections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pymysql
import pytest
from pymysql import err
from pymysql.constants import CR, ER

from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.health import examine
from pyspark_mysql.server.failures import FAILURES, OF_CLIENT, failure_of, translate, translated
from pyspark_mysql.server.settings import supported
from sparkonce import connections, options
from sparkonce.errors import FailureKind, StoreError, StoreRefused, StoreUnreachable
from sparkonce.health import Level

NAMED = {value for names in (ER, CR) for value in vars(names).values() if isinstance(value, int)}

NEWER = {
    1471: "ER_NON_INSERTABLE_TABLE",
    1526: "ER_NO_PARTITION_FOR_GIVEN_VALUE",
    1637: "ER_TOO_MANY_CONCURRENT_TRXS",
    1644: "ER_SIGNAL_EXCEPTION",
    1665: "ER_BINLOG_STMT_MODE_AND_ROW_ENGINE",
    1690: "ER_DATA_OUT_OF_RANGE",
    1698: "ER_ACCESS_DENIED_NO_PASSWORD_ERROR",
    1748: "ER_ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET",
    1820: "ER_MUST_CHANGE_PASSWORD",
    1862: "ER_MUST_CHANGE_PASSWORD_LOGIN",
    1761: "ER_FOREIGN_DUPLICATE_KEY_WITH_CHILD_INFO",
    1762: "ER_FOREIGN_DUPLICATE_KEY_WITHOUT_CHILD_INFO",
    1792: "ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION",
    1836: "ER_READ_ONLY_MODE",
    1906: "ER_GENERATED_COLUMN_NON_DEFAULT (MariaDB)",
    1927: "ER_CONNECTION_KILLED (MariaDB)",
    3032: "ER_SERVER_OFFLINE_MODE",
    3100: "ER_RUN_HOOK_ERROR",
    3101: "ER_TRANSACTION_ROLLBACK_DURING_COMMIT",
    3105: "ER_NON_DEFAULT_VALUE_FOR_GENERATED_COLUMN",
    3118: "ER_ACCOUNT_HAS_BEEN_LOCKED",
    3140: "ER_INVALID_JSON_TEXT",
    3141: "ER_INVALID_JSON_TEXT_IN_PARAM",
    3156: "ER_INVALID_JSON_VALUE_FOR_CAST",
    3157: "ER_JSON_DOCUMENT_TOO_DEEP",
    3159: "ER_SECURE_TRANSPORT_REQUIRED",
    3751: "ER_DATA_TRUNCATED_FUNCTIONAL_INDEX",
    3819: "ER_CHECK_CONSTRAINT_VIOLATED",
    3854: "ER_CANNOT_CONVERT_STRING",
    3903: "ER_INVALID_JSON_VALUE_FOR_FUNC_INDEX",
    3907: "ER_JSON_VALUE_OUT_OF_RANGE_FOR_FUNC_INDEX",
    4031: "ER_CLIENT_INTERACTION_TIMEOUT",
    9001: "of ProxySQL, which reaches no server",
    4151: "ER_ACCOUNT_HAS_BEEN_LOCKED (MariaDB)",
}
"""Numbers that pymysql, or an older release of it, has no name for."""

NO_ROW = {1171: "of CREATE TABLE", 1215: "of CREATE TABLE", 1230: "of SET"}


def test_numbers_are_those_of_the_servers() -> None:
    assert set(FAILURES) - NAMED <= set(NEWER) <= set(FAILURES)


def test_each_error_of_data_or_integrity_is_one_of_a_row() -> None:
    of_rows = {
        code
        for code, kind in err.error_map.items()
        if issubclass(kind, (err.DataError, err.IntegrityError))
    }
    assert {
        code for code in of_rows if failure_of(err.Error(code, "")).kind is not FailureKind.ROW
    } == set(NO_ROW)


@pytest.mark.parametrize(
    ("state", "of_row"),
    [("45000", True), ("22003", True), ("23000", True), ("HY000", False), (None, False)],
)
@pytest.mark.parametrize("code", [1999, 2999, 6999, 9999, 30001])
def test_unknown_number_is_a_row_only_if_its_state_says_so(
    code: int, state: str | None, of_row: bool
) -> None:
    assert (
        failure_of(err.OperationalError(code, "", sqlstate=state)).kind is FailureKind.ROW
    ) == of_row


@pytest.mark.parametrize("code", sorted(v for v in vars(CR).values() if isinstance(v, int)))
def test_error_of_the_client_is_never_taken_for_an_answer(code: int) -> None:
    refused = failure_of(err.OperationalError(code, "")).kind is FailureKind.REFUSED
    assert refused == (code == CR.CR_AUTH_PLUGIN_CANNOT_LOAD)


@pytest.mark.parametrize(
    "error", [err.InterfaceError(0, ""), err.OperationalError(), err.Error("x")]
)
def test_error_without_a_number_is_a_lost_connection(error: pymysql.MySQLError) -> None:
    assert failure_of(error) is OF_CLIENT


@pytest.mark.parametrize("code", [*FAILURES, 9999])
def test_error_says_what_why_and_what_to_do(code: int) -> None:
    error = translate(err.OperationalError(code, "words of the server"), "doing this")
    passing = failure_of(err.Error(code, "")).kind in (FailureKind.LOST, FailureKind.PASSING)
    assert isinstance(error, StoreUnreachable if passing else StoreRefused)
    assert f"while doing this: {code} words of the server" in error.what
    assert error.why
    assert error.todo


@pytest.mark.parametrize("kind", err.Error.__subclasses__() + err.DatabaseError.__subclasses__())
def test_each_class_of_errors_is_translated(kind: type[pymysql.MySQLError]) -> None:
    with pytest.raises(StoreError), translated("doing this"):
        raise kind(1234, "words")


@pytest.mark.parametrize(
    "code", sorted(code for code in FAILURES if FAILURES[code].kind is FailureKind.ROW)
)
def test_a_statement_that_holds_no_row_is_not_refused_for_one(code: int) -> None:
    """As 1118 by CREATE TABLE, 1267 by a look for a table, 1425 by a temporary table."""
    refused = translate(err.OperationalError(code, "text"), "making a table")
    assert isinstance(refused, StoreRefused)
    assert "row" not in str(refused)
    assert refused.why != FAILURES[code].why


# -- servers that are too old, or only speak the protocol, are refused by name


FIT = {
    one: one.removeprefix("5.5.5-")
    for one in (
        *("8.0.19", "8.0.36-28.1", "8.0.28", "8.0.mysql_aurora.3.05.2", "8.4.0-google", "9.7.4-2"),
        *("10.6.0-MariaDB", "10.11.19-MariaDB-0+deb12u1", "11.4.5-MariaDB-ubu2404"),
        "5.5.5-10.6.12-MariaDB-log",
    )
}
UNFIT = {
    "5.7.44": "need MySQL 8.0.19",
    "5.7.mysql_aurora.2.11.4": "need MySQL 8.0.19",
    "8.0.18": "need MySQL 8.0.19",
    "10.5.9-MariaDB": "need MariaDB 10.6.0",
    "5.5.5-10.5.9-MariaDB": "need MariaDB 10.6.0",
    "8.0.11-TiDB-v7.5.0": "server is TiDB",
    "8.0.30-Vitess": "server is Vitess",
    "unreadable": "need MySQL 8.0.19",
}


@pytest.mark.parametrize("version", FIT)
def test_server_that_is_new_enough_is_taken(version: str) -> None:
    assert supported(version, "Source distribution") == FIT[version]


@pytest.mark.parametrize("version", UNFIT)
def test_server_that_is_too_old_or_another_product_is_refused(version: str) -> None:
    with pytest.raises(StoreRefused, match=UNFIT[version]):
        supported(version, "")


def test_server_may_name_itself_in_its_comment() -> None:
    with pytest.raises(StoreRefused, match="server is TiDB"):
        supported("8.0.40", "TiDB Server (Apache License 2.0) Community Edition")


# -- what `sparkonce doctor` says of the settings of a MySQL or MariaDB server


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
    assert risks({}, ahead=-60) == ["The clock of the server differs from this host's by -60 s"]


# -- a pool of connections is forgotten once nobody has used it, with the secrets of its key


def test_a_pool_that_never_connected_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_processes", {})
    monkeypatch.setattr(connections, "IDLE", 0.1)
    connector = MySqlConnector()
    given = {"url": "mysql://u@127.0.0.1:1/db", "password": "secret", "tlsMode": "off"}
    store = connector.connect(options.parse(connector.options, given, complete=False))
    with pytest.raises(StoreUnreachable):
        store.read("x")
    ends = time.monotonic() + 5
    while connections._here().made and time.monotonic() < ends:
        time.sleep(0.05)
    assert not connections._here().made
