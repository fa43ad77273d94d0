"""``model=string``: a row is a string, the text of its one column beside the key's, or JSON."""

from __future__ import annotations

from pyspark_redis.models.model import Fields, Model, one_value
from sparkonce.change import Delete, Names, Upsert


def _written(free: Fields, beside: Fields) -> Names:
    return one_value("string", free, beside)


STRING = Model("string", (Upsert, Delete), _written, takes=("opColumn", "nulls"), joins=True)
