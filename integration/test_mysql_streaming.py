"""`format("mysql")` under the streaming half of the kit, on MySQL and on MariaDB."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from demo.java import java_home
from integration.servers.mysql import connect
from pymysql.cursors import Cursor

from sparkonce.tck.streaming import StreamingContract, StreamingSink


def counters(url: str, table: str) -> Counter[str]:
    """How often each id was added."""
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute(f"SELECT id, n FROM {table}")
        return Counter({name: int(times) for name, times in cursor.fetchall()})


@pytest.mark.long
class TestMySqlStreaming(StreamingContract):
    @pytest.fixture
    def sink(self, mysql: Cursor, mysql_url: str, table: str, tmp_path: Path) -> Any:
        mysql.execute(f"CREATE TABLE {table} (id VARCHAR(100) PRIMARY KEY, n BIGINT)")
        options = {"url": mysql_url, "dbtable": table, "key": "id", "writeMode": "increment"}
        return StreamingSink(
            read=lambda: counters(mysql_url, table),
            format="mysql",
            options=options,
            env={"JAVA_HOME": str(java_home(tmp_path))},
        )
