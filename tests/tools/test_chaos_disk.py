"""The small disk of a store is full when it is said to be, whatever the store does meanwhile."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROGRAM = textwrap.dedent(
    """
    import os, sys, threading
    from pathlib import Path
    from tools.chaos.disk import SmallDisk

    def write():
        with open(disk.home / "grows", "wb", buffering=0) as file:
            while not done.is_set():
                try:
                    file.write(bytes(1 << 16))
                except OSError:
                    felt.set()

    disk, done, felt = SmallDisk(Path(sys.argv[1])), threading.Event(), threading.Event()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            disk.fill()
            felt.clear()
            assert felt.wait(10)
            assert os.statvfs(disk.home).f_bfree < 64
            disk.clear()
            assert os.statvfs(disk.home).f_bfree > 1 << 16
    finally:
        done.set()
        writer.join()
        disk.close()
    """
)


def may_mount() -> bool:
    if os.geteuid() or not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "-m", "true"], check=False).returncode == 0


@pytest.mark.skipif(not may_mount(), reason="only root may mount a disk, and in a space of its own")
def test_disk_is_full_at_once_although_something_writes_all_the_while(tmp_path: Path) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "disk")]
    subprocess.run(
        ["unshare", "-m", *program],
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
