"""No key of a sparkonce, of whatever prefix, takes a row, is emptied or is read."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from pyspark_redis.connector import RedisConnector
from pyspark_redis.read.servers import KeyScan
from pyspark_redis.target import keys
from sparkonce import options
from sparkonce.errors import BadRow

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
    with pytest.raises(BadRow, match=r"one of sparkonce's own.*such as row:"):
        encoded(key)
    encoded(f"row:{key}")


def test_other_keys_with_braces_are_for_rows() -> None:
    encoded(*THEIRS)


def encoded(*keys: str) -> None:
    given = {"url": "redis://h", "key": "id"}
    schema = pa.schema([("id", pa.string())])
    connector = RedisConnector()
    plan = connector.plan(options.parse(RedisConnector.options, given), schema)
    connector.encoder(plan)(pa.record_batch([list(keys)], schema=schema))


class Server:
    def scan(self, *_: Any, **__: Any) -> tuple[int, list[bytes]]:
        return 0, [key.encode() for key in (*OWN, *THEIRS)]


def test_an_overwrite_and_a_read_pass_over_them() -> None:
    ((emptied, _),) = keys.scan_target(Server(), "*", "sparkonce")  # type: ignore[arg-type]
    assert [key.decode() for key in emptied] == THEIRS
    scan = KeyScan(b"*", (b"{sparkonce}:",))
    assert [key for key in (*OWN, *THEIRS) if not scan.is_own(key.encode())] == THEIRS
