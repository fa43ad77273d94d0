"""How the driver is started: each time the same."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from demo.process import Child
from demo.redis_server import URL

ROOT = Path(__file__).parents[1]

SUBMIT = [
    # More slots than two streams use: neither waits for the other's tasks.
    *("--master", "local[4]"),
    *("--conf", "spark.ui.enabled=false"),
    *("--conf", "spark.ui.showConsoleProgress=false"),
    # Half of the demo is Spark's start, for which Java's second compiler does more harm than good.
    *("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    "pyspark-shell",
]


@dataclass(frozen=True)
class DemoDriver:
    """The user's program, and where it finds and leaves things."""

    url: str
    java: Path
    files: Path
    checkpoints: Path
    log: Path

    def start(self) -> Child:
        """Start it as a process of its own."""
        command: list[str | Path] = [
            sys.executable,
            "-m",
            "demo.driver",
            self.files,
            self.checkpoints,
        ]
        return Child(command, self.log, self.checkpoints, self._environment())

    @property
    def shown_log(self) -> Path:
        """Where its log is, for people who stand in the project."""
        return self.log.relative_to(ROOT)

    def last_words(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(line[:200] for line in lines[-25:])

    def _environment(self) -> dict[str, str]:
        # The settings of another Spark that the user may have would be taken for this one's.
        other = ("SPARK_", "PYSPARK_", "PYTHON")
        mine = {name: text for name, text in os.environ.items() if not name.startswith(other)}
        return {
            **mine,
            URL: self.url,
            "JAVA_HOME": str(self.java),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join(SUBMIT),
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
