"""The example in README runs as it stands, but for its addresses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import redis
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

README = Path(__file__).parents[1] / "README.md"


def test_example_in_readme_counts_rides(
    spark: SparkSession, redis_url: str, unique: str, tmp_path: Path
) -> None:
    assert spark is SparkSession.getActiveSession()
    _, code = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    (tmp_path / "rides").mkdir()
    for file, airports in enumerate((["JFK", "JFK", "EWR"], ["JFK"])):
        rides = [{"id": n, "airport": name, "miles": 100} for n, name in enumerate(airports)]
        text = "\n".join(json.dumps(ride) for ride in rides)
        (tmp_path / "rides" / f"{file}.json").write_text(text)
    for here, there in {
        "redis://localhost:6379/0": redis_url,
        "airport:{airport}": f"{unique}:{{airport}}",
        "/data/": f"{tmp_path}/",
    }.items():
        assert here in code
        code = code.replace(here, there)
    names: dict[str, object] = {}
    exec(code, names)
    query = names["query"]
    assert isinstance(query, StreamingQuery)
    query.processAllAvailable()
    query.stop()
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.hgetall(f"{unique}:JFK") == {"rides": "3", "miles": "300"}
        assert client.hgetall(f"{unique}:EWR") == {"rides": "1", "miles": "100"}
