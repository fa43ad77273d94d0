"""The `sparkonce` command against MySQL and MariaDB."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from integration.support.epochs import MySqlQuery
from pymysql.cursors import Cursor

from sparkonce.errors import CommitRefused, RowRefused
from sparkonce.operate.cli import main

COUNTER = pa.schema([("id", pa.int64()), ("n", pa.int64())])


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


def ones(count: int) -> list[dict[str, int]]:
    return [{"id": i, "n": 1} for i in range(count)]


def test_status_shows_every_sink_and_nothing_where_there_is_none(url: str) -> None:
    assert "No sink has written to this store." in sparkonce("status", url).output
    query = counting(url)
    query.run(0, ones(5))
    query.stage(1, ones(3))
    (told,) = json.loads(sparkonce("status", "--json", f"jdbc:{url}").output)
    assert (told["sink"], told["epoch"], told["rows"]) == (query.name, 0, 5)
    assert (told["staged_attempts"], told["staged_chunks"]) == (1, 2)


def test_recover_finishes_an_epoch_that_waits(url: str, mysql: Cursor, unique: str) -> None:
    query = counting(url, atomicity="chunk")
    mysql.execute(f"INSERT INTO {unique}.t VALUES (3, 127)")
    with pytest.raises(RowRefused):
        query.run(0, ones(5))
    assert "run recover" in sparkonce("status", url).output
    failed = sparkonce("recover", url)
    assert failed.exit_code == 1
    assert "id=3" in failed.output
    mysql.execute(f"UPDATE {unique}.t SET n = 0 WHERE id = 3")
    assert "1 epochs recovered" in sparkonce("recover", url).output
    mysql.execute(f"SELECT COUNT(*), MIN(n), MAX(n) FROM {unique}.t")
    assert mysql.fetchone() == (5, 1, 1)


def test_recover_puts_bad_rows_aside_if_told_to(url: str, mysql: Cursor, unique: str) -> None:
    query = counting(url, atomicity="chunk")
    mysql.execute(f"INSERT INTO {unique}.t VALUES (3, 127)")
    with pytest.raises(RowRefused):
        query.run(0, ones(5))
    counting(url, onBadRow="deadLetter", deadLetter="bad", sinkId="other").sink.check()
    done = sparkonce("recover", url, "-o", "onBadRow=deadLetter", "-o", "deadLetter=bad")
    assert "1 epochs recovered" in done.output, done.output
    mysql.execute(f"SELECT COUNT(*) FROM {unique}.bad")
    assert mysql.fetchone() == (1,)


def test_gc_drops_what_nobody_will_take_and_forget_retires_a_query(url: str) -> None:
    query = counting(url)
    query.run(0, ones(5))
    receipts = query.stage(1, ones(5))
    assert "1 attempts found, 1 dropped" in sparkonce("gc", url, "--grace", "0", "--yes").output
    assert query.sink.store.staged(query.name) == []
    assert "is forgotten" in sparkonce("forget", url, query.name, "--yes").output
    with pytest.raises(CommitRefused):
        query.commit(1, receipts)


def test_ddl_makes_the_connectors_tables(url: str, mysql: Cursor, unique: str) -> None:
    mysql.execute(f"USE {unique}")
    for statement in filter(str.strip, sparkonce("ddl", "mysql").output.split(";")):
        mysql.execute(statement)
    query = counting(url)
    query.sink.check()
    assert query.run(0, ones(1)).decision.epoch == 0


def test_ddl_of_a_store_without_tables_says_so() -> None:
    told = sparkonce("ddl", "redis")
    assert told.exit_code == 0
    assert "needs no tables of its own" in told.output


def test_check_looks_at_options_server_and_target_without_spark(url: str, mysql: Cursor) -> None:
    given = ["check", "mysql", "-o", f"url={url}", "-o", "dbtable=t", "-o", "key=id"]
    fit = sparkonce(*given, "--schema", "id bigint, n int")
    assert (fit.exit_code, "takes such rows" in fit.output) == (0, True)
    fields = [{"name": n, "type": "long", "nullable": True, "metadata": {}} for n in COUNTER.names]
    spark = json.dumps({"type": "struct", "fields": fields})
    told = json.loads(sparkonce(*given, "--json", "--schema", spark).output)
    assert len(told["checked"]) == 4
    misfit = sparkonce(*given, "--schema", "id bigint, n string")
    assert (misfit.exit_code, "'n'" in misfit.output) == (1, True)
    alone = sparkonce(*given)
    assert (alone.exit_code, "target: not looked at" in alone.output) == (0, True)
    mysql.execute(f"SELECT COUNT(*) FROM {url.rpartition('/')[2]}.t")
    assert mysql.fetchone() == (0,)


def test_status_of_one_sink(url: str) -> None:
    query, other = counting(url), counting(url, sinkId="other")
    query.run(0, ones(2))
    other.run(0, ones(2))
    (told,) = json.loads(sparkonce("status", url, query.name, "--json").output)
    assert told["sink"] == query.name
    absent = sparkonce("status", url, "absent", "--json")
    assert absent.exit_code == 1
    assert "No sink is named 'absent'" in json.loads(absent.output)["error"]["what"]


@pytest.mark.parametrize("lacking", ["UPDATE ON {}.sparkonce_ledger", "INSERT ON {}.sparkonce_log"])
def test_a_right_to_ledger_or_log_is_missed_before_the_first_rows(
    url: str, mysql: Cursor, unique: str, lacking: str
) -> None:
    counting(url).run(0, ones(1))
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    try:
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
    finally:
        mysql.execute(f"DROP USER {unique}")


def test_doctor_looks_at_durability_and_clock(url: str, mysql: Cursor, unique: str) -> None:
    assert "0 sinks" in sparkonce("doctor", url, "-o", "dbtable=t").output
    mysql.execute(
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = %s", (unique,)
    )
    assert mysql.fetchone() == (1,)  # it makes none
    counting(url).run(0, ones(1))
    found = json.loads(sparkonce("doctor", url, "--json").stdout)
    assert {one["level"] for one in found} <= {"fit", "risk"}, found
    said = " ".join(one["what"] for one in found)
    for looked_at in ("Server ", "Its clock", "1 sink"):
        assert looked_at in said
