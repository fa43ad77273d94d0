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
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
CENTRAL = """<settings><mirrors><mirror><id>central</id><mirrorOf>*</mirrorOf>
<url>https://repo.maven.apache.org/maven2</url></mirror></mirrors></settings>"""


def jar(artifact: str) -> Path:
    """The jar with these coordinates (`group:name:version`).

    Raises:
        UnavailableError: there is no Maven here, or it can't load the jar.
    """
    kept = CACHE / f"{_name(artifact)}.jar"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as half:
            loaded(artifact, Path(half)).rename(kept)
    return kept


def unpacked(artifact: str, folder: str, programs: tuple[str, ...]) -> Path:
    """A folder of an artifact, in which these files may be run."""
    home = CACHE / _name(artifact)
    if not home.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as half:
            made = Path(half) / "home"
            with zipfile.ZipFile(loaded(artifact, Path(half))) as packed:
                packed.extractall(made)
            for program in programs:
                (made / folder / program).chmod(0o755)
            made.rename(home)
    return home / folder


def loaded(artifact: str, to: Path, *, keep: bool = True) -> Path:
    """The file of an artifact, copied to a folder of its own.

    Args:
        artifact: its coordinates.
        to: the folder.
        keep: whether Maven keeps a copy for others, too.

    Raises:
        UnavailableError: there is no Maven here, or it can't load the file.
    """
    if not shutil.which("mvn"):
        raise UnavailableError("no mvn on PATH")
    to.mkdir(exist_ok=True)
    (to / "settings.xml").write_text(CENTRAL)
    with tempfile.TemporaryDirectory(dir=to) as scratch:
        given = [f"-Dartifact={artifact}", f"-DoutputDirectory={to / 'loaded'}"]
        given += [] if keep else [f"-Dmaven.repo.local={scratch}"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-s", "settings.xml", COPY, *given],
            cwd=to,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise UnavailableError(f"mvn failed: {done.stdout[-200:]}")
    return next((to / "loaded").iterdir())


def _name(artifact: str) -> str:
    return "-".join(artifact.split(":")[1:])
