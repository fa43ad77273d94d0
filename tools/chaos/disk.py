"""A small disk for a store, which a fault can fill."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOM = 4 << 30
MARGIN = 64 << 20
"""The most bytes that a store writes while the disk shrinks; `fill` retries with more."""

APART = "SPARKONCE_CHAOS_APART"


def go_apart(module: str, namespaces: str = "-m") -> None:
    """Run this program again in its own mount namespace, which ends with it, if possible.

    Args:
        module: the program.
        namespaces: the flags of `unshare`.
    """
    able = os.geteuid() == 0 and APART not in os.environ and shutil.which("unshare")
    if able and subprocess.run(["unshare", namespaces, "true"], check=False).returncode == 0:
        os.environ[APART] = "1"
        again = [sys.executable, "-m", module, *sys.argv[1:]]
        os.execvp("unshare", ["unshare", namespaces, *again])


def why_not() -> str:
    """Why a small disk is impossible here; empty if it is possible."""
    return "" if APART in os.environ else "only root may mount a disk, and `unshare -m` must work"


class SmallDisk:
    """A disk in memory."""

    def __init__(self, home: Path) -> None:
        self.home, self._ballast = home, home / ".ballast"
        home.mkdir()
        self._mount(ROOM).check_returncode()

    def fill(self) -> None:
        """Leave no free space, even while the store continues to write."""
        room = MARGIN
        while self._mount(self._used() + room, "remount,").returncode:
            room *= 2
            if room > ROOM:
                raise OSError(f"{self.home} can't be made smaller")
        with self._ballast.open("wb") as file:
            end = 0
            for step in (1 << 20, 1 << 12):
                with suppress(OSError):
                    while True:
                        os.posix_fallocate(file.fileno(), end, step)
                        end += step

    def clear(self) -> None:
        """Free the space again."""
        self._ballast.unlink(missing_ok=True)
        self._mount(ROOM, "remount,").check_returncode()

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.home)], check=True)

    def _used(self) -> int:
        disk = os.statvfs(self.home)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    def _mount(self, size: int, how: str = "") -> subprocess.CompletedProcess[bytes]:
        options = f"{how}size={size}"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.home)]
        return subprocess.run(command, check=False)
