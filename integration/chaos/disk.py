"""A small disk for a store, that can be full."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOM = 4 << 30
APART = "SPARKONCE_CHAOS_APART"


def go_apart() -> None:
    """Run this program again where its mounts are its own and end with it, if that can be."""
    able = os.geteuid() == 0 and APART not in os.environ and shutil.which("unshare")
    if able and subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0:
        os.environ[APART] = "1"
        again = [sys.executable, "-m", "integration.chaos", *sys.argv[1:]]
        os.execvp("unshare", ["unshare", "-m", *again])


def why_not() -> str:
    """Why there can be no small disk here; empty if there can."""
    return "" if APART in os.environ else "only root may mount a disk, and `unshare -m` must work"


class SmallDisk:
    """A disk in memory."""

    def __init__(self, home: Path) -> None:
        self.home = home
        home.mkdir()
        self._mount(ROOM)

    def fill(self) -> None:
        """Leave it no room."""
        used = os.statvfs(self.home)
        self._mount((used.f_blocks - used.f_bfree) * used.f_frsize, "remount,")

    def clear(self) -> None:
        """Give it room again."""
        self._mount(ROOM, "remount,")

    def close(self) -> None:
        subprocess.run(["umount", "-l", str(self.home)], check=True)

    def _mount(self, size: int, how: str = "") -> None:
        options = f"{how}size={size}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.home], check=True)
