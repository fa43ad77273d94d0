"""`python -m integration.containers redis mysql`: the contract suites, in containers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from integration.containers.engine import engine
from integration.containers.images import IMAGES
from integration.servers.finder import UnavailableError

SUITES = {
    "redis": ["integration/test_redis_contract.py", "integration/test_redis_apply.py"],
    "mysql": ["integration/test_mysql_contract.py", "-k", "not mariadb"],
}
LOCAL = {
    "REQUIRE_SERVERS": "1",
    # Its image can't be built here; the containers end with their tests.
    "TESTCONTAINERS_RYUK_DISABLED": "true",
    # Else, in a container itself, it looks for others at the address of the bridge.
    "TESTCONTAINERS_CONNECTION_MODE": "docker_host",
    "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
}


def main(stores: list[str]) -> int:
    """Give the exit status."""
    try:
        with engine() as env:
            return max(_test(store, env) for store in stores or list(SUITES))
    except UnavailableError as absent:
        print(f"test-containers: {absent}")
        return 1


def _test(store: str, env: Mapping[str, str]) -> int:
    image = IMAGES[store]().build(env)
    setting = f"SPARKONCE_TEST_{store.upper()}"
    asked = {setting: "container", f"{setting}_IMAGE": image}
    command = [sys.executable, "-m", "pytest", "-v", "-m", "not long", *SUITES[store]]
    return subprocess.run(
        command, env={**os.environ, **LOCAL, **env, **asked}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
