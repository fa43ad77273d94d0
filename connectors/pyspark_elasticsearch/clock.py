"""The cluster's clock, as Elasticsearch puts no time of its own into a document."""

from __future__ import annotations

import time

from pyspark_elasticsearch.client import Cluster, path

HELD = 10.0
"""Seconds for which the difference of the clocks holds, by that of this host: it may be set."""


class Clock:
    """What time it is on the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._asked, self._ahead = 0.0, 0.0

    def now(self) -> float:
        """Unix time, in seconds."""
        mine = time.time()
        if abs(mine - self._asked) > HELD:
            self._ahead = self._told() - mine
            self._asked = mine
        return mine + self._ahead

    def _told(self) -> float:
        answer = self.cluster.ask(
            "asking for the time",
            "GET",
            path("_nodes", "_local", "stats", "http"),
            params={"filter_path": "nodes.*.timestamp"},
            allow=(404,),  # of a proxy, which `ask` tells apart
        )
        (node,) = answer.body["nodes"].values()
        return float(node["timestamp"]) / 1000
