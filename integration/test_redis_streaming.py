"""`format("redis")` under the streaming half of the conformance kit: all of its rules hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import redis
from demo.java import java_home

from sparkonce.tck.streaming import StreamingContract, StreamingSink


def counters(url: str, name: str) -> Counter[str]:
    """The counter of each id: how often it took effect."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        keys = list(client.scan_iter(f"{name}:*", count=10_000))
        with client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.hget(key, "n")
            counted = zip(keys, pipe.execute(), strict=True)
            return Counter({key.split(":", 1)[1]: int(times) for key, times in counted})


class TestRedisStreaming(StreamingContract):
    @pytest.fixture
    def sink(self, redis_url: str, unique: str, tmp_path: Path) -> StreamingSink:
        return StreamingSink(
            read=lambda: counters(redis_url, unique),
            format="redis",
            options={"url": redis_url, "key": f"{unique}:{{id}}", "writeMode": "increment"},
            env={"JAVA_HOME": str(java_home(tmp_path))},
        )
