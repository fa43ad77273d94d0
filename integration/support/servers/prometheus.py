"""A private Prometheus with the alert rules of the docs and the metrics of a store."""

from __future__ import annotations

import json
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from integration.support.servers.finder import NoServerError, installing
from integration.support.servers.process import HOST, ServerProcess
from prometheus_client import CollectorRegistry, start_http_server

from sparkonce.operate.arguments import admin_of
from sparkonce.operate.watching import Ledgers

NAMED = "Sparkonce"
RULES = (Path(__file__).parents[3] / "docs" / "monitoring" / "alerts.yml").read_text()
NAMES = frozenset(re.findall(r"alert: Sparkonce(\w+)", RULES))
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs: [{{job_name: sparkonce, static_configs: [{{targets: ["{target}"]}}]}}]
"""


class PrometheusProcess(ServerProcess):
    """A Prometheus that scrapes one target every second."""

    def __init__(self, target: str, rules: str) -> None:
        self._program = shutil.which("prometheus")
        if self._program is None:
            why = {"native": "no prometheus on PATH"}
            raise NoServerError("prometheus", why, installing("prometheus"))
        super().__init__()
        (self.directory / "rules.yml").write_text(rules)
        (self.directory / "prometheus.yml").write_text(CONFIG.format(target=target))

    def command(self) -> list[str]:
        address = f"--web.listen-address={HOST}:{self.port}"
        own = ["--config.file=prometheus.yml", "--storage.tsdb.path=data"]
        return [str(self._program), *own, address]

    def answers(self) -> bool:
        try:
            return bool(self._asked("query?query=1"))
        except (urllib.error.URLError, ConnectionError):
            return False

    def firing(self) -> set[str]:
        """The names of the firing alerts, without their common prefix."""
        alerts = self._asked("alerts")["data"]["alerts"]
        names = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
        return {name.removeprefix(NAMED) for name in names}

    def _asked(self, what: str) -> Any:
        where = f"http://{HOST}:{self.port}/api/v1/{what}"
        with urllib.request.urlopen(where, timeout=5) as answer:
            return json.load(answer)


def at_once(rules: str) -> str:
    """The same rules without their delays of seconds and minutes."""
    rules = re.sub(r"for: \d+m", "for: 0s", rules)
    return rules.replace("> 900", "> 1").replace("apply_seconds > 60", "apply_seconds > -1")


@contextmanager
def watched(url: str) -> Iterator[PrometheusProcess]:
    """A Prometheus that scrapes the metrics of the store at a URL every second.

    Raises:
        NoServerError: this machine has no Prometheus.
    """
    registry = CollectorRegistry()
    registry.register(Ledgers(admin_of(url, ("timeout=1",))))
    server, thread = start_http_server(0, "127.0.0.1", registry)
    try:
        with PrometheusProcess(f"127.0.0.1:{server.server_port}", at_once(RULES)) as started:
            yield started
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
