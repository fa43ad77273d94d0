"""Debian packages in trees of their own, made by `debootstrap` and kept in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from integration.servers.finder import UnavailableError, installing
from integration.servers.maven import CACHE

if TYPE_CHECKING:
    from pathlib import Path


def tree(name: str, package: str) -> Path:
    """The smallest Debian that has a package.

    Raises:
        UnavailableError: it is not there and can't be made here.
    """
    home = CACHE / name
    if not home.exists():
        _make(home, package)
    return home


def _make(home: Path, package: str) -> None:
    if not shutil.which("debootstrap"):
        raise UnavailableError("no debootstrap on PATH", installing("debootstrap"))
    if os.geteuid():
        raise UnavailableError("debootstrap wants root")
    home.parent.mkdir(parents=True, exist_ok=True)
    half = home.with_name(f"{home.name}.{os.getpid()}")
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={package}", "sid", str(half)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        shutil.rmtree(half, ignore_errors=True)
        raise UnavailableError(f"debootstrap failed: {made.stdout[-200:]}")
    try:
        half.rename(home)
    except OSError:  # another process of the tests was faster
        shutil.rmtree(half)
