"""The test servers of MySQL and MariaDB: they start, keep their data and end as tests rely on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pymysql
import pytest
from integration.support.servers.finder import NoServerError, Server, UnavailableError, or_skip
from integration.support.servers.mysql import (
    SERVERS,
    MySqlProcess,
    connect,
    native_mariadb,
    private_binary,
    version_at,
)
from integration.support.servers.streams import MySqlStream

EACH = [(name, how) for name, finder in SERVERS.items() for how in finder.programs]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "how"), EACH)
def test_each_binary_gives_a_server_that_answers(
    name: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"SPARKONCE_TEST_{name.upper()}", how)
    finder = replace(SERVERS[name])  # which has found nothing yet
    try:
        binary = finder.program()
    except NoServerError as absent:  # no system has all of them
        pytest.skip(str(absent))
    try:
        server = finder.find()
        assert server.how == binary.how
        assert version_at(server.url) == server.version
        assert ("MariaDB" in server.version) == (name == "mariadb")
    finally:
        finder.close()
    with pytest.raises(pymysql.MySQLError):
        version_at(server.url)


def test_a_url_that_answers_is_used(
    mysql_server: Server, mysql_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = f"SPARKONCE_TEST_{mysql_name.upper()}_URL"
    monkeypatch.setenv(setting, mysql_server.url)
    monkeypatch.delenv(f"SPARKONCE_TEST_{mysql_name.upper()}", raising=False)
    found = replace(SERVERS[mysql_name]).find()
    assert str(found) == f"{mysql_name}: {mysql_server.version} (at {setting})"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restarted_server_keeps_its_port_and_what_was_committed(
    private_mysql: Callable[..., MySqlProcess], end: str
) -> None:
    server = private_mysql()
    url = server.url
    with connect(url) as client:
        client.cursor().execute("CREATE TABLE kept (id INT)")
    getattr(server, end)()
    server.start()
    with connect(url) as client, client.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        assert cursor.fetchall() == (("kept",),)


def test_a_server_that_cannot_start_tells_why_and_leaves_nothing_behind(mysql_name: str) -> None:
    server = or_skip(lambda: MySqlProcess(private_binary(mysql_name), "--no-such-setting=1"))
    with pytest.raises(UnavailableError, match=r"no-such-setting|unknown"), server:
        pass
    assert not server.directory.exists()


def test_the_other_kind_of_server_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("integration.support.servers.mysql.shutil.which", lambda *_, **__: None)
    with pytest.raises(UnavailableError, match="no mariadbd on PATH"):
        native_mariadb()


def packet(size: int, number: int = 0) -> bytes:
    return size.to_bytes(3, "little") + bytes([number]) + b"x" * size


def test_a_request_ends_with_its_last_packet() -> None:
    stream = MySqlStream()
    stream.feed(packet(10)[:3])
    assert not stream.between_requests
    stream.feed(packet(10)[3:])
    assert stream.between_requests
    stream.feed(packet(MySqlStream.LARGEST))
    assert not stream.between_requests, "a full packet is continued"
    stream.feed(packet(0, 1) + packet(5))
    assert stream.between_requests
