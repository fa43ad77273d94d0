"""A standalone cluster of Spark: a master and two workers of one core, all on this machine.

Not ``local-cluster``: all its workers have one host name, and Spark starts no twin of a task on the
host that already runs the task. Here the workers have two names of one address.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from pathlib import Path

from sparkonce.tck.spark.processes import Session
from sparkonce.tck.spark.remote import SparkTrouble

HOSTS = ("127.0.0.1", "localhost")
PATIENCE = 120.0


class Cluster:
    """Three processes, and the address of their master."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.home, self.env, self.port = home, {**env, "SPARK_LOG_DIR": str(home)}, _free_port()
        self.sessions: list[Session] = []
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """The address of the master."""
        return f"spark://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop all processes, including executors."""
        while self.sessions:
            self.sessions.pop().close()

    def _start(self) -> None:
        self._launch("master.Master", "--host", "127.0.0.1", "--port", str(self.port))
        self._await_master()
        for host in HOSTS:
            work = self.home / f"work-{host}"
            size = ["--cores", "1", "--memory", "1g", "--work-dir", str(work)]
            self._launch("worker.Worker", "--host", host, *size, self.url)

    def _launch(self, part: str, *arguments: str) -> None:
        from pyspark.find_spark_home import _find_spark_home

        program = str(Path(_find_spark_home(), "bin", "spark-class"))
        command = [program, f"org.apache.spark.deploy.{part}", "--webui-port", "0", *arguments]
        self.sessions.append(Session(command, self.home / "cluster.log", self.env))

    def _await_master(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not _answers(self.port):
            if time.monotonic() > deadline or not self.sessions[0].alive:
                raise SparkTrouble(f"no master started:\n{self.sessions[0].last_words()}")
            time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
