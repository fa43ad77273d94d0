"""Options of the Redis connector, good and bad, and keys that no row may have."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from tests.scenarios import SCHEMA, assert_refused

from pyspark_redis.connector import RedisConnector
from pyspark_redis.read.servers import KeyScan
from pyspark_redis.server.client import connect
from pyspark_redis.target import keys
from pyspark_redis.write.detail import PlanDetail
from sparkonce import options
from sparkonce.errors import BadRow, OptionError
from sparkonce.protocol import Plan
from sparkonce.sink import open_sink
from sparkonce.urls import require_server

NUMBERS = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("x", pa.float32())])
URL = {"url": "redis://localhost"}


def plan(schema: pa.Schema = SCHEMA, **given: str) -> Plan[PlanDetail]:
    return RedisConnector().plan(options.parse(RedisConnector.options, {**URL, **given}), schema)


def connected(given: dict[str, str]) -> None:
    connect(options.parse(RedisConnector.options, given, complete=False))


def test_upsert_writes_every_column_and_may_be_repeated() -> None:
    made = plan(key="user:{id}")
    assert (made.target, made.repeatable) == ("hash:user:{id}", True)
    assert made.detail.fields == tuple(SCHEMA.names)


def test_a_key_of_columns_and_a_template_that_looks_like_it_are_two_targets() -> None:
    """The first escapes what the columns hold, so that their rows have other keys."""
    targets = {plan(key=key).target for key in ("id,name", "id, name", "{id}:{name}")}
    assert targets == {"hash:id,name", "hash:{id}:{name}"}


def test_increment_adds_all_but_the_key_and_may_not_be_repeated() -> None:
    made = plan(NUMBERS, key="user:{id}", writeMode="increment")
    assert (made.detail.fields, made.detail.floats) == (("n", "x"), (False, True))
    assert not made.repeatable


def test_delete_needs_the_key_alone() -> None:
    made = plan(key="user:{id}", writeMode="DELETE")
    assert (made.detail.fields, made.repeatable) == ((), False)


def test_what_expires_is_not_repeatable() -> None:
    """Written again, it would come back."""
    assert plan(key="user:{id}").repeatable
    assert not plan(key="user:{id}", ttl="7d").repeatable


@pytest.mark.parametrize(
    ("key", "parts"),
    [
        ("user:{id}", ["user:", "id", ""]),
        ("{{x}}:{id}:{name}!", ["{x}:", "id", ":", "name", "!"]),
        ("{id}", ["", "id", ""]),
        ("id", ["", "id", ""]),
        ("id, name", ["", "id", ":", "name", ""]),
        ("ID", ["", "id", ""]),
    ],
)
def test_key_is_a_template_or_columns(key: str, parts: list[str]) -> None:
    assert list(plan(key=key).detail.key.parts) == parts


NO_SERVERS = "h:65536", "h:99999", "[::::]", "[1.2]:6379"
"""Hosts and ports that no server can have."""

BAD = [
    ({}, "Option key is missing"),
    ({"key": "user:{idd}"}, "did you mean 'id'"),
    ({"key": "user"}, "names column 'user', which the query does not have"),
    ({"key": "user:{}"}, "braces may contain only a column name"),
    ({"key": "user:{id!r}"}, "braces may contain only a column name"),
    ({"key": "user:{id"}, "is not a template"),
    ({"key": "{{id}}"}, "names no column"),
    ({"key": "u:{x}"}, "of type double"),
    ({"key": "u:{tags}"}, "of type list"),
    ({"key": "id", "writeMode": "update"}, "one of append, upsert, replace, increment, delete"),
    ({"key": "id", "writeMode": "append"}, "model=hash can't do writeMode=append"),
    ({"key": "id", "writeMode": "increment"}, "can't add column 'name' of type string"),
    ({"key": "id", "model": "json"}, "one of hash, string, counter, list, set, zset, stream"),
    ({"key": "id", "model": "list", "opColumn": "name"}, "opColumn does not apply to a list"),
    ({"key": "id", "model": "list", "nulls": "keep"}, "nulls does not apply to a list"),
    ({"key": "id", "maxLength": "9"}, "maxLength does not apply to a hash"),
    ({"key": "id", "model": "zset"}, "Option scoreColumn is missing"),
    ({"key": "id", "model": "zset", "scoreColumn": "name"}, "a whole number or a float"),
    ({"key": "id", "model": "counter"}, "can't add column 'name' of type string"),
    ({"key": "id", "sequenceColumn": "x"}, "by whole numbers, dates and timestamps"),
    ({"key": "id", "sequenceColumn": "id", "writeMode": "delete"}, "contradict each other"),
    ({"key": "id", "ttlColumn": "name"}, "after whole seconds or an interval"),
    ({"key": "id", "ttlColumn": "id", "writeMode": "delete"}, "contradict each other"),
    ({"key": "id", "ttlColumn": "id"}, "a hash of no field"),
    ({"key": "id", "ttlColumn": "id", "model": "stream"}, "a stream of no field"),
    ({"key": "id", "opColumn": "id"}, "opColumn names column 'id', and so does another"),
    ({"key": "id", "onBadRow": "deadLetter"}, "belong together"),
    ({"key": "id", "onBadRow": "deadLetter", "deadLetter": "a b"}, "1 to 100 of the characters"),
    ({"key": "id", "model": "string", "writeMode": "increment"}, "can't do writeMode=increment"),
    ({"key": "id", "ttl": "soon"}, "a time such as 90s"),
    ({"key": "id", "ttl": "0"}, "a time such as 90s"),
    ({"key": "id", "writeMode": "delete", "ttl": "1h"}, "contradict each other"),
    ({"key": "id", "writeMode": "delete", "nulls": "keep"}, "contradict each other"),
    ({"key": "id", "keyPrefix": "a{b}"}, "1 to 64 of the characters"),
    ({"key": "id", "chunkRows": "many"}, "a whole number from 1 to"),
    ({"key": "id", "keyy": "id"}, "did you mean 'key'"),
    ({"key": "id", "password": "a", "passwordFile": "b"}, "contradict each other"),
    ({"key": "id", "onLostCommit": "continue"}, "continue@<first>-<last>"),
    ({"key": "id", "sinkId": "a b"}, "1 to 100 of the characters"),
]


@pytest.mark.parametrize(("given", "said"), BAD, ids=[said for _, said in BAD])
def test_bad_option_is_refused_with_reason_and_remedy(given: dict[str, str], said: str) -> None:
    assert_refused(partial(plan, **given), said)


def test_increment_of_decimals_is_refused() -> None:
    with pytest.raises(OptionError, match="can't add column 'price'"):
        plan(
            pa.schema([("id", pa.int64()), ("price", pa.decimal128(9, 2))]),
            key="id",
            writeMode="increment",
        )


LOCKED = "redis+sentinel://:secret@h/mymaster"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"url": "mysql://h"}, "like redis://user:password@host"),
        *(({"url": f"redis://{server}/0"}, "a port from 0 to 65535") for server in NO_SERVERS),
        ({"url": "redis+cluster://h/1"}, "has one database"),
        ({"url": "redis+cluster://:secret@h:1,h:99999"}, "a port from 0 to 65535"),
        ({"url": "redis+sentinel://h"}, "with the name of the primary before the database"),
        ({"url": "redis+sentinel://h:1,h:99999/mymaster"}, "a port from 0 to 65535"),
        ({"url": "redis+sentinel://:secret@h/mymaster", "password": "0th3r"}, "both set the"),
        ({"url": "redis://:secret@h", "password": "0th3r"}, "both set the password"),
        ({"url": "redis://h", "tlsCaFile": "ca.pem"}, "speaks no TLS"),
        ({"url": "redis://h", "passwordFile": "/does/not/exist"}, "can't be read"),
        ({"url": "redis://:secret@h", "sentinelPassword": "0th3r"}, "needs Sentinels"),
        ({"url": "redis+cluster://h", "sentinelUser": "app"}, "needs Sentinels"),
        ({"url": LOCKED, "sentinelPassword": "0th3r", "sentinelPasswordFile": "f"}, "contradict"),
        ({"url": LOCKED, "sentinelPasswordFile": "/does/not/exist"}, "can't be read"),
    ],
)
def test_bad_address_is_refused_without_showing_a_password(
    given: dict[str, str], said: str
) -> None:
    assert_refused(partial(connected, given), said, "secret", "0th3r")


def test_brackets_in_a_password_are_no_address() -> None:
    connected({"url": "redis://:p%5Ba%5Dss@h:6379/0"})
    require_server("redis://[::1]:6379/0")
    with pytest.raises(ValueError, match="a host's name or address"):
        require_server("redis://:secret@[1.2]:6379/0")


def test_what_others_have_decided_since_matters_where_a_row_may_undo_it() -> None:
    """An append that drops the oldest elements may drop newer ones of theirs."""
    appends = {"key": "id", "model": "list"}
    assert plan(**appends).commutes
    assert not plan(**appends, maxLength="9").commutes
    assert not plan(key="id").commutes


def test_an_overwrite_has_no_keys_of_its_own() -> None:
    given = {**URL, "key": "id", "ownKeys": "true"}
    with pytest.raises(OptionError, match="overwrite and option ownKeys contradict"):
        open_sink("pyspark_redis.connector:RedisConnector", given, SCHEMA, overwrite=True)


# -- no key of a sparkonce, of whatever prefix, takes a row, is emptied or is read


SINK = "orders-1.x_y@0123456789abcdef"
OWN = [
    *("{other}:names", "{other}:decided", "{other}:open", "{other}:probe", "{a.b-c_d}:names"),
    *(f"{{other}}:{kind}:{SINK}" for kind in ("record", "staged", "lanes", "lettered")),
    "{other}:record:claim:0123456789abcdef",
    f"{{other}}:log:{SINK}:run/1",
    "{other}:letters:with\nline",
    *(f"other:{{{tag}}}:{SINK}" for tag in (0, 16183)),
    "{sparkonce}:whatever",
]
THEIRS = [
    *("{user}:7", "{user}:name", "{user}:names:7", "{user}:recorded:7", "user:{7}:cart"),
    *("x{other}:names", "user:{x}:a@0123456789abcdef", "user:{7}:a@home", "{a b}:names"),
]


@pytest.mark.parametrize("key", OWN)
def test_a_row_has_none_of_them(key: str) -> None:
    with pytest.raises(BadRow, match=r"one of sparkonce's own.*for example row:"):
        encoded(key)
    encoded(f"row:{key}")


def test_other_keys_with_braces_are_for_rows() -> None:
    encoded(*THEIRS)


def encoded(*keys: str) -> None:
    given = {"url": "redis://h", "key": "id"}
    schema = pa.schema([("id", pa.string())])
    connector = RedisConnector()
    plan = connector.plan(options.parse(RedisConnector.options, given), schema)
    connector.encoder(plan, None)(pa.record_batch([list(keys)], schema=schema))


class Server:
    def scan(self, *_: Any, **__: Any) -> tuple[int, list[bytes]]:
        return 0, [key.encode() for key in (*OWN, *THEIRS)]


def test_an_overwrite_and_a_read_pass_over_them() -> None:
    ((emptied, _),) = keys.scan_target(Server(), "*", "sparkonce")  # type: ignore[arg-type]
    assert [key.decode() for key in emptied] == THEIRS
    scan = KeyScan(b"*", (b"{sparkonce}:",))
    assert [key for key in (*OWN, *THEIRS) if not scan.is_own(key.encode())] == THEIRS
