"""``model=hash``: a row is a hash, each of its columns a field."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_redis.models.model import Model
from sparkonce import checks
from sparkonce.change import Delete, Increment, Names, Upsert
from sparkonce.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_redis.models.template import Key

MOST_FIELDS = 5000


def _written(_key: Key, schema: pa.Schema) -> Names:
    names = checks.require_texts(schema, "Redis")
    if len(names) > MOST_FIELDS:
        raise OptionError(
            f"The query has {len(names):,} columns to write",
            why=f"the loop that writes a hash in Redis can have {MOST_FIELDS:,} at most",
            todo="collect some of them in a struct, an array or a map",
        )
    return tuple(names)


def _added(key: Key, schema: pa.Schema) -> Names:
    fields = [field for field in schema if field.name not in key.columns]
    adds = "Redis adds 64-bit integers and binary floats only"
    return tuple(checks.require_addable(fields, checks.is_number, adds))


HASH = Model("hash", (Upsert, Increment, Delete), _written, _added)
