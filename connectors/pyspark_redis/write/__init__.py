"""What a row becomes in Redis: each model is a file here, with the Lua of its write modes."""

from __future__ import annotations

from pyspark_redis.write.counter import COUNTER
from pyspark_redis.write.elements import LIST, SET, ZSET
from pyspark_redis.write.hash import HASH
from pyspark_redis.write.model import Model
from pyspark_redis.write.stream import STREAM
from pyspark_redis.write.string import STRING

MODELS: dict[str, Model] = {
    model.name: model for model in (HASH, STRING, COUNTER, LIST, SET, ZSET, STREAM)
}
"""By the value of option ``model``. The first one is its default."""
