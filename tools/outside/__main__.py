"""Prints and writes the tables of all subjects: `python -m tools.outside [DIR]`."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

from demo.java import java_home
from integration.support.servers.kafka import KafkaProcess
from integration.support.servers.mysql import SERVERS
from integration.support.servers.redis import REDIS
from rich.console import Console
from tools.outside import files, jdbc, kafka, meta_capi, redis_incr
from tools.outside.events import EventServer

from sparkonce.tck import report
from sparkonce.tck.spark.run import Subject
from sparkonce.tck.streaming import Finding, run_contract

PACKAGES = ("pyspark", "redis", "pyspark-data-sources")
MYSQL = SERVERS["mysql"]


def main(directory: Path) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=report.WIDTH)
    console.print("Checked:", ", ".join(f"{name} {version(name)}" for name in PACKAGES))
    with TemporaryDirectory() as scratch, EventServer() as server:
        env = {"JAVA_HOME": str(java_home(Path(scratch)))}
        check(console, directory, "redis-incr", redis_incr.sink(REDIS.find().url, "outside", env))
        check(console, directory, "meta-capi", meta_capi.sink(server, env))
        counted = redis_incr.batches(REDIS.find().url, "batches", env)
        check(console, directory, "redis-batches", counted)
        table = f"outside{uuid.uuid4().hex[:8]}"
        check(console, directory, "jdbc", jdbc.sink(MYSQL.find().url, table, env))
        check(console, directory, "files", lambda: files.source(Path(mkdtemp(dir=scratch)), env))
        with KafkaProcess() as broker:
            check(console, directory, "kafka", lambda: kafka.source(broker.address, env))


def check(
    console: Console, directory: Path, name: str, subject: Subject | Callable[[], Subject]
) -> None:
    def tell(finding: Finding) -> None:
        console.print(f"{finding.rule.number} {finding.outcome}: {finding.said}", style="dim")

    findings = run_contract(subject, tell=tell)
    title = (subject() if callable(subject) else subject).title
    console.print(report.as_table(title, findings), width=report.WIDTH)
    report.write(directory, name, title, findings)


if __name__ == "__main__":
    try:
        main(Path(*sys.argv[1:] or [".build/outside"]))
    finally:
        REDIS.close()
        MYSQL.close()
