"""URLs and secrets: no password is ever shown, in options, a URL or an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.ledgers import ledger_of
from tests.scenarios import assert_refused

from sparkonce.option_values import pattern
from sparkonce.options import COMMON, Option, parse, password
from sparkonce.store import for_url
from sparkonce.urls import redact_url, spelled

SECRET = "hunter2"
SECRETS = ("pass", "pw", "passphrase", "auth", "Authorization", "apiKey", "access_token")
TABLE = (
    Option("url", "Where the store is."),
    Option("apiKey", "Key.", pattern(r"[A-Z]+", "capitals"), secret=True),
    *COMMON,
)


@pytest.mark.parametrize("form", ["{}", "{!r}", "{!s}"])
def test_the_text_of_options_hides_every_secret(form: str) -> None:
    options = parse(
        TABLE, {"url": f"redis://app:{SECRET}@db:6379/0", "password": SECRET, "apiKey": "HUNTER"}
    )
    shown = form.format(options)
    assert SECRET not in shown
    assert "HUNTER" not in shown
    assert "redis://app:***@db:6379/0" in shown
    assert options["password"] == SECRET


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"apiKey": SECRET}, "apiKey"),
        ({"pasword": SECRET}, "did you mean 'password'"),
        ({"password": SECRET, "passwordFile": "/run/secret"}, "password and passwordFile"),
        ({"url": f"rediss//app:{SECRET}@db"}, "a redis:// URL"),
    ],
    ids=str,
)
def test_a_refusal_shows_no_secret(given: dict[str, str], said: str) -> None:
    table = [*TABLE[1:], Option("url", "Where.", pattern(r"redis://.*", "a redis:// URL"))]
    assert_refused(lambda: parse(table, given), said, SECRET)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://app@db", "redis://app@db"),
        ("redis://app:hunter2@db", "redis://app:***@db"),
        ("redis://:hunter2@db:6379", "redis://:***@db:6379"),
        ("rediss://app:hunter2@[::1]:6379/0", "rediss://app:***@[::1]:6379/0"),
        ("mysql://app:hun@ter2@db/shop", "mysql://app:***@db/shop"),
        ("http://app:a@one:9200,http://b:c@two", "http://app:***@one:9200,http://b:***@two"),
        ("http://one:9200,http://app:hunter2@two/x", "http://***"),
        ("http://app:2024,hunter2@one:9200", "http://***"),
        ("http://app:@a,hunter2@one:9200", "http://***"),
        ("redis://app:2024,hunter2@one:6379", "redis://app:***@one:6379"),
        ("redis://:12,hunter2@one:6379/0", "redis://:***@one:6379/0"),
        ("https://one:9200,two:9200", "https://one:9200,two:9200"),
        ("redis://db/0?x=1", "redis://***"),
        ("redis://app%3Ahunter2@db", "redis://***"),
        ("redis://app/hunter2@db", "redis://***"),
        ("redis://app hunter2@db", "redis://***"),
        ("redis:///hunter2@db", "redis://***"),
        ("redis://db/0#hunter2", "redis://***"),
        ("jdbc:mysql://db/shop?password=hunter2", "jdbc:mysql://***"),
        ("app:hunter2@db", "***"),
        ("redis://app:hunter2,http://x@db", "redis://***"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert redact_url(url) == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://app:hunter2@one:9200,http://app:hunter2@two:9200",
        "http://one:9200,http://app:hunter2@two:9200",
        "jdbc:mysql://app:hunter2@db/shop",
        "jdbc:mysql://db/shop?user=app&password=hunter2",
        "redis://db/0?password=hunter2",
        *(f"redis://db/0?x=1&{name}=hunter2&y=2" for name in SECRETS),
        "redis://app:hunter2/x@db",
        "redis://app:x#hunter2@db",
        "redis://app:x?hunter2@db",
    ],
)
def test_a_url_of_another_form_is_shown_without_its_password(url: str) -> None:
    assert "hunter2" not in redact_url(url)


FILLING = st.text("abzAZ09-_.~!$&'()*+;=:@/?# ,[]%", max_size=6).filter(lambda one: "//" not in one)


@given(
    st.sampled_from(["redis", "rediss", "mysql", "jdbc:mysql", "https", ""]),
    st.sampled_from(["://", ":/", "//", ":", ""]),
    st.sampled_from(["", "app"]),
    st.sampled_from([":", "%3A", "%3a"]),
    FILLING,
    FILLING,
    st.sampled_from(["@db", "@db:6379/0", "@[::1]:6379", "@one:9200,two:9200/x?y=1", "", "@"]),
)
@example("redis", ":/", "app", ":", "", "", "@host/0")
@example("", "", "app", ":", "", "", "@host:6379")
@example("redis", "://", "app", ":", "", "", "")
@example("redis", "://", "app", ":", "/", "", "")
def test_nothing_that_may_be_a_password_is_shown(
    scheme: str, sign: str, user: str, colon: str, before: str, after: str, place: str
) -> None:
    assume("@" in place or "@" not in before)  # what follows the last one is the host
    url = f"{scheme}{sign}{user}{colon}{before}{SECRET}{after}{place}"
    assert SECRET not in redact_url(url)
    table = [Option("url", "Where the store is.", pattern(r"-", "-"))]
    assert_refused(lambda: parse(table, {"url": url}), "url", SECRET)


def test_a_url_that_is_none_can_be_shown_all_the_same() -> None:
    assert SECRET not in repr(parse(TABLE, {"url": f"redis://app:{SECRET}@[::1"}))


def test_an_unknown_scheme_is_shown_without_the_rest_of_the_url() -> None:
    assert_refused(lambda: for_url(f"app:{SECRET}@db:6379"), "scheme", SECRET)


def test_a_password_file_that_is_no_text_is_an_option_error(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(b"hunter2\xff\xfe")
    assert_refused(lambda: password({"passwordFile": str(file)}), "passwordFile", SECRET)


def test_a_ledger_has_no_place_for_a_secret() -> None:
    body = ledger_of("orders@1", "a", "hash:orders").to_record().body
    assert "password" not in body
    assert "url" not in body


# -- a URL's scheme has no case; everything else of it has


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


def test_no_password_is_shown_behind_a_scheme_in_capitals() -> None:
    shown = redact_url("HTTPS://u:secret@a:9200,HTTPS://u:secret@b:9200")
    assert shown == "https://u:***@a:9200,https://u:***@b:9200"
