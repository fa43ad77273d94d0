"""The wheel, installed into an empty environment, as a user does it."""

from __future__ import annotations

import os
import re
import subprocess
import textwrap
from collections import Counter
from pathlib import Path
from zipfile import ZipFile

import pytest
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.counted import counts
from integration.environments import Environment

pytestmark = pytest.mark.long

PROGRAM = textwrap.dedent(
    """
    import sys
    from pyspark.sql import SparkSession

    form, url, name, home = sys.argv[1:]
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    some = spark.range(10).selectExpr("id", "bigint(1) as n")
    some.write.mode("overwrite").parquet(f"{home}/in")
    rows = spark.readStream.schema(some.schema).parquet(f"{home}/in")
    writer = rows.writeStream.format(form).option("checkpointLocation", f"{home}/{form}")
    options = {
        "redis": {"url": url, "key": name + ":{id}"},
        "mysql": {"url": url, "key": "id", "dbtable": name, "createTable": "true"},
        "elasticsearch": {
            "url": url,
            "key": "id",
            "index": name,
            "createIndex": "true",
            "writeMode": "increment",
        },
    }
    writer = writer.options(**options.get(form, {}))
    writer.trigger(availableNow=True).start().awaitTermination()
    print("rows written")
    """
)


class Installed(Environment):
    """An environment in which the program runs."""

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = self.home / "program.py"
        program.write_text(PROGRAM)
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        environment |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), str(self.python))
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
        return subprocess.run(
            [self.python, program, *arguments, str(self.home)],
            env={**environment, "JAVA_HOME": str(java_home(self.home))},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    made = Installed(tmp_path_factory.mktemp("venv"))
    made.install("pyspark", str(wheel))
    return made


@pytest.fixture
def empty(environment: Installed) -> Installed:
    """The wheel without any extra, whichever test came before."""
    environment.pip("uninstall", "--yes", "redis", "hiredis", "pymysql", "elasticsearch", "pytest")
    return environment


@pytest.fixture(scope="session", params=["mariadb"])
def mysql_name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def install_and_use(empty: Installed, wheel: Path, form: str, url: str, name: str) -> str:
    """What `sparkonce status` says of a sink, once its extra is installed."""
    missing = empty.run(form, url, name)
    assert missing.returncode != 0
    assert f"pip install 'sparkonce[{form}]'" in missing.stderr
    empty.install(f"{wheel}[{form}]")
    works = empty.run(form, url, name)
    assert "rows written" in works.stdout, works.stderr
    return subprocess.run(
        [empty.home / "bin" / "sparkonce", "status", "--json", url],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_nothing_of_it_asks_for_a_pyspark(wheel: Path) -> None:
    """Or pip would put another one in the place of a platform's own."""
    with ZipFile(wheel) as files:
        (metadata,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        needs = re.findall(r"^Requires-Dist: ([\w-]+)", files.read(metadata).decode(), re.M)
    assert {"pyarrow", "redis", "pymysql", "elasticsearch", "pytest"} <= {*needs}
    assert "pyspark" not in needs


def test_other_formats_work_without_an_extra(empty: Installed, unique: str) -> None:
    other = empty.run("noop", "", unique)
    assert "rows written" in other.stdout, other.stderr


def test_one_pip_install_makes_redis_work(
    empty: Installed, wheel: Path, redis_url: str, unique: str
) -> None:
    status = install_and_use(empty, wheel, "redis", redis_url, unique)
    assert f'"target": "hash:{unique}:{{id}}"' in status


@pytest.mark.parametrize("mysql_name", ["mysql"], scope="session")
def test_one_pip_install_makes_mysql_work(
    empty: Installed, wheel: Path, mysql_url: str, table: str
) -> None:
    status = install_and_use(empty, wheel, "mysql", mysql_url, table)
    assert f'.{table}"' in status


def test_one_pip_install_makes_elasticsearch_work(
    empty: Installed, wheel: Path, elasticsearch_url: str, elastic: Elasticsearch, index: str
) -> None:
    status = install_and_use(empty, wheel, "elasticsearch", elasticsearch_url, index)
    assert f'"target": "index:{index}"' in status
    assert counts(elastic, index) == Counter(range(10))


def test_one_pip_install_brings_the_kit(empty: Installed, wheel: Path) -> None:
    empty.install(f"{wheel}[tck]")
    program = "import sparkonce.tck.streaming, sparkonce.tck.explore.__main__ as e; e.main()"
    kit = subprocess.run(
        [empty.python, "-c", program, "--seeds", "3"], capture_output=True, text=True, check=True
    )
    assert "explore: schedules=3 failed=0" in kit.stdout
