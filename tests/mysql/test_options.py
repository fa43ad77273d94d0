"""Options of the MySQL connector, good and bad, without a server."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from tests.scenarios import SCHEMA, assert_refused

from pyspark_mysql.connector import MySqlConnector
from pyspark_mysql.server import address, connection
from sparkonce import options
from sparkonce.change import Append, Increment, Upsert
from sparkonce.errors import OptionError
from sparkonce.protocol import Plan

NUMBERS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("d", pa.decimal128(9, 3))])
URL = {"url": "mysql://localhost/shop", "dbtable": "orders"}


def parse(**given: str) -> options.Options:
    return options.parse(MySqlConnector.options, {**URL, **given})


def plan(schema: pa.Schema = SCHEMA, **given: str) -> Plan:
    return MySqlConnector().plan(parse(**given), schema)


def test_without_a_key_rows_are_appended_and_with_one_upserted() -> None:
    assert (plan().detail.change, plan().repeatable) == (Append(), False)
    upsert = plan(key="id")
    assert (upsert.detail.change, upsert.repeatable) == (Upsert(("id",)), True)
    assert upsert.detail.columns == tuple(SCHEMA.names)


def test_increment_adds_all_but_the_key_and_may_not_be_repeated() -> None:
    made = plan(NUMBERS, key="ID", writeMode="increment")
    assert made.detail.change == Increment(("id",), ("n", "d"))
    assert not made.repeatable


def test_delete_needs_the_key_alone() -> None:
    made = plan(key="name, id", writeMode="DELETE")
    assert (made.detail.columns, made.repeatable) == (("name", "id"), False)


def test_operations_are_not_stored_and_sequences_are() -> None:
    made = plan(key="id", opColumn="Name", sequenceColumn="price")
    assert (made.detail.op, made.detail.order) == ("name", "price")
    assert made.detail.columns == ("id", "x", "price", "tags")
    assert made.repeatable


@pytest.mark.parametrize(
    ("url", "dbtable", "target"),
    [
        ("mysql://h/shop", "orders", "table:shop.orders"),
        ("mysql://h/shop", "shop.orders", "table:shop.orders"),
        ("jdbc:mariadb://h:3307/shop", "orders", "table:shop.orders"),
        ("mariadb://h", "other.orders", "table:other.orders"),
        ("mysql://h/shop", "`a.b ``c`", "table:shop.a.b `c"),
        ("mysql://h/sh%20op", "t", "table:sh op.t"),
        ("JDBC:MySQL://h/shop", "orders", "table:shop.orders"),
        ("MYSQL://h/shop", "orders", "table:shop.orders"),
    ],
)
def test_target_is_one_whatever_way_it_is_written(url: str, dbtable: str, target: str) -> None:
    assert plan(url=url, dbtable=dbtable).target == target


BAD = [
    ({"dbtable": ""}, "Option dbtable is empty"),
    ({"dbtable": "a.b.c"}, "orders, shop.orders"),
    ({"dbtable": "a`b"}, "orders, shop.orders"),
    ({"dbtable": "Sparkonce_new"}, "names that begin with sparkonce_"),
    ({"url": "mysql://h"}, "names a database"),
    ({"url": "redis://h"}, "like mysql://user:password@host"),
    ({"url": "jdbc:mysql://h/db?useSSL=false"}, "without parameters (useSSL)"),
    ({"url": "mysql://h:65536/db"}, "a port from 0 to 65535"),
    ({"url": "jdbc:mysql://[::::]/db"}, "a port from 0 to 65535"),
    ({"url": "mysql://h1,h2/db"}, "like mysql://user:password@host"),
    ({"key": "idd"}, "did you mean 'id'"),
    ({"key": "id,,name"}, "column names separated by commas"),
    ({"key": "id,ID"}, "column names separated by commas"),
    ({"key": "x"}, "of type double"),
    ({"key": "tags"}, "of type json"),
    ({"writeMode": "upsert"}, "Option key is missing"),
    ({"writeMode": "delete"}, "Option key is missing"),
    ({"key": "id", "writeMode": "replace"}, "one of append, upsert, update, increment, delete"),
    ({"key": "id", "writeMode": "increment"}, "can't add column 'name' of type string"),
    ({"writeMode": "append", "nulls": "keep"}, "contradict each other"),
    ({"key": "id", "writeMode": "delete", "createTable": "true"}, "contradict each other"),
    ({"createTable": "yes"}, "true or false"),
    ({"atomicity": "row"}, "one of epoch, chunk"),
    ({"tlsMode": "maybe"}, "one of verify, unverified, off"),
    ({"opColumn": "name"}, "Option key is missing"),
    ({"key": "id", "opColumn": "nme"}, "did you mean 'name'"),
    ({"key": "id", "opColumn": "x"}, "its type must be string"),
    ({"key": "name", "opColumn": "name"}, "and so does another option"),
    ({"key": "id", "sequenceColumn": "name"}, "its type must be tinyint"),
    ({"key": "id", "opColumn": "name", "writeMode": "append"}, "contradict each other"),
    ({"key": "id", "sequenceColumn": "price", "atomicity": "chunk"}, "contradict each other"),
    ({"key": "id", "sequenceColumn": "price", "nulls": "keep"}, "contradict each other"),
    ({"key": "id", "opColumn": "name", "nulls": "keep"}, "contradict each other"),
    ({"onBadRow": "deadLetter"}, "belong together"),
    ({"deadLetter": "bad"}, "belong together"),
    ({"deadLetter": "Orders", "onBadRow": "deadLetter"}, "dbtable and deadLetter both name"),
    ({"deadLetter": "shop.orders", "onBadRow": "deadLetter"}, "dbtable and deadLetter both name"),
    ({"deadLetter": "x.sparkonce_log", "onBadRow": "deadLetter"}, "are reserved"),
    ({"deadLetter": "\U0001f600", "onBadRow": "deadLetter"}, "a name of 1 to 64 characters"),
    ({"dbtable": "d.`t `"}, "a name of 1 to 64 characters"),
    ({"ledgerSchema": "s" * 65}, "a name of 1 to 64 characters"),
    ({"keyy": "id"}, "did you mean 'key'"),
    ({"password": "a", "passwordFile": "b"}, "contradict each other"),
]


@pytest.mark.parametrize(("given", "said"), BAD, ids=[str(given) for given, _ in BAD])
def test_bad_option_is_refused_with_reason_and_remedy(given: dict[str, str], said: str) -> None:
    assert_refused(partial(plan, **given), said)


def test_variant_is_refused_by_name() -> None:
    variant = pa.struct([pa.field("value", pa.binary(), metadata={"variant": "true"})])
    with pytest.raises(OptionError, match="Column 'v' can't be written"):
        plan(pa.schema([("v", variant)]))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"url": "mysql://h/d"}, ("h", 3306, None, None)),
        ({"url": "mysql://u:p%40x@h:1/d"}, ("h", 1, "u", "p@x")),
        ({"url": "jdbc:mysql://[::1]:1/d", "user": "u"}, ("::1", 1, "u", None)),
        ({"url": "mysql:///d"}, ("localhost", 3306, None, None)),
    ],
)
def test_address(given: dict[str, str], expected: tuple[object, ...]) -> None:
    where = address.parse(parse(**given))
    assert (where.host, where.port, where.user, where.password) == expected
    assert where.database == "d"


@pytest.mark.parametrize(
    "given",
    [
        {"url": "mysql://:secret@h/d", "password": "0th3r"},
        {"url": "mysql://u:secret@h/d", "user": "other"},
        {"url": "mysql://u:secret@h/d?x=1"},
        {"url": "MYSQL://u:secret@h/d?x=1"},
        *(
            {"url": f"jdbc:mysql://h{secret}"}
            for secret in (
                "/shop;password=secret",
                "/shop&password=secret",
                ";password=secret",
                "/password=secret",
                "/d:secret",
                "/u,secret",
                "/d?user=u;secret&secret",
            )
        ),
        {"url": "mysql://u:12?secret@h/d"},
        {"url": "mysql://u:12?secret=1@h/d"},
    ],
)
def test_bad_address_is_refused_without_showing_a_password(given: dict[str, str]) -> None:
    assert_refused(lambda: address.parse(parse(**given)), "", "secret", "0th3r")


@pytest.mark.parametrize(
    ("url", "given", "verified"),
    [
        ("mysql://db.example/d", {}, True),
        ("mysql://10.0.0.1/d", {"tlsMode": "unverified"}, False),
        ("mysql://10.0.0.1/d", {"tlsMode": "off"}, None),
        ("mysql://localhost/d", {}, None),
        ("mysql://127.0.0.1/d", {}, None),
        ("mysql://localhost.example/d", {}, True),
        ("mysql://[::1]/d", {"tlsMode": "verify"}, True),
    ],
)
def test_tls_is_verified_unless_no_network_lies_between(
    url: str, given: dict[str, str], verified: bool | None
) -> None:
    parsed = parse(url=url, **given)
    context = connection.tls_context(parsed, address.parse(parsed))
    assert (context and context.check_hostname) == verified
    assert (context is None) == (verified is None)


def test_tls_files_must_be_there_and_fit_the_mode(tmp_path: Path) -> None:
    for given, said in (
        ({"tlsCaFile": str(tmp_path / "none.pem")}, "names no file"),
        ({"tlsCaFile": str(tmp_path), "tlsMode": "off"}, "contradict each other"),
    ):
        parsed = parse(**given)
        with pytest.raises(OptionError, match=said):
            connection.tls_context(parsed, address.parse(parsed))


@pytest.mark.parametrize(
    ("given", "names"),
    [("id", ["id", "_op"]), ("_op,id", ["_op", "id"]), ("id, _OP", ["id", "_OP"])],
)
def test_a_stream_of_some_columns_has_the_one_that_tells_deleted_rows(
    given: str, names: list[str]
) -> None:
    raw = {**URL, "startingPosition": "latest", "columns": given}
    assert options.parse(MySqlConnector.follows, raw)["columns"] == names


UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    "given",
    [
        *(f"{UUID}:1", f"{UUID.upper()}:1-5:7", f"{UUID}:blue:1-5", f"{UUID}:1-3:5:blue:7:red:1-2"),
        *(f"{UUID}:1-5,\n{UUID[:-1]}3:7", "0-1-5", "0-1-5,3-2-7", "snapshot", "latest"),
    ],
)
def test_a_stream_begins_behind_gtids_as_a_server_writes_them(given: str) -> None:
    raw = {**URL, "startingPosition": given}
    found = options.parse(MySqlConnector.follows, raw)["startingPosition"]
    assert found == "".join(given.split()).lower()


@pytest.mark.parametrize("given", [UUID, f"{UUID}:blue", f"{UUID}:5-3", f"{UUID}:1-3:blue", "0-1"])
def test_a_stream_does_not_begin_behind_what_names_no_transaction(given: str) -> None:
    """It would begin with all that is in the log."""
    with pytest.raises(OptionError, match="startingPosition"):
        options.parse(MySqlConnector.follows, {**URL, "startingPosition": given})
