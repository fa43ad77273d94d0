"""The wheel, installed into an empty environment, as a user does it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from zipfile import ZipFile

import pytest
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import counts
from integration.support.environments import Environment

pytestmark = pytest.mark.slow
PROGRAM = textwrap.dedent(
    """
    import json
    import sys
    from pyspark.sql import SparkSession

    sinks, home = json.loads(sys.argv[1]), sys.argv[2]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    some = spark.range(10).selectExpr("id", "bigint(1) as n")
    some.write.mode("overwrite").parquet(f"{home}/in")
    for form, options in sinks.items():
        rows = spark.readStream.schema(some.schema).parquet(f"{home}/in")
        writer = rows.writeStream.format(form).options(**options)
        writer = writer.option("checkpointLocation", f"{home}/{form}")
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        except Exception as error:
            print(form, "failed:", str(error).replace(chr(10), " "))
        else:
            print(form, "wrote rows")
    """
)
WRITTEN = re.compile(r"^(\S+) wrote rows$", re.M)


class Installed(Environment):
    """An environment in which the program runs."""

    def run(self, sinks: Mapping[str, Mapping[str, str]]) -> str:
        """What the program says."""
        program = self.home / "program.py"
        program.write_text(PROGRAM)
        ours = ("PYTHONPATH", "SPARK_HOME")  # its own sparkonce, and its own Spark
        environment = {k: v for k, v in os.environ.items() if k not in ours}
        environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(self.python))
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        return subprocess.run(
            [self.python, program, json.dumps(sinks), str(self.home)],
            env={**environment, "JAVA_HOME": str(java_home(self.home))},
            cwd=self.home,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=300,
        ).stdout

    def command(self, *words: str) -> str:
        """What one of its commands says."""
        program = [self.home / "bin" / words[0], *words[1:]]
        return subprocess.run(program, stdout=subprocess.PIPE, text=True, check=True).stdout


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = Installed(tmp_path_factory.mktemp("venv"))
    made.install("pyspark", str(wheel))
    return made


@pytest.fixture(scope="session", params=["mariadb"])
def mysql_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_nothing_of_it_asks_for_a_pyspark(wheel: Path) -> None:
    """Or pip would put another one in the place of a platform's own."""
    with ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        needs = re.findall(r"^Requires-Dist: ([\w-]+)", files.read(metadata).decode(), re.M)
    assert {"pyarrow", "redis", "pymysql", "elasticsearch", "pytest"} <= {*needs}
    assert "pyspark" not in needs


def test_one_pip_install_makes_a_store_work(
    environment: Installed,
    wheel: Path,
    redis_url: str,
    mysql_url: str,
    elasticsearch_url: str,
    elastic: Elasticsearch,
    index: str,
) -> None:
    """Without it the error says what to install, and other formats work."""
    sinks = {
        "redis": {"url": redis_url, "key": f"{index}:{{id}}"},
        "mysql": {"url": mysql_url, "key": "id", "dbtable": index, "createTable": "true"},
        "elasticsearch": {
            "url": elasticsearch_url,
            "key": "id",
            "index": index,
            "createIndex": "true",
            "writeMode": "increment",
        },
    }
    missing = environment.run({**sinks, "noop": {}})
    assert WRITTEN.findall(missing) == ["noop"]
    targets = {"redis": f'"hash:{index}:{{id}}"', "mysql": f'.{index}"', "elasticsearch": index}
    for form in sinks:
        assert f"the wheel of sparkonce with extra [{form}] " in missing
        environment.install(f"{wheel}[{form}]")
    assert WRITTEN.findall(environment.run(sinks)) == [*sinks]
    for form, sink in sinks.items():
        assert targets[form] in environment.command("sparkonce", "status", "--json", sink["url"])
    assert counts(elastic, index) == Counter(range(10))


def test_one_pip_install_brings_the_kit(environment: Installed, wheel: Path) -> None:
    environment.install(f"{wheel}[tck]")
    imports = "import sparkonce.tck.streaming, sparkonce.tck.sources"
    program = f"{imports}, sparkonce.tck.explore.__main__ as e; e.main()"
    kit = environment.command("python", "-c", program, "--seeds", "3")
    assert "explore: schedules=3 failed=0" in kit
