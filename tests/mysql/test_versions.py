"""Servers that are too old, or only speak the protocol, are refused by name."""

from __future__ import annotations

import pytest

from pyspark_mysql.server.settings import supported
from sparkonce.errors import StoreRefused

FIT = {
    "8.0.19": "8.0.19",
    "8.0.36-28.1": "8.0.36-28.1",
    "8.0.28": "8.0.28",
    "8.0.mysql_aurora.3.05.2": "8.0.mysql_aurora.3.05.2",
    "8.4.0-google": "8.4.0-google",
    "9.7.4-2": "9.7.4-2",
    "10.6.0-MariaDB": "10.6.0-MariaDB",
    "10.11.19-MariaDB-0+deb12u1": "10.11.19-MariaDB-0+deb12u1",
    "5.5.5-10.6.12-MariaDB-log": "10.6.12-MariaDB-log",
    "11.4.5-MariaDB-ubu2404": "11.4.5-MariaDB-ubu2404",
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
