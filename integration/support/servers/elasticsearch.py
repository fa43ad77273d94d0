"""Elasticsearch for tests: by address, in a container, or as a node of one's own."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from integration.support.servers import container
from integration.support.servers.elasticsearch_tree import NEWEST, OLDEST, Tree, find_tree, java_for
from integration.support.servers.finder import Finder, Server, UnavailableError, first_that_works
from integration.support.servers.port import HOST, Port
from integration.support.servers.process import ServerProcess, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import ExitStack

    from elasticsearch import Elasticsearch

CONFIG = """
cluster.name: sparkonce-test
network.host: 127.0.0.1
cluster.routing.allocation.disk.threshold_enabled: false
# Each time that it looks at the disks, it takes off the block that a full disk sets, and tests set.
cluster.info.update.interval: 24h
xpack.ml.enabled: false
"""
JVM = """-Xms{heap}
-Xmx{heap}
-XX:+Use{collector}GC
-Djava.io.tmpdir={scratch}
-XX:CompileCommand=dontinline,java/lang/invoke/MethodHandle.setAsTypeCache
-XX:CompileCommand=dontinline,java/lang/invoke/MethodHandle.asTypeUncached
-XX:+ExitOnOutOfMemoryError
"""


def connect(url: str, **settings: object) -> Elasticsearch:
    """Give a client that tells of every fault: no retry, no endless wait."""
    from elasticsearch import Elasticsearch

    return Elasticsearch(url, **{"max_retries": 0, "request_timeout": 60, **settings})


def version_at(url: str) -> str:
    with urlopen(url, timeout=5) as answer:
        return str(json.load(answer)["version"]["number"])


def _not_root() -> list[str]:
    """The server refuses to be root, and what is root's only root can read.

    In a user namespace it is somebody else to itself, and root to its files.
    """
    if os.geteuid():
        return []
    if not shutil.which("unshare"):
        raise UnavailableError("this is root, Elasticsearch refuses root, and there is no unshare")
    return ["unshare", "--user", "--map-user=1000", "--map-group=1000"]


class ElasticsearchProcess(ServerProcess):
    """A node of one's own; each further argument is a line of its elasticsearch.yml."""

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
    ) -> None:
        super().__init__()
        self._tree, self._scheme = tree, scheme
        self._java = java_for(tree.version)
        self._transport = Port()
        self.data = self.directory / "data"
        self.settings = self.directory / "config"
        self.settings.mkdir()
        (self.directory / "tmp").mkdir()
        for name, content in (files or {}).items():
            (self.settings / name).write_bytes(content)
        (self.settings / "log4j2.properties").write_text("")
        jvm = JVM.format(heap=heap, collector=collector, scratch=self.directory / "tmp")
        # A node that lives for minutes spends most on Java's second compiler.
        short = "-XX:TieredStopAtLevel=1\n" if collector == "Serial" else ""
        (self.settings / "jvm.options").write_text(jvm + short)
        own = [f"http.port: {self.port}", f"transport.port: {self._transport.number}"]
        if not any(line.startswith("discovery") for line in config):
            own.append("discovery.type: single-node")
        if not any(line.startswith("xpack.security") for line in config):
            own.append("xpack.security.enabled: false")
        text = "\n".join([CONFIG, *own, *config, ""])
        (self.settings / "elasticsearch.yml").write_text(text)

    @property
    def url(self) -> str:
        return f"{self._scheme}://{HOST}:{self.port}"

    @property
    def transport(self) -> str:
        return f"{HOST}:{self._transport.number}"

    def command(self) -> list[str]:
        return self._tree.command(self._java, self.directory, self.data, _not_root())

    def answers(self) -> bool:
        """Whether it serves, or asks who is there."""
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
        """End the server the hard way: it is a child of what was started."""
        self._signal(signal.SIGKILL)
        super().kill()

    def pause(self) -> None:
        """Freeze the server: it is a child of what was started, and not this process's own."""
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


def _by_url(_: ExitStack) -> Server:
    url = os.environ.get("SPARKONCE_TEST_ELASTICSEARCH_URL")
    if not url:
        raise UnavailableError("SPARKONCE_TEST_ELASTICSEARCH_URL is not set")
    return Server("elasticsearch", version_at(url), "at SPARKONCE_TEST_ELASTICSEARCH_URL", url)


def _in_container(stack: ExitStack) -> Server:
    image = os.environ.get(
        "SPARKONCE_TEST_ELASTICSEARCH_IMAGE",
        f"docker.elastic.co/elasticsearch/elasticsearch:{NEWEST}",
    )
    settings = {
        "discovery.type": "single-node",
        "xpack.security.enabled": "false",
        "ES_JAVA_OPTS": "-Xms1g -Xmx1g",
    }
    host, port = container.run(stack, image, 9200, settings)
    url = f"http://{host}:{port}"
    wait_until(lambda: _answers(url), 120, "the container did not answer")
    return Server("elasticsearch", version_at(url), f"container {image}", url)


def _answers(url: str) -> bool:
    try:
        return bool(version_at(url))
    except OSError:
        return False


def _in_tree(version: str, stack: ExitStack) -> Server:
    node = stack.enter_context(ElasticsearchProcess(find_tree(version)))
    return Server("elasticsearch", version_at(node.url), "tree from Maven", node.url)


WAYS = {
    "url": _by_url,
    "container": _in_container,
    "tree": partial(_in_tree, NEWEST),
    "tree8": partial(_in_tree, OLDEST),
}
ELASTICSEARCH = Finder("elasticsearch", WAYS)


def private_tree(version: str | None = None) -> Tree:
    """What private nodes run: this release, or the one that was asked for.

    Raises:
        NoServerError: it is not there and can't be brought.
    """
    version = version or (OLDEST if ELASTICSEARCH.asked == "tree8" else NEWEST)
    return first_that_works("elasticsearch", {"tree": partial(find_tree, version)}, None)
