"""A driver in a process of its own, which a test can kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from integration.support.runs import Job


class DriverProcess:
    """`integration/support/driver_program.py` in a process group of its own."""

    def __init__(
        self, job: Job, checkpoint: str | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        program = Path(__file__).with_name("driver_program.py")
        where = [str(job.input), checkpoint or str(job.checkpoint)]
        self.process = subprocess.Popen(
            [sys.executable, str(program), job.url, job.name, *where],
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
