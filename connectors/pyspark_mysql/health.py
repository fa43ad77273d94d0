"""Examines a MySQL or MariaDB server for risks that no query reports as an error.

The manual: https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark_mysql.journal.tables import OwnTables
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.write.preflight import require_fit_server
from sparkonce.health import LOST, Finding, clock, fit, risk

NAMES = (
    *("innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "max_binlog_cache_size"),
    *("wsrep_on", "wsrep_sync_wait"),
)
EPOCH = 64 * 1024 * 1024
"""The size in bytes of an epoch that every server should accept."""


def examine(session: MySqlSession, own: OwnTables) -> Iterator[Finding]:
    """Check version, rights, durability, cluster, limits and clock."""
    require_fit_server(session)
    ((version, now),) = session.run("SELECT VERSION(), UNIX_TIMESTAMP(NOW(6))")
    yield fit(f"Server {version}")
    if own.there():
        own.require_rights()
        yield fit("The user may write ledger and log")
    risks = [*_risks(session.variables(*NAMES))]
    # The first two are those of durability.
    if not any(there for there, *_ in risks[:2]):
        yield fit("Each commit is on disk before it is acknowledged")
    yield from (risk(*words) for there, *words in risks if there)
    yield clock(float(now))


def _risks(settings: Mapping[str, str]) -> Iterator[tuple[bool, str, str, str]]:
    """Whether each risk exists, and its three texts."""
    flushed, logs = settings.get("innodb_flush_log_at_trx_commit", "1"), settings.get("log_bin")
    yield (
        flushed != "1",
        f"innodb_flush_log_at_trx_commit is {flushed}",
        LOST,
        "SET GLOBAL innodb_flush_log_at_trx_commit = 1, also in its configuration",
    )
    synced = settings.get("sync_binlog", "1")
    yield (
        logs == "ON" and synced != "1",
        f"sync_binlog is {synced}",
        "after a crash the server or its replicas may lack acknowledged commits",
        "SET GLOBAL sync_binlog = 1, also in its configuration",
    )
    yield (
        settings.get("wsrep_on") == "ON" and settings.get("wsrep_sync_wait") == "0",
        "Galera's wsrep_sync_wait is 0",
        "a commit at a node that lags may stop the query",
        "SET GLOBAL wsrep_sync_wait = 7, or write to one node only",
    )
    cache = int(settings.get("max_binlog_cache_size") or EPOCH)
    yield (
        logs == "ON" and cache < EPOCH,
        f"max_binlog_cache_size is {cache:,} bytes",
        "a larger epoch can't be committed in one transaction",
        "raise that setting, or set option atomicity=chunk",
    )
