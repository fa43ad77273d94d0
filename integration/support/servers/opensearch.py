"""OpenSearch for tests: a node of a release from Maven."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elastic_transport import ApiResponseMeta, HttpHeaders, TransportApiResponse
from elasticsearch import Elasticsearch
from integration.support.servers.cache import CACHE, jars, kept, loaded
from integration.support.servers.elasticsearch import Tree, java_for

SECURED = "2.19.1"
"""The newest release whose security plugin Maven has."""

ARTIFACT = "org.opensearch.distribution.integ-test-zip:opensearch:{}:zip"
SECURITY = "org.opensearch.plugin:opensearch-security:{}.0:zip"
VENDORED = re.compile(r"application/vnd\.elasticsearch\+(\S+?); ?compatible-with=\d+")
UNUSED = ("ingest-geoip", "transport-grpc", "opensearch-dashboards", "rule-framework")
"""Modules that need other files, or that no test uses."""

PERMIT = 'grant {{ permission java.lang.RuntimePermission "{}"; }};\n'
MODULES = {
    "lang-painless": ("lang-painless", "painless.PainlessPlugin", ""),
    "analysis-common": ("analysis-common", "analysis.common.CommonAnalysisPlugin", "lang-painless"),
    "ingest-common": ("ingest-common", "ingest.common.IngestCommonPlugin", "lang-painless"),
    "mapper-extras": ("mapper-extras-client", "index.mapper.MapperExtrasPlugin", ""),
    "parent-join": ("parent-join-client", "join.ParentJoinPlugin", ""),
    "reindex": ("reindex-client", "index.reindex.ReindexPlugin", ""),
}
"""Modules that the archive of release 2 lacks: artifact, class, and the module that it extends."""

POLICIES = {
    "lang-painless": PERMIT.format("createClassLoader") + PERMIT.format("getClassLoader"),
    "reindex": 'grant { permission java.net.SocketPermission "*", "connect"; };\n',
}
DESCRIPTOR = """name={0}
description={0}
version={1}
opensearch.version={1}
java.version=11
classname=org.opensearch.{2}
extended.plugins={3}
"""


@dataclass(frozen=True)
class OpenSearchTree(Tree):
    """A server's files."""

    config_file = "opensearch.yml"
    own_lines = ()

    def command(self, java: Path, folder: Path, data: Path, user: Iterable[str]) -> list[str]:
        """See `Tree.command`."""
        config, properties = folder / "config", "-Dopensearch"
        options = [line for line in (config / "jvm.options").read_text().splitlines() if line]
        options += [
            f"{properties}.path.home={self.home}",
            f"{properties}.path.conf={config}",
            f"{properties}.distribution.type=zip",
            f"{properties}.bundled_jdk=false",
            "--add-modules=jdk.incubator.vector",
        ]
        if self.major >= 3:
            options += [f"-javaagent:{self.home}/agent/opensearch-agent.jar"]
            options += ["--add-opens=java.base/java.nio=ALL-UNNAMED"]
        else:
            factory = "org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory"
            options += [f"-Djava.util.concurrent.ForkJoinPool.common.threadFactory={factory}"]
        start = ["-cp", f"{self.home}/lib/*", "org.opensearch.bootstrap.OpenSearch"]
        folders = ["-E", f"path.data={data}", "-E", f"path.logs={folder}/logs"]
        move = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.home)]
        return [*move, *user, str(java / "bin/java"), *options, *start, *folders]

    @property
    def java(self) -> Path:
        """See `Tree.java`."""
        return java_for("9" if self.major >= 3 else "8")


def find_tree(version: str, *, secured: bool = False) -> OpenSearchTree:
    """The files of a server, downloaded once; `secured` ones with the security plugin."""

    def bring(scratch: Path) -> Path:
        _unpack(ARTIFACT.format(version), scratch / "tree", scratch / "server")
        home = scratch / f"tree/opensearch-{version}"
        (home / "plugins").mkdir(exist_ok=True)
        if secured:
            _unpack(
                SECURITY.format(version), home / "plugins/opensearch-security", scratch / "plugin"
            )
        for name in UNUSED:
            shutil.rmtree(home / "modules" / name, ignore_errors=True)
        for name in MODULES:
            _add_module(home, name, version)
        return home

    name = f"opensearch-{version}{'-secured' * secured}"
    if not (CACHE / name).exists():
        java_for("8", ("maven",))
    return OpenSearchTree(version, kept(name, bring))


def _unpack(artifact: str, folder: Path, scratch: Path) -> None:
    scratch.mkdir()
    with zipfile.ZipFile(loaded(artifact, scratch, keep=False)) as file:
        file.extractall(folder)


def _add_module(home: Path, name: str, version: str) -> None:
    module, (artifact, class_, extended) = home / "modules" / name, MODULES[name]
    if module.exists():
        return
    module.mkdir()
    there = {jar.name for jar in (home / "lib").glob("*.jar")}
    for jar in jars(f"org.opensearch.plugin:{artifact}:{version}"):
        if jar.name not in there and not jar.name.startswith(("jspecify", "error_prone")):
            shutil.copy(jar, module)
    about = DESCRIPTOR.format(name, version, class_, extended)
    (module / "plugin-descriptor.properties").write_text(about)
    if name in POLICIES:
        (module / "plugin-security.policy").write_text(POLICIES[name])


def accepts_opensearch(client: Elasticsearch) -> Elasticsearch:
    """The client of a test, which then accepts OpenSearch, with plain media types."""
    transport = client._transport
    send = transport.perform_request

    def perform_request(method: str, target: str, **more: Any) -> Any:
        headers = {
            name: VENDORED.sub(r"application/\1", value)
            for name, value in dict(more.pop("headers", None) or {}).items()
        }
        meta, body = send(method, target.replace("features=settings", ""), headers=headers, **more)
        answered = HttpHeaders({**meta.headers, "x-elastic-product": "Elasticsearch"})
        return TransportApiResponse(
            ApiResponseMeta(meta.status, meta.http_version, answered, meta.duration, meta.node),
            body,
        )

    transport.perform_request = perform_request  # type: ignore[method-assign, assignment]
    return client
