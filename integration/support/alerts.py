"""The alert rules of the docs over the metrics of a store, in a Prometheus without patience."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from integration.support.servers.prometheus import PrometheusProcess
from prometheus_client import CollectorRegistry, start_http_server

from sparkonce.operate.arguments import admin_of
from sparkonce.operate.watching import Ledgers

RULES = (Path(__file__).parents[2] / "docs" / "monitoring" / "alerts.yml").read_text()
NAMES = frozenset(re.findall(r"alert: Sparkonce(\w+)", RULES))


def at_once(rules: str) -> str:
    """The same rules without their patience: seconds and minutes are waited for by nobody."""
    rules = re.sub(r"for: \d+m", "for: 0s", rules)
    return rules.replace("> 900", "> 1").replace("apply_seconds > 60", "apply_seconds > -1")


@contextmanager
def watched(url: str) -> Iterator[PrometheusProcess]:
    """A Prometheus that asks each second for the metrics of the store at a URL.

    Raises:
        NoServerError: there is no Prometheus here.
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
