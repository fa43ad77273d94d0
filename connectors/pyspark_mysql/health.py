"""What a MySQL or MariaDB server could lose although no query is refused.

The manual: https://dev.mysql.com/doc/refman/8.4/en/replication-options-binary-log.html.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark_mysql.journal.tables import OwnTables
from pyspark_mysql.server.client import Session
from pyspark_mysql.write.preflight import require_fit_server
from sparkonce.health import LOST, Finding, clock, fit, risk

NAMES = (
    *("innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "max_binlog_cache_size"),
    *("wsrep_on", "wsrep_sync_wait"),
)
EPOCH = 64 * 1024 * 1024
"""Bytes of an epoch that a server should take at least."""


def examine(session: Session, own: OwnTables) -> Iterator[Finding]:
    """Look at version, rights, durability, cluster, limits and clock."""
    require_fit_server(session)
    ((version, now),) = session.run("SELECT VERSION(), UNIX_TIMESTAMP(NOW(6))")
    yield fit(f"Server {version}")
    if own.there():
        own.require_rights()
        yield fit("The user may write ledger and log")
    listed = ", ".join(f"'{name}'" for name in NAMES)
    rows = session.run(f"SHOW GLOBAL VARIABLES WHERE variable_name IN ({listed})")
    settings = {name.lower(): str(value) for name, value in rows}
    yield from _durability(settings)
    if settings.get("wsrep_on") == "ON" and settings.get("wsrep_sync_wait") == "0":
        yield risk(
            "Galera's wsrep_sync_wait is 0",
            "a commit at a node that is behind may stop the query",
            "SET GLOBAL wsrep_sync_wait = 7, or write to one node only",
        )
    cache = int(settings.get("max_binlog_cache_size") or EPOCH)
    if settings.get("log_bin") == "ON" and cache < EPOCH:
        yield risk(
            f"max_binlog_cache_size is {cache:,} bytes",
            "a larger epoch can't be committed in one transaction",
            "raise that setting, or set option atomicity=chunk",
        )
    yield clock(float(now))


def _durability(settings: Mapping[str, str]) -> Iterator[Finding]:
    flushed = settings.get("innodb_flush_log_at_trx_commit", "1")
    synced = settings.get("log_bin") != "ON" or settings.get("sync_binlog", "1") == "1"
    if flushed == "1" and synced:
        yield fit("Each commit is on disk before it is acknowledged")
    if flushed != "1":
        yield risk(
            f"innodb_flush_log_at_trx_commit is {flushed}",
            LOST,
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1, also in its configuration",
        )
    if not synced:
        yield risk(
            f"sync_binlog is {settings['sync_binlog']}",
            "after a crash the server or its replicas may lack commits that it had acknowledged",
            "SET GLOBAL sync_binlog = 1, also in its configuration",
        )
