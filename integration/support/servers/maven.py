"""What tests take from Maven Central, kept in the cache: jars, and servers unpacked from them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from zlib import crc32

from integration.support.servers.finder import UnavailableError, installing

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sparkonce"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
COPY_ALL = f"{COPY}-dependencies"
PROJECT = """<project><modelVersion>4.0.0</modelVersion><groupId>sparkonce</groupId>
<artifactId>tests</artifactId><version>0</version><dependencies>{}</dependencies></project>"""
ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


def keep(made: Path, home: Path) -> None:
    """Copy a folder into the cache, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=CACHE) as half:
        settle(shutil.copytree(made, Path(half) / "home"), home)


def settle(made: Path, home: Path) -> None:
    """Give a folder that was made its place in the cache, unless another process was faster."""
    try:
        made.rename(home)
    except OSError:
        if not home.exists():
            raise


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
            settle(made, home)
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
    to.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to) as scratch:
        given = [f"-Dartifact={artifact}", f"-DoutputDirectory={to / 'loaded'}"]
        _maven([COPY, *given, *([] if keep else [f"-Dmaven.repo.local={scratch}"])], to)
    return next((to / "loaded").iterdir())


def _maven(arguments: list[str], folder: Path) -> None:
    if not shutil.which("mvn"):
        raise UnavailableError("no mvn on PATH", installing("maven"))
    done = subprocess.run(
        ["mvn", "-q", "-B", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise UnavailableError(f"mvn failed: {done.stdout[-200:]}")


def _name(artifact: str) -> str:
    return "-".join(artifact.split(":")[1:])


def jars(*artifacts: str, whole: bool = True) -> list[Path]:
    """The jars of these artifacts (`group:name:version`), kept in the cache as one folder.

    Args:
        artifacts: their coordinates.
        whole: whether all that they depend on comes too.

    Raises:
        UnavailableError: there is no Maven here, or it can't load them.
    """
    listed = f"{artifacts} {whole}".encode()
    home = CACHE / f"{_name(artifacts[0])}-{crc32(listed):08x}"
    if not home.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as half:
            (Path(half) / "pom.xml").write_text(_project(artifacts, whole=whole))
            given = [f"-DoutputDirectory={half}/jars", "-DincludeScope=runtime"]
            _maven([COPY_ALL, *given], Path(half))
            settle(Path(half) / "jars", home)
    return sorted(home.glob("*.jar"))


def _project(artifacts: tuple[str, ...], *, whole: bool) -> str:
    depend = "".join(_dependency(artifact, whole=whole) for artifact in artifacts)
    return PROJECT.format(depend)


def _dependency(artifact: str, *, whole: bool) -> str:
    group, name, version = artifact.split(":")
    alone = "" if whole else ALONE
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version>{alone}</dependency>"
    )
