"""Virtual environments for tests: installed as a user does it, or made of links in no time."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENTS = "pyarrow", "redis", "async_timeout"
"""What an executor needs beside Spark's own zip of PySpark, to write into Redis."""


class Environment:
    """An empty virtual environment."""

    def __init__(self, home: Path) -> None:
        venv.create(home, with_pip=True)
        self.home, self.python = home, home / "bin" / "python"

    def install(self, *what: str) -> None:
        self.pip("install", *what)

    def pip(self, do: str, *what: str) -> None:
        command = [self.python, "-m", "pip", do, "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *what], check=True, timeout=900)


def linked(home: Path, *, sparkonce: bool) -> Path:
    """The Python of an environment whose packages are links to those of this one.

    Args:
        home: where it is made.
        sparkonce: whether it has this project's packages, beside what they need.
    """
    venv.create(home, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(home)}))
    for name in CLIENTS:
        if found := find_spec(name):
            (site / name).symlink_to(Path(str(found.origin)).parent)
    for package in (ROOT / "connectors").glob("*spark*") if sparkonce else ():
        (site / package.name).symlink_to(package)
    return home / "bin" / "python"


def build_wheel(out: Path) -> Path:
    """The wheel of this very source."""
    build = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
    subprocess.run([*build, "--no-deps", "--wheel-dir", out, ROOT], check=True, timeout=600)
    (made,) = out.glob("sparkonce-*.whl")
    return made


def make_certificate(home: Path, name: str) -> None:
    """Make a certificate of the local address that trusts itself, and its key."""
    options = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", home / f"{name}.key", "-out", home / f"{name}.crt"]
    command = ["openssl", "req", *options.split(), *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
