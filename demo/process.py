"""A child process that never outlives this one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil
from typing_extensions import Self

from demo.trouble import Trouble

# The shell's `read` returns when the other end of its pipe is closed: when this process is gone,
# whatever ended it.
WATCH = 'read -r _; kill -s KILL -- "-$1"'


class Child:
    """A process in a session of its own, so that Ctrl-C reaches this process alone."""

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
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", WATCH, "sh", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def family(self) -> list[psutil.Process]:
        """The process and everything below it."""
        try:
            process = psutil.Process(self._process.pid)
            return [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def kill(self, family: Sequence[psutil.Process] | None = None) -> None:
        """SIGKILL to the whole family, this process first; back when all are gone."""
        for process in self.family() if family is None else family:
            if process.is_running():
                process.kill()
        ...
