"""``model=string``: a row is a string, the text of its one column beside the key's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_redis.models.model import Model
from sparkonce import checks
from sparkonce.change import Delete, Names, Upsert
from sparkonce.errors import OptionError

if TYPE_CHECKING:
    import pyarrow as pa

    from pyspark_redis.models.template import Key


def _written(key: Key, schema: pa.Schema) -> Names:
    fields = [field for field in schema if field.name not in key.columns]
    if len(fields) != 1:
        named = ", ".join(field.name for field in fields) or "none"
        raise OptionError(
            f"Option model=string needs one column beside the key's, and the query has {named}",
            why="a string holds one value",
            todo="select the key and that column; to_json(struct(*)) makes one of several",
        )
    return tuple(checks.require_texts(fields, "Redis"))


STRING = Model("string", (Upsert, Delete), _written)
