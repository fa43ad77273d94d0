"""A connection is one that was set up as a whole, or it is closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from integration.support.epochs import MySqlQuery
from integration.support.servers.process import wait_until
from pymysql.constants import FIELD_TYPE
from pymysql.cursors import Cursor

from pyspark_mysql.server import settings
from sparkonce.errors import OptionError, StoreRefused

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64())])


@pytest.fixture
def user(mysql: Cursor, unique: str) -> Iterator[str]:
    """A user of the test's own, whose password is `right`."""
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'right'")
    mysql.execute(f"GRANT ALL ON *.* TO {unique}")
    yield unique
    mysql.execute(f"DROP USER {unique}")


@pytest.fixture
def opened(mysql: Cursor, user: str) -> Callable[[], int]:
    """How many connections that user has."""

    def opened() -> int:
        asked = f"SELECT COUNT(*) FROM information_schema.processlist WHERE user = '{user}'"
        mysql.execute(asked)
        ((count,),) = mysql.fetchall()
        return int(count)

    return opened


@pytest.fixture
def query(mysql_url: str, table: str, user: str, tmp_path: Path) -> MySqlQuery:
    secret = tmp_path / "secret"
    secret.write_text("right\n")
    url = mysql_url.replace("//root@", f"//{user}@")
    options = {"key": "id", "writeMode": "increment", "createTable": "true"}
    return MySqlQuery(SCHEMA, url=url, dbtable=table, passwordFile=str(secret), **options)


def rows() -> list[dict[str, int]]:
    return [{"id": 1, "n": 1}]


@pytest.mark.parametrize("wrong", [b"", b"\xff", None])
def test_a_password_that_can_not_be_read_for_a_moment_opens_no_connection(
    mysql: Cursor,
    table: str,
    query: MySqlQuery,
    opened: Callable[[], int],
    tmp_path: Path,
    wrong: bytes | None,
) -> None:
    query.sink.check()
    query.run(0, rows())
    query.sink.store.session.pool.close_idle()
    wait_until(lambda: not opened(), 10, "idle connections to be closed")
    secret = tmp_path / "secret"
    secret.unlink() if wrong is None else secret.write_bytes(wrong)
    with pytest.raises(StoreRefused if wrong == b"" else OptionError):
        query.sink.check()
    assert opened() == 0
    secret.write_text("right")
    query.sink.check()
    query.run(1, rows())
    mysql.execute(f"SELECT n FROM {table}")
    assert mysql.fetchall() == ((2,),)


def test_a_connection_whose_session_can_not_be_set_up_is_closed(
    query: MySqlQuery, opened: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(settings, "MODE", "NO_SUCH_MODE")
        with pytest.raises(StoreRefused, match=r"sql_mode.*NO_SUCH_MODE") as refused:
            query.sink.check()
        wait_until(lambda: not opened(), 10, "the connection to be closed")
        assert refused.value  # whose traceback would keep it open
    query.sink.check()
    assert opened() == 1


def test_a_connection_whose_answer_was_not_read_to_the_end_is_closed(query: MySqlQuery) -> None:
    session = query.sink.store.session

    def fails(_: object) -> None:
        raise ValueError("a value that the client can't read")

    live = session.live
    live.connection.decoders |= dict.fromkeys([FIELD_TYPE.LONG, FIELD_TYPE.LONGLONG], fails)
    with pytest.raises(ValueError, match="can't read"):
        session.run("SELECT 1 UNION SELECT 2")
    assert not live.connection.open
    assert session.run("SELECT 3") == ((3,),)
