"""What a target holds, before an overwrite replaces it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark_redis.server import own_keys

if TYPE_CHECKING:
    import redis

SCANNED = 1000
"""Keys that the server looks through for one answer, and may delete in one step."""


def found(client: redis.Redis, pattern: str, prefix: str) -> Iterator[tuple[list[Any], bool]]:
    """Keys of the target, some at a time, and whether they are the last.

    See https://redis.io/docs/latest/commands/scan: a key that is there all the time is found.

    Args:
        client: of the server.
        pattern: of the target's keys.
        prefix: option ``keyPrefix``; its keys, and those of any other sparkonce, stay.
    """
    cursor, (own, _) = None, own_keys.begins(prefix)
    while cursor != 0:
        answer: tuple[int, list[Any]] = client.scan(cursor or 0, match=pattern, count=SCANNED)
        cursor, keys = answer
        theirs = [key for key in keys if not own_keys.is_own(key, own)]
        # The last answer counts though it be empty: by it the script knows that all is deleted.
        if theirs or cursor == 0:
            yield theirs, cursor == 0
