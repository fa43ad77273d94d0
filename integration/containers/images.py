"""Images of servers, built from debootstrapped trees."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from integration.servers.finder import UnavailableError
from integration.servers.mysql import mysql_tree
from integration.servers.tree import tree

MYSQL = """set -e
mkdir -p /data /run/mysqld /var/lib/mysql-files /tmp
mysqld --no-defaults --user=root --datadir=/data --initialize-insecure
cat > /init.sql <<END
CREATE DATABASE $MYSQL_DATABASE CHARACTER SET utf8mb4;
CREATE USER 'root'@'%' IDENTIFIED BY '$MYSQL_ROOT_PASSWORD';
GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;
END
exec mysqld --no-defaults --user=root --datadir=/data --mysqlx=OFF --init-file=/init.sql
"""


@dataclass(frozen=True)
class Image:
    """An image that is built here: what its files are, and what it runs."""

    name: str
    files: Path
    command: list[str]

    def build(self, env: Mapping[str, str]) -> str:
        """Build it; its name.

        Raises:
            UnavailableError: the engine refuses it.
        """
        packed = subprocess.Popen(
            ["tar", "-C", str(self.files), "--one-file-system", "-c", "."], stdout=subprocess.PIPE
        )
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
    return Image("sparkonce-test-mysql", mysql_tree(), ["/bin/sh", "-c", MYSQL])


IMAGES = {"redis": redis, "mysql": mysql}
