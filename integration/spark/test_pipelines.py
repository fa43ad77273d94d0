"""A declarative pipeline whose flow ends in a sink: runs, runs again, and is refreshed in full."""

from __future__ import annotations

import json
import os
import subprocess
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from integration.support.runs import counts, once
from integration.support.servers.spark import environment

pytest.importorskip("pyspark.pipelines", reason="this PySpark has no pipelines")
pytestmark = pytest.mark.slow

FLOWS = """
from pyspark import pipelines as dp
from pyspark.sql import SparkSession

spark = SparkSession.active()
dp.create_sink(
    "counters", "redis", {{"url": "{url}", "key": "{name}:{{id}}", "writeMode": "increment"}}
)


def rows(folder):
    return spark.readStream.schema("id bigint, n bigint").json(f"{home}/{{folder}}")


@dp.append_flow(target="counters", name="first")
def first():
    return rows("first")


@dp.append_flow(target="counters", name="second")
def second():
    return rows("second")
"""


class Pipeline:
    """A project of `spark-pipelines`, with two flows into one sink."""

    def __init__(self, home: Path, url: str, name: str) -> None:
        import pyspark

        self.home, self.url, self.name = home, url, name
        self.command = str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")
        (home / "flows.py").write_text(FLOWS.format(url=url, name=name, home=home))
        spec = f"""
            name: counting
            storage: file://{home}/storage
            libraries: [{{glob: {{include: flows.py}}}}]
            configuration: {{spark.sql.shuffle.partitions: "2"}}
        """
        (home / "spark-pipeline.yml").write_text(textwrap.dedent(spec))

    def put(self, folder: str, ids: range) -> None:
        place = self.home / folder
        place.mkdir(exist_ok=True)
        lines = "".join(json.dumps({"id": i, "n": 1}) + "\n" for i in ids)
        (place / f"{ids.start}.json").write_text(lines)

    def run(self, *arguments: str) -> str:
        """All that a run says."""
        done = subprocess.run(
            [self.command, "run", *arguments],
            cwd=self.home,
            env={**os.environ, **environment(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        return done.stdout + done.stderr

    def counts(self) -> Counter[int]:
        return counts(self.url, self.name)


def test_rows_of_a_flow_count_once_and_a_full_refresh_is_refused(
    tmp_path: Path, redis_url: str, unique: str
) -> None:
    pipeline = Pipeline(tmp_path, redis_url, unique)
    pipeline.put("first", range(1000))
    pipeline.put("second", range(1000, 1500))
    assert "Run is COMPLETED" in pipeline.run()
    assert pipeline.counts() == once(range(1500))

    pipeline.put("first", range(1500, 2000))
    assert "Run is COMPLETED" in pipeline.run()
    assert pipeline.counts() == once(range(2000))

    said = pipeline.run("--full-refresh-all")
    assert "a pipeline fully refreshed" in said
    assert "onNewCheckpoint=continue:" in said
    assert pipeline.counts() == once(range(2000))
