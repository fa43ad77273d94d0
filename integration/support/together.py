"""How tests share servers and processes, their order, and the summary at the end."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from integration.support.servers.elasticsearch import ELASTICSEARCH
from integration.support.servers.finder import NO_SERVER, Registry, ask
from integration.support.servers.mysql import SERVERS as MYSQLS
from integration.support.servers.redis import REDIS

from sparkonce.tck.on_spark import SparkContract

ROOT = Path(__file__).parents[1]
SHARED = {finder.name: finder for finder in (*MYSQLS.values(), ELASTICSEARCH)}
"""Servers that take seconds to start: one serves all processes of tests."""
OWN_SPARK = {"sink", "bench", "cluster", "connect", "s3", "environment"}
"""Fixtures of modules that start their own Spark, or install one."""


class ServerKeeper:
    """Keeps the servers, in the process that distributes tests."""

    def __init__(self) -> None:
        self.registry = Registry(SHARED)

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["registry"] = self.registry.address


def pytest_configure(config: pytest.Config) -> None:
    for finder in (REDIS, *SHARED.values()):
        config.add_cleanup(finder.close)
    if hasattr(config, "workerinput"):
        for finder in SHARED.values():
            finder.elsewhere = partial(ask, config.workerinput["registry"], finder.name)
    elif config.getoption("numprocesses", None):
        keeper = ServerKeeper()
        config.pluginmanager.register(keeper)
        config.add_cleanup(keeper.registry.close)


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Report, in the last lines, the servers, the skipped tests, and how to run them."""
    for finder in (REDIS, *SHARED.values()):
        if finder.found:
            terminalreporter.write_line(str(finder.found))
    skips = terminalreporter.stats.get("skipped", [])
    absent: dict[str, list[str]] = defaultdict(list)
    for skip in skips:
        why = str(skip.longrepr[2]).removeprefix("Skipped: ")
        if missing := re.match(NO_SERVER.format(r"\w+"), why):
            absent[missing[0]].append(why)
    for whys in absent.values():
        reason = max(whys, key=len)  # a private server has fewer ways
        terminalreporter.write_line(f"{len(whys)} tests skipped: {reason}", yellow=True)
    if others := len(skips) - sum(map(len, absent.values())):
        terminalreporter.write_line(f"{others} more don't apply here (-rs lists them)")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in this hook, too
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """If tests run in parallel, those that share a server or a Spark stay in one process.

    Their order is random, except for the rules of a contract on Spark, whose order starts the
    fewest Sparks.
    """
    ordered = [item for item in items if issubclass(_class(item), SparkContract)]
    in_order = iter(sorted(ordered, key=lambda item: (item.cls.__name__, _line(item))))
    items[:] = [next(in_order) if item in ordered else item for item in items]
    for item in items:
        if ROOT in item.path.parents:
            item.add_marker(pytest.mark.integration)
            if room := _room(item):
                item.add_marker(pytest.mark.xdist_group(room))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Reject a pytest with which xdist silently forms no groups."""
    lost = [item for item in session.items if item.get_closest_marker("xdist_group")]
    if hasattr(session.config, "workerinput") and any("@" not in item.nodeid for item in lost):
        raise pytest.UsageError(
            "tests of one server would run side by side: pytest -n wants"
            " --dist loadgroup, and a pytest with which pytest-xdist forms groups (8.4 to 9.1)"
        )


def _class(item: pytest.Item) -> type:
    return getattr(item, "cls", None) or object


def _line(item: pytest.Item) -> int:
    return int(item.function.__code__.co_firstlineno)


def _room(item: pytest.Item) -> str | None:
    fixtures = {*getattr(item, "fixturenames", ())}
    if fixtures & OWN_SPARK:
        return str(item.path.relative_to(ROOT))
    if "spark" in fixtures:  # two processes, each with a Spark, take half the time
        return "spark and servers" if fixtures & {"mysql_name", "elasticsearch_server"} else "spark"
    if "mysql_name" in fixtures:
        return str(item.callspec.params["mysql_name"])
    return "elasticsearch" if fixtures & {"elasticsearch_server", "private_elasticsearch"} else None
