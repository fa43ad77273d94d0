"""The program of a cell, run with its own Python: `program.py TASK RESULT`, two files of JSON."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
import uuid
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from demo.java import inspect, java_home, wheel_home

import sparkonce
from sparkonce.errors import SparkonceError
from sparkonce.spark import features
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.run import run_check

QUICK = [(store, rule) for rule in ("Q02", "Q08") for store in ("redis", "mysql", "elasticsearch")]
SLOW = [("redis", "Q04"), ("redis", "Q10")]
FOLLOWED = ("F02", "F03")
PACKAGES = ("pyspark", "sparkonce", "pyarrow", "redis", "pymysql", "elasticsearch")
KEPT = ("rule", "outcome", "sent", "lost", "doubled", "alien", "seen", "seconds")
WARNING = "Spark may mix two computations"


def checked(urls: dict[str, str], whole: bool, home: Path, java: Path) -> dict[str, Any]:
    """The findings of the kit for each available store."""
    from integration.support.kit import counting, redis_stream

    env, name = {"JAVA_HOME": str(java)}, f"m{uuid.uuid4().hex[:10]}"
    sinks = {store: counting(url, name, env=env) for store, url in urls.items()}
    rules = [(store, rule) for store, rule in QUICK + SLOW * whole if store in sinks]
    subjects: list[tuple[str, str, Any]] = [(store, rule, sinks[store]) for store, rule in rules]
    for rule in FOLLOWED if "redis" in urls else ():
        subjects.append(("redis", rule, redis_stream(urls["redis"], f"{name}:{rule}", env)))
    found = []
    with Bench(home / "bench") as bench:
        for store, rule, subject in subjects:
            finding = run_check(bench, rule, subject).as_json()
            found.append({"store": store, **{name: finding[name] for name in KEPT}})
    logs = "".join(path.read_text() for path in (home / "bench").rglob("driver.log"))
    return {"findings": found, "warned": WARNING in logs}


def refused(java: Path) -> dict[str, Any]:
    """The error that a user sees with a Spark without Python data sources."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(java)
    local = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    try:
        sparkonce.register(local.getOrCreate())
    except SparkonceError as error:
        return {"refused": str(error)}
    return {"refused": ""}


def versions(java: Path) -> dict[str, str]:
    """The versions of Python, Java and packages in the cell."""
    found = inspect(java / "bin" / "java")
    of_java = str(found.major) if found else "none"
    packages = {name: _version(name) for name in PACKAGES}
    return {"python": platform.python_version(), "java": of_java, **packages}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def main(task: Path, result: Path) -> None:
    given = json.loads(task.read_text())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        java = wheel_home(home) or java_home(home)
        if java is None:
            raise SystemExit("no Java")
        can = hasattr(features.api, "DataSource")
        made = checked(given["urls"], given["whole"], home, java) if can else refused(java)
        result.write_text(json.dumps({"versions": versions(java), **made}))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
