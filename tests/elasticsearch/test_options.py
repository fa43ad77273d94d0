"""Options of the Elasticsearch connector, good and bad, without a server."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pytest
from tests.scenarios import assert_refused

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.elastic import ELASTICSEARCH
from sparkonce import options
from sparkonce.errors import OptionError
from sparkonce.protocol import Plan

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("name", pa.string()),
        ("x", pa.float64()),
        ("v", pa.int64()),
        ("op", pa.string()),
        ("tags", pa.list_(pa.string())),
        ("raw", pa.binary()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)
NUMBERS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("x", pa.float32())])
NEEDED = {"url": "http://localhost:9200", "index": "orders"}


def parsed(**given: str) -> options.Options:
    return options.parse(ElasticsearchConnector.options, {**NEEDED, **given})


def plan(schema: pa.Schema = SCHEMA, **given: str) -> Plan:
    return ElasticsearchConnector().plan(parsed(**given), schema)


@pytest.mark.parametrize(
    ("given", "mode", "repeatable"),
    [
        ({}, "append", False),
        ({"key": "id"}, "upsert", True),
        ({"key": "ID", "writeMode": "UPDATE"}, "update", True),
        ({"key": "id", "writeMode": "delete"}, "delete", False),
        ({"key": "id", "opColumn": "op"}, "upsert", True),
    ],
)
def test_write_mode_is_upsert_where_a_key_is_given(
    given: dict[str, str], mode: str, repeatable: bool
) -> None:
    made = plan(**given)
    assert (made.target, made.repeatable) == ("index:orders", repeatable)
    assert made.stored["change"]["is"] == mode


def test_increment_adds_all_but_the_key_and_the_routing() -> None:
    made = plan(NUMBERS, key="id", writeMode="increment")
    assert (made.detail.added, made.repeatable) == (("n", "x"), False)
    schema = pa.schema([*NUMBERS, ("place", pa.string())])
    routed = plan(schema, key="id", writeMode="increment", routing="place")
    assert routed.detail.added == ("n", "x")


def test_column_of_operations_is_not_stored() -> None:
    assert "op" not in plan(key="id", opColumn="op").stored["columns"]


BAD = [
    ({"index": "Orders"}, "in lower case"),
    ({"index": "órdeneÑ"}, "in lower case"),
    ({"index": "orders\x01"}, "one index or alias, in"),
    ({"index": "a,b"}, "one index or alias"),
    ({"index": "logs-*"}, "one index or alias"),
    ({"index": "_all"}, "not beginning with"),
    ({"index": "logs-{name"}, "with balanced braces"),
    ({"index": "logs-{nam}"}, "names column 'nam'"),
    ({"index": "logs-{x}"}, "can't use column 'x' of type double"),
    ({"index": "logs-{name:yyyy}"}, "can't use column 'name'"),
    ({"index": "logs-{at}"}, "can't use column 'at'"),
    ({"index": "logs-{at:YYYY}"}, "a format consists of yyyy"),
    ({"index": "logs-{name!r}"}, "can't use column 'name'"),
    ({"index": "logs-{name}", "createIndex": "true"}, "create an index template"),
    ({"onBadRow": "deadLetter", "deadLetter": "bad-{name}"}, "the name of one index"),
    ({"writeMode": "upsert"}, "Option key is missing"),
    ({"writeMode": "append", "key": "id"}, "writeMode=append and key contradict"),
    ({"key": "idd"}, "did you mean 'id'"),
    ({"key": "x"}, "of type double"),
    ({"key": "tags"}, "of type array<string>"),
    ({"key": "raw"}, "of type binary"),
    ({"key": "id,"}, "column names separated by commas"),
    ({"key": "id", "nulls": "keep"}, "use writeMode=update"),
    ({"key": "id", "opColumn": "v"}, "it must be a string"),
    ({"key": "op", "opColumn": "op"}, "and so does another option"),
    ({"key": "id", "writeMode": "update", "opColumn": "op"}, "set it to upsert"),
    ({"key": "id", "versionColumn": "x"}, "it must be a whole number"),
    ({"key": "id", "writeMode": "update", "versionColumn": "v"}, "is for upsert and delete"),
    ({"key": "id", "writeMode": "increment"}, "can't add column 'name' of type string"),
    ({"key": "id", "writeMode": "delete", "createIndex": "true"}, "nothing to delete"),
    ({"visibleAlias": "seen"}, "needs sinkId"),
    ({"key": "id", "visibleAlias": "seen", "sinkId": "s"}, "is for writeMode=append"),
    ({"index": "logs-{name}", "visibleAlias": "seen", "sinkId": "s"}, "and one index, not for"),
    ({"index": "logs-{name}", "key": "id", "writeMode": "update"}, "update and index=logs-"),
    ({"onBadRow": "deadLetter"}, "belong together"),
    ({"deadLetter": "bad"}, "belong together"),
    ({"createIndex": "yes"}, "true or false"),
    ({"parallelism": "0"}, "a whole number from 1"),
    ({"indexPrefix": "A"}, "1 to 64 of the characters"),
    ({"writeMod": "append"}, "did you mean 'writeMode'"),
    ({"routing": "nam"}, "did you mean 'name'"),
    ({"key": "id", "writeMode": "update", "pipeline": "p"}, "a row that it drops changes nothing"),
    ({"routing": "tags"}, "it must be one value"),
    ({"index": "sparkonce-ledger"}, "an index of the connector's own"),
    ({"index": "own-log", "indexPrefix": "own"}, "an index of the connector's own"),
    ({"onBadRow": "deadLetter", "deadLetter": "sparkonce-log"}, "an index of the connector's own"),
    ({"onBadRow": "deadLetter", "deadLetter": "orders"}, "deadLetter=orders name the same index"),
    ({"visibleAlias": "orders", "sinkId": "s"}, "visibleAlias=orders name the same index"),
]


@pytest.mark.parametrize("given", [{"onBadRow": "deadLetter"}, {"deadLetter": "bad"}], ids=str)
def test_recovery_takes_no_half_of_a_dead_letter(given: dict[str, str]) -> None:
    """Else `sparkonce recover -o onBadRow=deadLetter` would do nothing about bad rows."""
    connector = ElasticsearchConnector()
    parsed = options.parse(connector.options, {"url": "http://x:9200", **given}, complete=False)
    with pytest.raises(OptionError, match="belong together"):
        connector.connect(parsed)


@pytest.mark.parametrize(("given", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_option_is_refused_with_reason_and_remedy(given: dict[str, str], said: str) -> None:
    assert_refused(partial(plan, **given), said)


NAMES = [
    *((name, "uses that name") for name in ("sparkonce", "sparkonce.fence")),
    *((name, "uses that name") for name in ("_id", "_routing", "_version")),
    *((name, "no part may be empty") for name in (".a", "a.", "a..b", "a. .b")),
    (" ", "must not be blank"),
]


@pytest.mark.parametrize(("name", "said"), NAMES)
def test_column_that_no_field_can_be_named_by_is_refused(name: str, said: str) -> None:
    with pytest.raises(OptionError, match=said):
        plan(pa.schema([(name, pa.string())]))


@pytest.mark.parametrize("mode", ["update", "increment"])
def test_column_that_a_script_would_put_beside_the_field_it_means_is_refused(mode: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("stats.n", pa.int64())])
    assert plan(schema, key="id").stored["columns"] == ["id", "stats.n"]
    with pytest.raises(OptionError, match="the field would have two values"):
        plan(schema, key="id", writeMode=mode)


DECIMAL = pa.decimal128(38, 10)


@pytest.mark.parametrize(
    "kind",
    [pa.list_(DECIMAL), pa.map_(pa.string(), DECIMAL), pa.struct([("a", pa.list_(DECIMAL))])],
    ids=str,
)
def test_decimal_that_a_script_would_round_is_refused(kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.int64()), ("price", DECIMAL), ("x", kind)])
    assert plan(schema, key="id").stored["columns"] == ["id", "price", "x"]
    with pytest.raises(OptionError, match="a script keeps 17 digits"):
        plan(schema, key="id", writeMode="update")
    assert plan(schema.remove(2), key="id", writeMode="update")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "https://u:hush@a:99999"}, "a port from 0 to 65535"),
        ({"url": "localhost:9200"}, "like https://host:9200"),
        ({"url": "http://a:9200,https://b:9200"}, "for all nodes"),
        ({"url": "https://u:hush@a,https://w:hush@b"}, "both set the user"),
        ({"url": "https://u:hush@a", "user": "w"}, "both set the user"),
        ({"url": "https://u:hush@a", "password": "0th3r"}, "both set the password"),
        ({"url": "https://u:hush@a", "apiKey": "s3cr3t"}, "apiKey and user or password"),
        ({"user": "u", "password": "0th3r", "apiKey": "s3cr3t"}, "apiKey and user or password"),
        ({"tlsCaFile": "ca.pem"}, "http:// does not use TLS"),
        ({"url": "https://a", "tlsCaFile": "/does/not/exist"}, "names no file"),
    ],
)
def test_bad_address_is_refused_without_showing_a_secret(given: dict[str, str], said: str) -> None:
    assert_refused(lambda: Cluster(parsed(**given), ELASTICSEARCH), said, "hush", "0th3r", "s3cr3t")


def test_several_nodes_share_their_credentials() -> None:
    at = Cluster(
        parsed(url="https://u:p%40ss@a:1,https://b/es,https://[::1]:3"), ELASTICSEARCH
    ).address
    assert at.hosts == ("https://a:1", "https://b:443/es", "https://[::1]:3")
    assert (at.user, at.password, at.tls) == ("u", "p@ss", True)
