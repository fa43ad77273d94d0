"""Options: what is read, what is refused, and what the page about them says."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from sparkonce.errors import OptionError
from sparkonce.operate.arguments import page_of_options
from sparkonce.operate.formats import sources_of
from sparkonce.option_values import Parser, choice, integer, pattern, seconds
from sparkonce.options import COMMON, Option, parse, password
from sparkonce.store import for_name

TABLE = (
    Option("url", "Where the store is.", required=True),
    Option("writeMode", "How rows are written.", choice("upsert", "increment"), "upsert"),
    *COMMON,
)
URL = {"url": "redis://localhost"}

GOOD: list[tuple[Parser, str, object]] = [
    (integer(1, 10), "1", 1),
    (integer(1, 10), "10", 10),
    (integer(-5, 10), "-5", -5),
    (integer(1, 10), "+7", 7),
    (integer(1, 10), "007", 7),
    (seconds(0, 3600), "90", 90.0),
    (seconds(0, 3600), "90s", 90.0),
    (seconds(0, 3600), "90 s", 90.0),
    (seconds(0, 3600), "15m", 900.0),
    (seconds(0, 1e6), "12h", 43200.0),
    (seconds(0, 1e6), "7d", 604800.0),
    (seconds(0, 3600), "250ms", 0.25),
    (seconds(0, 3600), "1.5s", 1.5),
    (seconds(0.1, 3600), "0.1", 0.1),
    (seconds(0, 3600), "1h", 3600.0),
    (choice("upsert", "increment"), "upsert", "upsert"),
    (choice("upsert", "increment"), "UPSERT", "upsert"),
    (choice("deadLetter"), "deadletter", "deadLetter"),
    (pattern(r"[a-z]+", "letters"), "abc", "abc"),
]
BAD: list[tuple[Parser, str]] = [
    *(
        (integer(1, 10), text)
        for text in ("0", "11", "-1", "", " ", "1.0", "1e1", "ten", "1 0", "0x1")
    ),
    *((integer(1, 10), text) for text in (" 1", "1\n", "1_0", "--1", "9" * 30)),
    *((seconds(0.1, 3600), text) for text in ("0", "0.05", "99ms", "3601", "2h", "-1s", "", "s")),
    *((seconds(0, 3600), text) for text in ("1w", "1 minute", "1s 2s", "inf", "nan", ".5", "1,5")),
    *((choice("upsert", "increment"), text) for text in ("", "ups", "upsert ", "update")),
    *((pattern(r"[a-z]+", "letters"), text) for text in ("", "a1", "ab\n", "A")),
]


@pytest.mark.parametrize(("parser", "text", "value"), GOOD)
def test_a_good_value_is_read(parser: Parser, text: str, value: object) -> None:
    found = parser(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("parser", "text"), BAD)
def test_a_bad_value_is_refused(parser: Parser, text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        parser(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sinkId", "a b"),
        ("sinkId", "a@b"),
        ("sinkId", "checkpoint/x"),
        ("sinkId", "x" * 101),
        ("onNewCheckpoint", "continue"),
        ("onNewCheckpoint", "continue:"),
        ("onNewCheckpoint", "continue@3"),
        ("onLostCommit", "continue"),
        ("onLostCommit", "continue@"),
        ("onLostCommit", "continue@-1"),
        ("onLostCommit", "continue:3"),
        ("chunkRows", "0"),
        ("timeout", "0"),
        ("maxRetries", "-1"),
        ("writeMode", "append"),
    ],
)
def test_a_refusal_names_option_value_and_what_is_expected(name: str, text: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse(TABLE, {**URL, name.lower(): text})
    assert f"Option {name}={text!r}" in str(refused.value)
    assert "it must be " in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("sinkId", "Orders.v2_eu-1", "Orders.v2_eu-1"),
        ("onNewCheckpoint", "fail", "fail"),
        (
            "onNewCheckpoint",
            "continue:5f1c9c1e-8d3a-4a4e-9c1d-0123456789ab",
            "continue:5f1c9c1e-8d3a-4a4e-9c1d-0123456789ab",
        ),
        ("onLostCommit", "continue@17", "continue@17"),
        ("onLostCommit", "continue@8-17", "continue@8-17"),
        ("chunkRows", "1", 1),
        ("timeout", "250ms", 0.25),
        ("maxRetries", "0", 0),
    ],
)
def test_common_options_are_read(name: str, text: str, value: object) -> None:
    assert parse(TABLE, {**URL, name: text})[name] == value


def test_what_spark_itself_puts_among_the_options_means_nothing() -> None:
    assert parse(TABLE, {**URL, "queryName": "clicks"}) == parse(TABLE, URL)


def test_names_are_compared_without_case() -> None:
    options = parse(TABLE, {"URL": "redis://localhost", "writemode": "increment", "SINKID": "x"})
    assert (options["url"], options["writeMode"], options["sinkId"]) == (
        "redis://localhost",
        "increment",
        "x",
    )


def test_defaults_are_filled_in() -> None:
    options = parse(TABLE, URL)
    assert set(options) == {option.name for option in TABLE}
    assert options["writeMode"] == "upsert"
    assert options["sinkId"] is None
    assert options["maxRetries"] == 8


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("writeMod", "writeMode"),
        ("sink_id", "sinkId"),
        ("SINKIDS", "sinkId"),
        ("chunkrow", "chunkRows"),
        ("passwd", "password"),
        ("onlostcommits", "onLostCommit"),
    ],
)
def test_an_unknown_name_is_refused_and_the_nearest_suggested(name: str, meant: str) -> None:
    with pytest.raises(OptionError, match=f"did you mean '{meant}'"):
        parse(TABLE, {**URL, name: "x"})


def test_an_unknown_name_that_is_near_to_none_gets_them_all() -> None:
    with pytest.raises(OptionError) as refused:
        parse(TABLE, {**URL, "zzz": "x"})
    assert all(option.name in str(refused.value) for option in TABLE)


def test_a_required_option_must_be_there_unless_one_only_connects() -> None:
    with pytest.raises(OptionError, match="Option url is missing"):
        parse(TABLE, {})
    assert parse(TABLE, {}, complete=False)["url"] is None


def test_options_survive_pickling() -> None:
    options = parse(TABLE, {**URL, "password": "hunter2"})
    copy = pickle.loads(pickle.dumps(options))
    assert copy == options
    assert repr(copy) == repr(options)


# -- passwords


def test_a_password_comes_from_its_option_or_its_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("hunter2\n", encoding="utf-8")
    assert password(parse(TABLE, URL)) is None
    assert password(parse(TABLE, {**URL, "password": "hunter2"})) == "hunter2"
    assert password(parse(TABLE, {**URL, "passwordFile": str(file)})) == "hunter2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("p\r\n", "p"), (" p ", " p "), ("p", "p"), ("pä\n", "pä"), ("a\nb\n", "a\nb")],
)
def test_only_the_line_end_is_cut_off_a_password(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "password"
    file.write_bytes(text.encode())
    assert password({"passwordFile": str(file)}) == expected


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_password_file_that_cannot_be_read_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match="passwordFile"):
        password({"passwordFile": str(tmp_path / name)})


# -- the page


def test_the_page_has_a_row_for_each_option_with_three_cells() -> None:
    lines = page_of_options("redis", TABLE).splitlines()
    rows = [line for line in lines if line.startswith("`") and " | " in line]
    assert len(rows) == len(TABLE)
    for option, row in zip(TABLE, rows, strict=True):
        name, _, meaning = row.split(" | ") if row.count(" | ") == 2 else ("", "", "")
        assert name == f"`{option.name}`"
        assert meaning == option.meaning


def test_the_page_shows_defaults_and_what_is_required() -> None:
    page = page_of_options("redis", TABLE)
    assert "\n`url` | required | " in page
    assert "\n`writeMode` | `upsert` | " in page
    assert "\n`sinkId` |  | " in page
    assert page.endswith(".\n")


def test_every_option_says_what_it_means_in_a_sentence() -> None:
    for option in COMMON:
        assert option.meaning.endswith("."), option.name
        assert "|" not in option.meaning, option.name


def test_all_problems_are_told_at_once() -> None:
    given = {"urll": "x", "timeout": "soon", "chunkRows": "0", "foo": "1"}
    with pytest.raises(OptionError) as refused:
        parse(TABLE, given)
    first, *lines = refused.value.lines()
    assert first == "5 options are wrong."
    told = ("'urll' is unknown", "'foo'", "timeout='soon'", "chunkRows='0'", "url is missing")
    for line, said in zip(lines, told, strict=True):
        assert said in line
        assert line.count("Why: ") == line.count("What to do: ") == 1
    assert "did you mean 'url'" in lines[0]


def test_the_options_that_there_are_are_listed_once() -> None:
    with pytest.raises(OptionError) as refused:
        parse(TABLE, {**URL, "foo": "1", "bar": "2"})
    assert str(refused.value).count("writeMode") == 1
    assert str(refused.value).endswith("What to do: use one of those above.")


def test_what_is_required_is_not_to_be_left_out() -> None:
    with pytest.raises(OptionError, match=r"What to do: correct it\. Meaning: "):
        parse([Option("size", "A number.", integer(1, 2), required=True)], {"size": "x"})


@pytest.mark.parametrize("name", ["sinkId\u200b", "sink\xadId", "\uff53inkId", " sinkId"])
def test_a_name_that_looks_like_a_known_one_is_shown_by_what_differs(name: str) -> None:
    with pytest.raises(OptionError) as refused:
        parse(TABLE, {**URL, name: "x"})
    assert "did you mean" not in refused.value.todo
    assert refused.value.todo == f"write it as 'sinkId'; the given name is {name!a}"


TABLES = {
    f"{name} {source}": table
    for name in ("redis", "mysql", "elasticsearch")
    for connector in [for_name(name)]
    for source, table in {"sink": connector.options, **sources_of(connector)}.items()
}
EACH = [(of, option.name) for of, table in TABLES.items() for option in table]


@pytest.mark.parametrize("text", ["", "  ", None])
def test_no_option_is_taken_for_absent_where_it_is_empty(text: str | None) -> None:
    """A variable that is not set would turn deletes into upserts, and let older rows win."""
    for of, name in EACH:
        raw = {name.lower(): text}
        with pytest.raises(OptionError, match=f"Option {name} is empty.*unset variable"):
            parse(TABLES[of], raw, complete=False)  # type: ignore[arg-type]
