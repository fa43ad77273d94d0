"""The `sparkonce` command, as far as it needs no server."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.ledgers import ledger_of, with_fields
from tests.scenarios import MemoryWorld

from sparkonce.operate.arguments import STYLE
from sparkonce.operate.cli import main

COLUMNS = "id bigint, n int"
INTO = ["check", "mysql", "-o", "dbtable=shop.orders"]


def sparkonce(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["status", "mongo://h", "--json"], "No connector knows the URL scheme 'mongo'"),
        (["options", "mongo"], "installed are elasticsearch, mysql, opensearch, redis."),
        (["ddl", "mysq"], "did you mean 'mysql'?"),
        (["status", "redis://h", "-o", "x=1", "-o", "tmeout=2"], "2 options are wrong"),
    ],
)
def test_an_error_says_what_is_known(arguments: list[str], said: str) -> None:
    result = sparkonce(*arguments)
    assert result.exit_code == 1
    assert said in result.output
    assert "Traceback" not in result.output


def test_an_error_is_json_where_that_is_asked_for() -> None:
    result = sparkonce("status", "redis://h", "-o", "tmeout=2", "--json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)["error"]
    assert list(error) == ["type", "what", "why", "todo"]
    assert (error["type"], error["what"]) == ("OptionError", "Option 'tmeout' is unknown")
    assert error["todo"] == "did you mean 'timeout'?"


@pytest.mark.parametrize("wrong", [["--grase", "1h"], ["--grace", "soon"], ["-o", "x"], []])
def test_a_wrong_use_is_json_where_that_is_asked_for(wrong: list[str]) -> None:
    result = sparkonce("gc", *(["redis://h"] if wrong else []), *wrong, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["what"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["options"], "One of elasticsearch, mysql, opensearch, redis."),
        (["check"], "One of elasticsearch, mysql, opensearch, redis."),
        (["offsets", "redis://h"], "sparkonce status URL lists the sinks."),
        (["status"], "It looks like redis://localhost:6379/0."),
    ],
)
def test_an_argument_that_is_missing_is_named_with_what_it_may_be(
    arguments: list[str], said: str
) -> None:
    missing = sparkonce(*arguments)
    assert missing.exit_code == 2
    assert said in missing.output
    assert json.loads(sparkonce(*arguments, "--json").stdout)["error"]["todo"] == said


def written(name: str) -> dict[str, Any]:
    """The options of writes, by name."""
    told = json.loads(sparkonce("options", name, "--json").stdout)
    return {one["name"]: one for one in told if "of" not in one}


@pytest.mark.parametrize("name", ["mysql", "elasticsearch"])
def test_each_default_has_json(name: str) -> None:
    assert written(name)["maxBadRows"]["default"] == "10%"


def test_options_are_json_where_that_is_asked_for() -> None:
    known = written("redis")
    assert known["key"] | {"meaning": ""} == {
        "name": "key",
        "required": True,
        "default": None,
        "secret": False,
        "meaning": "",
    }
    assert known["timeout"]["default"] == 30
    assert known["password"]["secret"]


def test_statements_are_json_where_that_is_asked_for() -> None:
    statements = json.loads(sparkonce("ddl", "mysql", "--json").stdout)
    assert [one for one in statements if "sparkonce_ledger" in one]
    assert json.loads(sparkonce("ddl", "redis", "--json").stdout) == []


def test_the_form_of_a_time_is_in_the_help() -> None:
    assert "90s, 15m, 12h or 7d" in " ".join(sparkonce("gc", "--help").output.split())


def decimal_json(kind: str) -> str:
    field = {"name": "x", "type": kind, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-o", "x=1", "-o", "chunkRows=0"], "3 options are wrong"),
        (["-o", "url=mysql://h", "-o", "key=no", "--schema", COLUMNS], "names column 'no'"),
        (["-o", "url=mysql://h", "--schema", "id bignum"], "not 'bignum'"),
        (["-o", "url=mysql://h", "--schema", "id int, id int"], "query has column 'id' twice"),
        (["-o", "url=mysql://h", "--schema", "{}"], "df.schema.json()"),
        (["-o", "url=mysql://h", "--schema", '{"fields":[[]]}'], "df.schema.json()"),
        (["-o", "url=mysql://h", "--schema", decimal_json("decimal(40,2)")], "not decimal(40,2)"),
        (["-o", "url=mysql://h", "--schema", decimal_json("decimal(5,10)")], "not decimal(5,10)"),
        (["-o", "url=mysql://h", "--schema", "x decimal(40,2)"], "not decimal(40,2)"),
        (["-o", "url=mysql://h", "--schema", "x decimal(5,10)"], "not decimal(5,10)"),
        (["-o", "url=mysql://h", "--schema", "x decimal(0)"], "not decimal(0,0)"),
        (["-o", "url=mysql://h", "--schema", "x decimal(²,1)"], "a whole number"),
        (["-o", "url=mysql://h", "--schema", f"x decimal({'9' * 20},1)"], "a whole number"),
        (
            ["-o", "url=mysql://127.0.0.1:1/d", "-o", "timeout=1", "--schema", COLUMNS],
            "columns go to table:shop.orders",
        ),
    ],
)
def test_check_refuses_what_a_query_would_be_refused_for(arguments: list[str], said: str) -> None:
    result = sparkonce(*INTO, *arguments)
    assert result.exit_code == 1
    assert said in result.output
    told = sparkonce(*INTO, *arguments, "--json")
    assert told.exit_code == 1
    assert set(json.loads(told.stdout)) == {"checked", "error"}


# -- names that steer a terminal


NAMES = "red\x1b[31m@x", "title\x1b]0;gone\x07@x", "a\nline@x", "[/b]@x", "up\x1b[8m\x1b[1A\x9b2J@x"


class _Connector:
    options = ()

    def __init__(self, store: Any) -> None:
        self.store = store

    def connect(self, _: Any) -> Any:
        return self.store


@pytest.mark.parametrize("damaged", [False, True])
def test_no_name_reaches_the_terminal_as_it_is(
    monkeypatch: pytest.MonkeyPatch, *, damaged: bool
) -> None:
    """By no command, in no prompt, no log line and no label of metrics."""
    world = MemoryWorld()
    for name in NAMES * 2:
        ledger = ledger_of(name, "q\x1b[5m", "t\x1b[5m", revision=1, stamp="s", epochs=1, epoch=0)
        record = with_fields(ledger, checkpoint="/c\x1b[5m").to_record()
        world.memory.records[name] = replace(record, body="{") if damaged else record
    for made in ("sparkonce.operate.arguments.for_url", "sparkonce.store.for_url"):
        monkeypatch.setattr(made, lambda _: _Connector(world.memory))
    url = "redis://h"
    commands = [
        *(["status", url], ["status", url, "--all"], ["recover", url], ["gc", url, "--yes"]),
        *(["watch", url, "--refreshes", "1"], ["metrics", url], ["doctor", url]),
        *(["status", url, NAMES[0]], ["offsets", url, NAMES[0]], ["status", url, "\x1b[5m"]),
        ["forget", url, *NAMES],
    ]
    for arguments in commands:
        result = CliRunner().invoke(main, arguments, input="y\n", color=True)
        shown = STYLE.sub("", result.output)
        assert all(one.isprintable() or one == "\n" for one in shown), (arguments, shown)
        assert not any(line.startswith("line@x") for line in shown.split("\n")), arguments
        assert result.exception is None or isinstance(result.exception, SystemExit), arguments


def test_commands_but_metrics_need_no_package_of_an_extra() -> None:
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from click.testing import CliRunner; from sparkonce.operate.cli import main\n"
        "print(CliRunner().invoke(main, ['options', '--help']).exit_code)\n"
        "print(CliRunner().invoke(main, ['metrics', 'redis://h']).output)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.startswith("0\n")
    assert "the wheel of sparkonce with extra [metrics]" in said.stdout
