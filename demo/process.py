"""A child process that never outlives this one."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from demo.trouble import Trouble

# The shell's `read` returns once the other end of its pipe is closed: when this process is gone,
# whatever ended it.
WATCH = 'read -r _; kill -s KILL -- "-$1"'


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
        self._release()
        _, alive = psutil.wait_procs(family, timeout=10)
        if any(_runs(process) for process in alive):
            raise Trouble(f"{len(alive)} processes of the driver outlived SIGKILL")

    def _release(self) -> None:
        self._watcher.kill()  # before its pipe is closed: the number may soon be another process's
        self._watcher.communicate()


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False
