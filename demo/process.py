"""The processes of the demo: none outlives the one that started it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from demo import Trouble

ROOT = Path(__file__).parents[1]
URL = "SPARKONCE_DEMO_REDIS_URL"

# The shell's `read` returns once the other end of its pipe is closed: when this process is gone,
# whatever ended it.
WATCH = 'read -r _; kill -s KILL -- "-$1"'
SUBMIT = [
    # More slots than two streams use: neither waits for the other's tasks.
    *("--master", "local[4]"),
    *("--conf", "spark.ui.enabled=false"),
    *("--conf", "spark.ui.showConsoleProgress=false"),
    # Half of the demo is Spark's start, for which Java's second compiler does more harm than good.
    *("--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    "pyspark-shell",
]


class Child:
    """A process in a session of its own, so that Ctrl-C reaches only the one that started it."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        cwd: Path,
        env: Mapping[str, str] | None = None,
    ) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "sh", str(self._process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def status(self) -> int | None:
        """The exit status, a signal's number below zero; None while it runs."""
        return self._process.poll()

    def family(self) -> list[psutil.Process]:
        """The process and everything below it."""
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(self._process.pid)
            return [process, *process.children(recursive=True)]
        return []

    def kill(self, family: Sequence[psutil.Process] = ()) -> None:
        """SIGKILL for the family, this process first; back when all are gone."""
        family = family or self.family()
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        self._watcher.kill()  # before its pipe is closed: the pid may soon be another process's
        self._watcher.communicate()
        _, alive = psutil.wait_procs(family, timeout=10)
        if any(_runs(process) for process in alive):
            raise Trouble(f"{len(alive)} processes of the driver outlived SIGKILL")


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


@dataclass(frozen=True)
class DemoDriver:
    """The user's program, and where it finds and leaves things."""

    url: str
    java: Path
    files: Path
    checkpoints: Path
    log: Path

    def start(self) -> Child:
        """Start it as a process of its own, each time the same."""
        command = [sys.executable, "-m", "demo.driver", self.files, self.checkpoints]
        # The settings of another Spark that the user may have would be taken for this one's.
        other = ("SPARK_", "PYSPARK_", "PYTHON")
        mine = {name: text for name, text in os.environ.items() if not name.startswith(other)}
        own = {
            URL: self.url,
            "JAVA_HOME": str(self.java),
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": shlex.join(SUBMIT),
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return Child(command, self.log, self.checkpoints, mine | own)

    @property
    def shown_log(self) -> Path:
        """Where its log is, for people who stand in the project."""
        return self.log.relative_to(ROOT)

    def failed(self, why: str) -> Trouble:
        """What to raise, with the end of its log."""
        lines = self.log.read_text(errors="replace").splitlines()
        end = "\n".join(line[:200] for line in lines[-25:])
        return Trouble(f"{why}. The end of {self.shown_log}:\n{end}")
