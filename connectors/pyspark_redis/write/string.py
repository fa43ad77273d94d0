"""``model=string``: a row is a string, the text of its one column beside the key's, or JSON."""

from __future__ import annotations

from functools import partial

from pyspark_redis.write.model import Model, one_value
from sparkonce.change import Delete, Upsert

STRING = Model(
    "string",
    (Upsert, Delete),
    partial(one_value, "string"),
    takes=("opColumn", "nulls"),
    joins=True,
)
