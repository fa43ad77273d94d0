"""Proxies that pass all on but LOAD DATA LOCAL, on whose behalf the server says it is allowed."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pymysql
import pytest

from pyspark_mysql.server.client import MySqlSession

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])
PROXYSQL = (1047, "Unsupported 'LOAD DATA LOCAL INFILE' command")


@pytest.mark.parametrize("options", [{"writeMode": "append"}, {"key": "id", "chunkRows": "200"}])
def test_rows_are_inserted_where_a_proxy_does_not_take_them(
    make: Any, stored: Any, local_infile: Any, monkeypatch: Any, options: dict[str, str]
) -> None:
    asked = []

    def refused(_: MySqlSession, sql: str, __: memoryview) -> int:
        asked.append(sql)
        raise pymysql.OperationalError(*PROXYSQL)

    monkeypatch.setattr(MySqlSession, "load", refused)
    local_infile(True)
    query = make(SCHEMA, "id BIGINT PRIMARY KEY, n BIGINT", **options)
    query.run(0, [{"id": number, "n": number} for number in range(600)])
    assert len(asked) == 1
    assert stored() == [(number, number) for number in range(600)]
