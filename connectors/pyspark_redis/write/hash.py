"""``model=hash``: a row is a hash, each of its columns a field."""

from __future__ import annotations

from functools import partial

from pyspark_redis.write.model import Fields, Model, all_columns, few
from sparkonce import checks
from sparkonce.change import Delete, Increment, Names, Upsert

MOST_FIELDS = 5000


def _added(beside: Fields) -> Names:
    adds = "Redis adds 64-bit integers and binary floats only"
    return few("hash", MOST_FIELDS, checks.require_addable(beside, checks.is_number, adds))


HASH = Model(
    "hash",
    (Upsert, Increment, Delete),
    partial(all_columns, "hash", MOST_FIELDS),
    _added,
    takes=("opColumn", "sequenceColumn", "nulls"),
)
