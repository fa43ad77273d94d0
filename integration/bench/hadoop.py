"""elasticsearch-hadoop, on the newest Spark that it is made for."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Mapping
from pathlib import Path

from demo.java import java_home
from integration.servers.maven import CACHE, jar

CONNECTOR = "org.elasticsearch:elasticsearch-spark-30_2.12:9.4.9"
SPARK = "pyspark==3.4.4"
PROGRAM = Path(__file__).with_name("hadoop_program.py")
TUNED = {
    "es.batch.size.entries": "5000",
    "es.batch.size.bytes": "5mb",
    "es.batch.write.refresh": "false",
}


def write(
    source: Path, port: int, warm: str, index: str, settings: Mapping[str, str]
) -> list[float]:
    """The seconds that each folder of rows takes, once all are written to another index."""
    home = CACHE / "hadoop-spark"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        install = [python, "-m", "pip", "install", "-q", SPARK, "setuptools"]
        subprocess.run(install, check=True)
    folders = sorted(map(str, source.iterdir()))
    said = subprocess.run(
        [python, PROGRAM, jar(CONNECTOR), str(port), warm, index, json.dumps(settings), *folders],
        env={**os.environ, "JAVA_HOME": str(java_home(home)), "PYSPARK_PYTHON": str(python)},
        check=True,
        stdout=subprocess.PIPE,
    )
    took: list[float] = json.loads(said.stdout.splitlines()[-1])
    return took
