"""A URL's scheme has no case; everything else of it has."""

from __future__ import annotations

import pytest

from sparkonce.store import for_url
from sparkonce.urls import redact_url, spelled


@pytest.mark.parametrize(
    ("url", "spelling"),
    [
        ("JDBC:MySQL://U:P@H/Db", "jdbc:mysql://U:P@H/Db"),
        ("Redis+Sentinel://H/Name", "redis+sentinel://H/Name"),
        ("HTTPS://A:9200,HTTPS://B:9200", "https://A:9200,https://B:9200"),
        ("no URL, Nothing", "no URL, Nothing"),
    ],
)
def test_a_scheme_is_read_in_any_case(url: str, spelling: str) -> None:
    assert spelled(url) == spelling


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("JDBC:MYSQL://h/d", "mysql"),
        ("Rediss://h", "redis"),
        ("REDIS+CLUSTER://h", "redis"),
        ("HTTPS://h:9200", "elasticsearch"),
    ],
)
def test_each_connector_takes_its_schemes_in_any_case(url: str, name: str) -> None:
    from sparkonce import options

    connector = for_url(url)
    assert connector.name == name
    parsed = options.parse(connector.options, {"url": url}, complete=False)
    assert parsed["url"] == spelled(url)


def test_no_password_is_shown_behind_a_scheme_in_capitals() -> None:
    shown = redact_url("HTTPS://u:secret@a:9200,HTTPS://u:secret@b:9200")
    assert shown == "https://u:***@a:9200,https://u:***@b:9200"
