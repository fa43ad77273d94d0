"""The `sparkonce` command against MySQL and MariaDB."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from integration.support.epochs import COUNTER, MySqlQuery, ones
from pymysql.cursors import Cursor

from sparkonce.operate.cli import main


@pytest.fixture
def url(mysql: Cursor, own_url: str, unique: str) -> str:
    mysql.execute(f"CREATE TABLE {unique}.t (id BIGINT PRIMARY KEY, n TINYINT)")
    return own_url


def sparkonce(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def counting(url: str, **options: str) -> MySqlQuery:
    return MySqlQuery(
        COUNTER, url=url, dbtable="t", key="id", writeMode="increment", chunkRows="2", **options
    )


def test_status_shows_every_sink_and_nothing_where_there_is_none(url: str) -> None:
    assert "No sink has written to this store." in sparkonce("status", url).output
    query = counting(url)
    query.run(0, ones(range(5)))
    query.stage(1, ones(range(3)))
    (told,) = json.loads(sparkonce("status", "--json", f"jdbc:{url}").output)
    assert (told["sink"], told["epoch"], told["rows"]) == (query.name, 0, 5)
    assert (told["staged_attempts"], told["staged_chunks"]) == (1, 2)


def test_ddl_makes_the_connectors_tables(url: str, mysql: Cursor, unique: str) -> None:
    mysql.execute(f"USE {unique}")
    for statement in filter(str.strip, sparkonce("ddl", "mysql").output.split(";")):
        mysql.execute(statement)
    query = counting(url)
    query.sink.check()
    assert query.run(0, ones(range(1))).decision.epoch == 0


def test_check_looks_at_options_server_and_target_without_spark(url: str, mysql: Cursor) -> None:
    given = ["check", "mysql", "-o", f"url={url}", "-o", "dbtable=t", "-o", "key=id"]
    fit = sparkonce(*given, "--schema", "id bigint, n int")
    assert (fit.exit_code, "accepts these columns" in fit.output) == (0, True)
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in COUNTER.names]
    spark = json.dumps({"type": "struct", "fields": fields})
    told = json.loads(sparkonce(*given, "--json", "--schema", spark).output)
    assert len(told["checked"]) == 4
    misfit = sparkonce(*given, "--schema", "id bigint, n string")
    assert (misfit.exit_code, "'n'" in misfit.output) == (1, True)
    alone = sparkonce(*given)
    assert (alone.exit_code, "target: not checked" in alone.output) == (0, True)
    mysql.execute(f"SELECT COUNT(*) FROM {url.rpartition('/')[2]}.t")
    assert mysql.fetchone() == (0,)


@pytest.mark.parametrize("lacking", ["UPDATE ON {}.sparkonce_ledger", "INSERT ON {}.sparkonce_log"])
def test_a_right_to_ledger_or_log_is_missed_before_the_first_rows(
    url: str, mysql: Cursor, unique: str, lacking: str
) -> None:
    counting(url).run(0, ones(range(1)))
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    for table in ("t", "sparkonce_ledger", "sparkonce_log"):
        mysql.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {unique}.{table} TO {unique}")
    mysql.execute(f"REVOKE {lacking.format(unique)} FROM {unique}")
    own = url.replace("root@", f"{unique}:pw@")
    for command in (
        ("check", "mysql", "-o", f"url={own}", "-o", "dbtable=t", "-o", "key=id"),
        ("doctor", own),
    ):
        said = sparkonce(*command)
        assert f"{lacking.split(maxsplit=1)[0]} command denied" in said.output
        assert said.exit_code == 1


def test_doctor_looks_at_durability_and_clock(url: str, mysql: Cursor, unique: str) -> None:
    assert "0 sinks" in sparkonce("doctor", url, "-o", "dbtable=t").output
    mysql.execute(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s", (unique,)
    )
    assert mysql.fetchone() == (1,)  # it makes none
    counting(url).run(0, ones(range(1)))
    found = json.loads(sparkonce("doctor", url, "--json").stdout)
    assert {one["level"] for one in found} <= {"fit", "risk"}, found
    said = " ".join(one["what"] for one in found)
    for looked_at in ("Server ", "The clock", "1 sink"):
        assert looked_at in said
