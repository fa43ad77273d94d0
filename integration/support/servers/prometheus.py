"""A Prometheus of a test's own, with rules."""

from __future__ import annotations

import json
import shutil
import urllib.error
import urllib.request
from typing import Any

from integration.support.servers.finder import NoServerError, installing
from integration.support.servers.process import HOST, ServerProcess

NAMED = "Sparkonce"
CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: [rules.yml]
scrape_configs: [{{job_name: sparkonce, static_configs: [{{targets: ["{target}"]}}]}}]
"""


class PrometheusProcess(ServerProcess):
    """It asks one target each second."""

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
        """The names of the alerts that fire, without what all begin with."""
        alerts = self._asked("alerts")["data"]["alerts"]
        names = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
        return {name.removeprefix(NAMED) for name in names}

    def _asked(self, what: str) -> Any:
        where = f"http://{HOST}:{self.port}/api/v1/{what}"
        with urllib.request.urlopen(where, timeout=5) as answer:
            return json.load(answer)
