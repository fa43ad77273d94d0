"""Virtual environments for tests: installed as by a user, or made of links, which is fast."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENTS = "pyarrow", "redis", "async_timeout"
"""The packages that an executor needs, besides Spark's zip of PySpark, to write to Redis."""


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
        home: its folder.
        sparkonce: whether it has this project's packages, besides their dependencies.
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
    """The wheel of this source tree."""
    build = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "wheel"]
    subprocess.run([*build, "--no-deps", "--wheel-dir", out, ROOT], check=True, timeout=600)
    (made,) = out.glob("sparkonce-*.whl")
    return made


def make_certificate(home: Path, name: str) -> None:
    """Make a self-signed certificate of the local address, and its key."""
    options = "-x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    subject = ["-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", home / f"{name}.key", "-out", home / f"{name}.crt"]
    command = ["openssl", "req", *options.split(), *subject, *files]
    subprocess.run(command, check=True, capture_output=True)
