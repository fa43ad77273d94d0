"""A second driver beside the first, and a session that waits for the lock of another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from integration.support.epochs import MySqlQuery
from integration.support.servers.process import wait_until

if TYPE_CHECKING:
    from pymysql.cursors import Cursor


def twin(query: MySqlQuery, **options: str) -> MySqlQuery:
    """A second driver on the same checkpoint, with connections of its own."""
    other = MySqlQuery(query.schema, **{**query.options, "maxRetries": "9", **options})
    other.query_id = query.query_id
    return other


def waits_for_a_lock(mysql: Cursor) -> int:
    """Wait until a session of this database waits for a lock; its id."""
    waiting: list[tuple[int]] = []

    def waits() -> bool:
        time.sleep(0.15)  # asked more often, the server answers what it answered before
        mysql.execute(
            "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id IN"
            " (SELECT trx_mysql_thread_id FROM information_schema.innodb_trx"
            " WHERE trx_state = 'LOCK WAIT')"
        )
        waiting.extend(mysql.fetchall())
        return bool(waiting)

    wait_until(waits, 10, "nothing waits for a lock")
    return waiting[0][0]
