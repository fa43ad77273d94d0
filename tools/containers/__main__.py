"""`python -m tools.containers [STORE ...]`: the contract suites, in containers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping

from integration.support.servers.finder import UnavailableError
from integration.support.servers.process import tidy_when_terminated
from tools.containers.engine import engine
from tools.containers.images import IMAGES

SUITES = {
    "redis": ["integration/redis/test_contract.py", "integration/redis/test_apply.py"],
    "mysql": ["integration/mysql/test_contract.py", "-k", "not mariadb"],
    "mariadb": ["integration/mysql/test_contract.py", "-k", "mariadb"],
    "elasticsearch": ["integration/elasticsearch/test_contract.py"],
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
    tidy_when_terminated()
    try:
        with engine() as env:
            failed = [store for store in stores or SUITES if _test(store, env)]
    except UnavailableError as absent:
        print(f"test-containers: {absent}")
        return 1
    return 1 if failed else 0


def _test(store: str, env: Mapping[str, str]) -> int:
    image = IMAGES[store]().build(env)
    setting = f"SPARKONCE_TEST_{store.upper()}"
    asked = {setting: "container", f"{setting}_IMAGE": image}
    command = [sys.executable, "-m", "pytest", "-v", *SUITES[store]]
    return subprocess.run(
        command, env={**os.environ, **LOCAL, **env, **asked}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
