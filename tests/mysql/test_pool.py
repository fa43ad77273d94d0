"""A pool of connections is forgotten once nobody has used it, with the secrets of its key."""

from __future__ import annotations

import time

import pytest

from pyspark_mysql.connector import MySqlConnector
from sparkonce import connections, options
from sparkonce.errors import StoreUnreachable


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
