"""Debian packages in trees of their own, made by `debootstrap` and kept in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from integration.support.servers.finder import UnavailableError, installing
from integration.support.servers.maven import CACHE, settle

if TYPE_CHECKING:
    from pathlib import Path


def tree(name: str, package: str, debian: str = "sid") -> Path:
    """The smallest Debian, of that release, that has a package.

    Raises:
        UnavailableError: it is not there and can't be made here.
    """
    home = CACHE / name
    if not home.exists():
        _make(home, package, debian)
    return home


def _make(home: Path, package: str, debian: str) -> None:
    if sys.platform != "linux":
        raise UnavailableError("debootstrap makes trees on Linux alone")
    if not shutil.which("debootstrap"):
        raise UnavailableError("no debootstrap on PATH", installing("debootstrap"))
    command = ["debootstrap", "--variant=minbase", f"--include={package}", debian]
    if os.geteuid() and not _may_sudo():
        raise UnavailableError("debootstrap wants root", f"sudo {' '.join(command)} {home}")
    as_root = ["sudo", "--non-interactive"] if os.geteuid() else []
    home.parent.mkdir(parents=True, exist_ok=True)
    half = home.with_name(f"{home.name}.{os.getpid()}")
    made = subprocess.run(
        [*as_root, *command, str(half)], capture_output=True, text=True, check=False
    )
    if as_root:  # the tree's own programs run as whoever made it
        owner = f"{os.geteuid()}:{os.getegid()}"
        subprocess.run([*as_root, "chown", "--recursive", owner, str(half)], check=False)
    if made.returncode:
        shutil.rmtree(half, ignore_errors=True)
        raise UnavailableError(f"debootstrap failed: {made.stdout[-200:]}")
    settle(half, home)
    shutil.rmtree(half, ignore_errors=True)


def _may_sudo() -> bool:
    """Whether sudo asks for no password, as on the machines of GitHub."""
    asked = ["sudo", "--non-interactive", "true"]
    return (
        bool(shutil.which("sudo"))
        and not subprocess.run(asked, capture_output=True, check=False).returncode
    )
