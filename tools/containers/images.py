"""Images of servers, built from debootstrapped trees and what Maven brings."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from integration.support.servers.elasticsearch import CONFIG, JVM
from integration.support.servers.elasticsearch_tree import Tree, find_tree
from integration.support.servers.finder import UnavailableError
from integration.support.servers.mysql import mysql_tree
from integration.support.servers.tree import tree

SQL = """set -e
mkdir -p /data /run/mysqld /run/mariadbd /var/lib/mysql-files /tmp
{install} --no-defaults --user=root --datadir=/data {how}
cat > /init.sql <<END
CREATE DATABASE ${name}_DATABASE CHARACTER SET utf8mb4;
CREATE USER 'root'@'%' IDENTIFIED BY '${name}_ROOT_PASSWORD';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
END
exec {server} --no-defaults --user=root --datadir=/data --bind-address=* --init-file=/init.sql
"""
NODE = Path("/node")
ELASTICSEARCH = """set -e
mkdir -p {node}/config {node}/data {node}/tmp
cat > {node}/config/elasticsearch.yml <<END
{config}
discovery.type: single-node
xpack.security.enabled: false
network.host: 0.0.0.0
END
cat > {node}/config/jvm.options <<END
{jvm}
END
touch {node}/config/log4j2.properties
chown -R 1000:1000 {node}
exec {command}
"""
USER = ("setpriv", "--reuid=1000", "--regid=1000", "--clear-groups")


@dataclass(frozen=True)
class Image:
    """An image that is built here: what its files are, and what it runs.

    Attributes:
        more: a folder that is in the image, too, under its own name in `/opt`.
    """

    name: str
    files: Path
    command: list[str]
    more: Path | None = None

    def build(self, env: Mapping[str, str]) -> str:
        """Build it; its name.

        Raises:
            UnavailableError: the engine refuses it.
        """
        pack = ["tar", "-C", str(self.files), "--one-file-system", "-c", "."]
        if self.more:
            name = self.more.name
            pack += ["-C", str(self.more.parent), f"--transform=s,^{name},opt/{name},", name]
        packed = subprocess.Popen(pack, stdout=subprocess.PIPE)
        started = f"CMD {json.dumps(self.command)}"
        made = subprocess.run(
            ["docker", "import", "--change", started, "-", self.name],
            stdin=packed.stdout,
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        if packed.stdout:
            packed.stdout.close()  # else it waits for ever where the engine did not take it all
        if packed.wait() or made.returncode:
            raise UnavailableError(f"no image {self.name}: {made.stderr[-200:]}")
        return self.name


def redis() -> Image:
    command = ["redis-server", "--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""]
    return Image("sparkonce-test-redis", tree("redis", "redis-server"), command)


def mysql() -> Image:
    server = "mysqld"
    script = SQL.format(install=server, how="--initialize-insecure", server=server, name="MYSQL")
    return Image("sparkonce-test-mysql", mysql_tree(), ["/bin/sh", "-c", script])


def mariadb() -> Image:
    install, server = "mariadb-install-db", "mariadbd"
    how = "--force --auth-root-authentication-method=normal"  # the host's name needs no address
    script = SQL.format(install=install, how=how, server=server, name="MARIADB")
    files = tree("mariadb", "mariadb-server-core,mariadb-client-core")
    return Image("sparkonce-test-mariadb", files, ["/bin/sh", "-c", script])


def elasticsearch() -> Image:
    found = find_tree()
    java = Path("/usr/lib/jvm/default-java")
    start = Tree(found.version, Path("/opt") / found.home.name).command(
        java, NODE, NODE / "data", USER
    )
    lines = [line for line in CONFIG.splitlines() if not line.startswith("network.host")]
    script = ELASTICSEARCH.format(
        node=NODE,
        config="\n".join(lines),
        jvm=JVM.format(heap="1g", collector="Serial", scratch=NODE / "tmp"),
        command=shlex.join(start),
    )
    files = tree("java", "default-jdk-headless")
    return Image("sparkonce-test-elasticsearch", files, ["/bin/sh", "-c", script], found.home)


IMAGES = {"redis": redis, "mysql": mysql, "mariadb": mariadb, "elasticsearch": elasticsearch}
