"""``model=list``, ``set`` and ``zset``: a row is an element of what lies under its key.

The element is the text of the one column beside the key's, or JSON of the row.
"""

from __future__ import annotations

from functools import partial

from pyspark_redis.write.model import Model, one_value
from sparkonce.change import Append, Change, Delete, Increment, Upsert


def _collection(name: str, changes: tuple[type[Change], ...], *takes: str) -> Model:
    return Model(name, changes, partial(one_value, name), takes=takes, joins=True, collects=True)


LIST = _collection("list", (Append,), "maxLength")
SET = _collection("set", (Upsert, Delete), "opColumn")
ZSET = _collection("zset", (Upsert, Increment, Delete), "opColumn", "scoreColumn")
