"""Connectors of the JVM, on the newest Spark that they are made for."""

from __future__ import annotations

import json
import os
import subprocess
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from demo.java import java_home
from integration.support.servers.cache import CACHE

SPARK = "pyspark==3.4.4"
PROGRAM = Path(__file__).with_name("old_spark_program.py")


def write(
    source: Path, jars: Sequence[Path], named: str, targets: Sequence[Mapping[str, str]]
) -> list[float]:
    """The seconds that each folder of rows takes, once all were written before.

    Args:
        source: of folders of parquet.
        jars: of the connector.
        named: the name of its format.
        targets: options of the writes before, and of those that count; Java compiles what runs
            often.
    """
    return _run(jars, named, {"targets": [*targets], "folders": sorted(map(str, source.iterdir()))})


def read(
    jars: Sequence[Path], named: str, options: Mapping[str, str], schema: str, rounds: int
) -> list[float]:
    """The seconds of each read into `noop`."""
    told = {"options": options, "schema": schema, "rounds": rounds}
    return _run(jars, named, told)


def _run(jars: Sequence[Path], named: str, told: Mapping[str, object]) -> list[float]:
    home = CACHE / "hadoop-spark"
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        install = [python, "-m", "pip", "install", "-q", SPARK, "setuptools"]
        subprocess.run(install, check=True)
    given = {"jars": ",".join(map(str, jars)), "format": named, **told}
    said = subprocess.run(
        [python, PROGRAM, json.dumps(given)],
        env={**os.environ, "JAVA_HOME": str(java_home(home)), "PYSPARK_PYTHON": str(python)},
        check=True,
        stdout=subprocess.PIPE,
    )
    took: list[float] = json.loads(said.stdout.splitlines()[-1])
    return took
