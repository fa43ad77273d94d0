"""A server process of a test, which never outlives the test process."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from integration.support.servers.finder import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Self


HOST = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """Where a server runs.

    Attributes:
        host: its address.
        within: the words before its command that start it there.
        port: its port; 0 for a free one.
    """

    host: str = HOST
    within: tuple[str, ...] = ()
    port: int = 0


HERE = Place()


class Port:
    """A free port, chosen by the system and reserved until released.

    On Linux a socket that is bound but does not listen reserves the port: with SO_REUSEADDR the
    server can still listen on it, but the system assigns it to no other socket. On other systems
    the socket would also block the server, so the port is only chosen, not reserved.
    """

    def __init__(self) -> None:
        self._hold = socket.socket()
        self._hold.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._hold.bind((HOST, 0))
        self.number: int = self._hold.getsockname()[1]
        if sys.platform != "linux":
            self._hold.close()

    def release(self) -> None:
        self._hold.close()


def wait_until(ready: Callable[[], bool], seconds: float, what: str) -> None:
    """Poll until ready, for at most `seconds`."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise UnavailableError(f"{what} within {seconds:g} s")
        time.sleep(0.01)


def tidy_when_terminated() -> None:
    """Let SIGTERM end this program like Ctrl-C, so that its servers and folders are removed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


@dataclass(frozen=True)
class Binary:
    """A server that this machine can run: its command, and a maker of data directories."""

    how: str
    command: tuple[str, ...]
    install: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        asked = [*self.command, "--version"]
        shown = subprocess.run(asked, capture_output=True, text=True, check=True)
        found = re.search(r"(?:v=|Ver )(\S+)", shown.stdout)
        return found[1] if found else "unknown version"


class Lifeline:
    """Kills a process once this one has ended, for any reason.

    A shell waits for the end of a pipe that only this process holds open. So it works after
    SIGKILL and on every Unix. PR_SET_PDEATHSIG exists only on Linux, and acts when the thread that
    started the server ends. Its own session keeps Ctrl-C and group kills away from the shell.
    """

    def __init__(self, pid: int) -> None:
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r _; kill -9 "$1"', "sh", str(pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def release(self) -> None:
        self._watcher.kill()  # before its pipe closes: another process may soon have the pid
        self._watcher.communicate()


class ServerProcess(ABC):
    """A server on its own port and in its own data directory; both survive a restart.

    Use it as a context manager (or end it with `close`), which kills the server and removes the
    directory. `stop` and `kill` only end the process: `start` restarts it with its data.
    """

    start_seconds = 20.0
    stop_seconds = 10.0

    def __init__(self, place: Place = HERE) -> None:
        self.place = place
        self._port = Port()
        self._scratch = tempfile.TemporaryDirectory(prefix="sparkonce-", ignore_cleanup_errors=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline: Lifeline | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs the server in the foreground."""

    def answers(self) -> bool:
        """Whether the server is ready: it listens, unless a subclass has a better check."""
        with socket.socket() as probe:
            return probe.connect_ex((self.host, self.port)) == 0

    @property
    def host(self) -> str:
        return self.place.host

    @property
    def port(self) -> int:
        return self.place.port or self._port.number

    @property
    def directory(self) -> Path:
        return Path(self._scratch.name)

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def alive(self) -> bool:
        """Whether the process runs; it may have ended by itself."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        if self._process:
            raise RuntimeError("the server is already running")
        self._launch()
        try:
            wait_until(self._ready, self.start_seconds, "the server did not answer")
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Shut the server down cleanly, or kill it if that takes too long."""
        process = self._running()
        process.send_signal(signal.SIGCONT)  # a paused server would never handle the signal to end
        process.terminate()
        try:
            process.wait(self.stop_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
        self._reap()

    def kill(self) -> None:
        """Kill the server, as in a crash."""
        self._running().kill()
        self._reap()

    def revive(self) -> None:
        """Start a server that has ended, was killed, or ended by itself."""
        if self._process:
            self.kill()
        self.start()

    def restart(self) -> None:
        self.stop()
        self.start()

    def pause(self) -> None:
        """Freeze the server: connections stay open, and no reply arrives."""
        os.kill(self.pid, signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)  # returns once the process has stopped

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        if self._process:
            self.kill()
        self._scratch.cleanup()
        self._port.release()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def _launch(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self.place.within, *self.command()],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C ends the tests first, then their server
            )
        self._lifeline = Lifeline(self._process.pid)

    def _ready(self) -> bool:
        status = self._running().poll()
        if status is not None:
            raise UnavailableError(
                f"the server ended at its start ({status}): {self._last_words()}"
            )
        return self.answers()

    def _last_words(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return " | ".join(line for line in lines[-4:] if line)

    def _running(self) -> subprocess.Popen[bytes]:
        if not self._process:
            raise RuntimeError("the server is not running")
        return self._process

    def _reap(self) -> None:
        if self._lifeline:
            self._lifeline.release()
        self._running().wait()
        self._process = self._lifeline = None
