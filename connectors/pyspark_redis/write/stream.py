"""``model=stream``: a row is an entry of a stream, each of its columns a field."""

from __future__ import annotations

from functools import partial

from pyspark_redis.write.model import Model, all_columns
from sparkonce.change import Append

MOST_FIELDS = 3900
"""Lua hands over 8,000 arguments in one call, and Redis takes an entry by one."""

STREAM = Model(
    "stream", (Append,), partial(all_columns, "stream", MOST_FIELDS), takes=("maxLength",)
)
