"""``model=stream``: a row is an entry of a stream, each of its columns a field."""

from __future__ import annotations

from pyspark_redis.models.hash import written
from pyspark_redis.models.model import Model
from sparkonce.change import Append

STREAM = Model("stream", (Append,), written, takes=("maxLength",))
