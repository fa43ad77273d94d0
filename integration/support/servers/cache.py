"""Downloads from Maven Central and Debian for tests, kept in the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from integration.support.servers.finder import UnavailableError, installing

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sparkonce"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
PROJECT = """<project><modelVersion>4.0.0</modelVersion><groupId>sparkonce</groupId>
<artifactId>tests</artifactId><version>0</version><dependencies>{}</dependencies></project>"""
DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
{}</dependency>"""
ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)


def kept(name: str, make: Callable[[Path], Path]) -> Path:
    """The folder of this name in the cache; if missing, `make` creates it in a scratch folder.

    The folder is complete or missing, even if two processes create it in parallel.
    """
    home = CACHE / name
    if not home.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as scratch:
            made = make(Path(scratch))
            try:
                made.rename(home)
            except OSError:
                if not home.exists():  # else another process was faster
                    raise
    return home


def jar(artifact: str) -> Path:
    """The jar with these coordinates (`group:name:version`)."""
    return kept(f"{_name(artifact)}.jar", lambda scratch: loaded(artifact, scratch))


def jars(*artifacts: str, whole: bool = True) -> list[Path]:
    """The jars of these artifacts (`group:name:version`), kept as one folder."""

    def copy_all(scratch: Path) -> Path:
        alone = "" if whole else ALONE
        depend = "".join(DEPENDENCY.format(*one.split(":"), alone) for one in artifacts)
        (scratch / "pom.xml").write_text(PROJECT.format(depend))
        given = [f"-DoutputDirectory={scratch}/jars", "-DincludeScope=runtime"]
        _maven([f"{COPY}-dependencies", *given], scratch)
        return scratch / "jars"

    listed = f"{artifacts} {whole}".encode()
    return sorted(kept(f"{_name(artifacts[0])}-{crc32(listed):08x}", copy_all).glob("*.jar"))


def unpacked(artifact: str, folder: str, programs: tuple[str, ...]) -> Path:
    """A folder of an artifact, with these files executable."""

    def unpack(scratch: Path) -> Path:
        with zipfile.ZipFile(loaded(artifact, scratch)) as packed:
            packed.extractall(scratch / "home")
        for program in programs:
            (scratch / "home" / folder / program).chmod(0o755)
        return scratch / "home"

    return kept(_name(artifact), unpack) / folder


def loaded(artifact: str, scratch: Path, *, keep: bool = True) -> Path:
    """The file of an artifact, in a scratch folder; with `keep` Maven keeps a copy for others."""
    given = [f"-Dartifact={artifact}", f"-DoutputDirectory={scratch / 'loaded'}"]
    own = [] if keep else [f"-Dmaven.repo.local={scratch / 'repository'}"]
    _maven([COPY, *given, *own], scratch)
    return next((scratch / "loaded").iterdir())


def _name(artifact: str) -> str:
    return "-".join(artifact.split(":")[1:])


def _maven(arguments: list[str], folder: Path) -> None:
    if not shutil.which("mvn"):
        raise UnavailableError("no mvn on PATH", installing("maven"))
    done = _run(["mvn", "-q", "-B", *arguments], cwd=folder)
    if done.returncode:
        raise UnavailableError(f"mvn failed: {done.stdout[-200:]}")


def tree(name: str, package: str, debian: str = "sid") -> Path:
    """The smallest Debian of a release that has a package; `debootstrap` makes it."""

    def bootstrap(scratch: Path) -> Path:
        made = _run([*as_root, *command, str(scratch / "tree")])
        if as_root:  # the tree's programs run as its owner
            owner = f"{os.geteuid()}:{os.getegid()}"
            _run([*as_root, "chown", "--recursive", owner, str(scratch / "tree")])
        if made.returncode:
            raise UnavailableError(f"debootstrap failed: {made.stdout[-200:]}")
        return scratch / "tree"

    command = ["debootstrap", "--variant=minbase", f"--include={package}", debian]
    as_root = ["sudo", "--non-interactive"] if os.geteuid() else []
    if not (CACHE / name).exists():
        _require_debootstrap(" ".join([*command, str(CACHE / name)]))
    return kept(name, bootstrap)


def _require_debootstrap(command: str) -> None:
    if sys.platform != "linux":
        raise UnavailableError("debootstrap makes trees only on Linux")
    if not shutil.which("debootstrap"):
        raise UnavailableError("no debootstrap on PATH", installing("debootstrap"))
    if os.geteuid() and not _may_sudo():
        raise UnavailableError("debootstrap needs root", f"sudo {command}")


def _may_sudo() -> bool:
    """Whether sudo works without a password, as on the machines of GitHub."""
    return bool(shutil.which("sudo")) and not _run(["sudo", "--non-interactive", "true"]).returncode


def _run(command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
