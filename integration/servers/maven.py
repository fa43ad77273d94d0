"""What tests take from Maven Central, kept in the cache: jars, and servers unpacked from them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from integration.servers.finder import UnavailableError

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sparkonce"


def jar(artifact: str) -> Path:
    """The jar with these coordinates (`group:name:version`).

    Raises:
        UnavailableError: there is no Maven here, or it can't load the jar.
    """
    kept = CACHE / f"{_name(artifact)}.jar"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as half:
            _loaded(artifact, Path(half)).rename(kept)
    return kept


def unpacked(artifact: str, folder: str, programs: tuple[str, ...]) -> Path:
    """A folder of an artifact, in which these files may be run."""
    home = CACHE / _name(artifact)
    if not home.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as half:
            made = Path(half) / "home"
            with zipfile.ZipFile(_loaded(artifact, Path(half))) as packed:
                packed.extractall(made)
            for program in programs:
                (made / folder / program).chmod(0o755)
            made.rename(home)
    return home / folder


def _name(artifact: str) -> str:
    return "-".join(artifact.split(":")[1:])


def _loaded(artifact: str, to: Path) -> Path:
    if not shutil.which("mvn"):
        raise UnavailableError("no mvn on PATH")
    given = [f"-Dartifact={artifact}", f"-DoutputDirectory={to}"]
    loaded = subprocess.run(
        ["mvn", "-q", "-B", "dependency:copy", *given],
        cwd=to,
        capture_output=True,
        text=True,
        check=False,
    )
    if loaded.returncode:
        raise UnavailableError(f"mvn failed: {loaded.stdout[-200:]}")
    return next(to.glob("*.jar"))
