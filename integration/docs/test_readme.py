"""The example in README runs as it stands, but for its addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

README = Path(__file__).parents[2] / "README.md"


def stop_after_some_epochs(query: StreamingQuery) -> None:
    while query.lastProgress is None or query.lastProgress.batchId < 3:
        assert not query.exception()
    query.stop()


def rows_read(checkpoint: Path) -> Iterator[int]:
    """By the end of each epoch: the rate source notes the seconds that it has given rows for."""
    for epoch in checkpoint.glob("offsets/[0-9]*"):
        yield 1000 * json.loads(epoch.read_text().splitlines()[-1])


def test_example_in_readme_counts_each_row_once(
    spark: SparkSession,
    redis_url: str,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spark is SparkSession.getActiveSession()
    monkeypatch.setattr(StreamingQuery, "awaitTermination", stop_after_some_epochs)
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    for here, there in {
        "redis://localhost:6379/0": redis_url,
        "user:{user}": f"{unique}:{{user}}",
        "/tmp/": f"{tmp_path}/",
    }.items():
        assert here in code
        code = code.replace(here, there)
    exec(code, {})
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        counted = sum(int(client.hget(f"{unique}:{user}", "clicks") or 0) for user in range(10))
    assert counted > 0
    assert counted in set(rows_read(tmp_path / "checkpoints" / "clicks"))
