"""Processes of the suite, each the leader of a session: the end of a session ends all of it.

Spark's daemons of Python workers leave their process group, but not their session.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path


class Session:
    """A process in its own session; it ends with this process at the latest."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        env: Mapping[str, str],
        fds: Sequence[int] = (),
    ) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(  # noqa: S603
                command,
                env=env,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                pass_fds=fds,
                start_new_session=True,
            )
        self._watcher = _watch(self.process.pid)

    @property
    def alive(self) -> bool:
        """Whether the leader runs."""
        return self.process.poll() is None

    def send(self, line: str) -> None:
        """Write a line to the leader."""
        assert self.process.stdin is not None  # noqa: S101
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def kill_group(self) -> None:
        """SIGKILL for the leader and its JVM, as if only the driver died."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def freeze(self) -> None:
        """SIGSTOP for the whole session: a driver that hangs without knowing it."""
        _signal_all(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT for the whole session."""
        _signal_all(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        """End the whole session."""
        kill_session(self.process.pid)
        self.process.wait()
        # Before the pipe is closed: another session may soon get this number.
        self._watcher.kill()
        self._watcher.communicate()
        with suppress(OSError):
            self.process.communicate()

    def last_words(self, lines: int = 15) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def kill_session(leader: int, patience: float = 10.0) -> None:
    """SIGKILL for all processes of a session, until none is left."""
    deadline = time.monotonic() + patience
    while _signal_all(leader, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.02)


def _signal_all(leader: int, number: signal.Signals) -> bool:
    """Send a signal to a session; return whether it had any process."""
    members = list(_members(leader))
    for pid in members:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    return bool(members)


def _members(leader: int) -> Iterator[int]:
    for pid in _pids():
        with suppress(OSError):
            if os.getsid(pid) == leader and not _is_zombie(pid):
                yield pid


def _pids() -> list[int]:
    if Path("/proc/self").exists():
        return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    listed = subprocess.run(["ps", "-A", "-o", "pid="], capture_output=True, check=True)  # noqa: S607
    return [int(pid) for pid in listed.stdout.split()]


def _is_zombie(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return False


def _watch(leader: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", __name__, str(leader)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


if __name__ == "__main__":
    # The input ends when the process that started this one ends.
    sys.stdin.read()
    kill_session(int(sys.argv[1]))
