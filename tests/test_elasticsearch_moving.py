"""What is under way to an index is waited for before its rows are looked up, without a server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pyspark_elasticsearch import moving
from pyspark_elasticsearch.client import Answer
from sparkonce.errors import StoreRefused, StoreUnreachable
from sparkonce.protocol import Manifest

DETAIL = {"index": "rows", "mode": "append", "visibleAlias": None, "routing": None, "columns": []}
DETAIL |= {"pipeline": None}
NOTES = {"fence": 5, "index": "first", "since": ""}
MANIFEST = Manifest("sink", 1, "query", 3, "token", "index:rows", DETAIL, (), NOTES)


class Cluster:
    """Has index `first`, and asks its shards as Elasticsearch 8 does: only of a new block."""

    def __init__(self, *, blocked: bool, for_good: bool = False, slow: bool = False) -> None:
        self.blocked, self.for_good, self.slow = blocked, for_good, slow
        self.under_way = True

    def ask(self, _: str, method: str, target: str, **__: Any) -> Answer:
        if target.endswith("/_settings"):
            self.blocked = self.for_good
            return Answer(400 if self.for_good else 200, {"acknowledged": True})
        if target.endswith("/_block/write"):
            return Answer(200, self._closed())
        assert method == "GET"
        block = {"index.blocks.write": "true"} if self.blocked and target == "/first" else {}
        return Answer(200, {target[1:]: {"settings": block, "aliases": {}}})

    def _closed(self) -> dict[str, Any]:
        if self.blocked:
            return {"acknowledged": True, "shards_acknowledged": False, "indices": []}
        self.blocked, self.under_way = True, self.slow
        about = [{"name": "first", "blocked": not self.slow}]
        return {"acknowledged": True, "shards_acknowledged": not self.slow, "indices": about}


def redirected(cluster: Cluster, manifest: Manifest = MANIFEST) -> Manifest:
    return moving.redirected(cluster, manifest, "second")  # type: ignore[arg-type]


@pytest.mark.parametrize("blocked", [False, True], ids=["open", "blocked by its settings"])
def test_rest_goes_elsewhere_once_nothing_is_under_way_to_the_first_index(blocked: bool) -> None:
    cluster = Cluster(blocked=blocked)
    assert redirected(cluster).notes == {**NOTES, "index": "second", "before": ["first"]}
    assert (cluster.blocked, cluster.under_way) == (True, False)


def test_index_that_can_not_be_opened_again_is_taken_for_closed() -> None:
    assert redirected(Cluster(blocked=True, for_good=True)).notes["index"] == "second"


@pytest.mark.parametrize("blocked", [False, True])
def test_rest_goes_nowhere_while_a_shard_may_take_a_row(blocked: bool) -> None:
    with pytest.raises(StoreUnreachable, match="Not every shard of first was closed"):
        redirected(Cluster(blocked=blocked, slow=True))


def test_rows_with_a_routing_go_nowhere_else() -> None:
    """They would not be found by their ids alone, and be there twice."""
    cluster = Cluster(blocked=False)
    with pytest.raises(StoreRefused, match=r"option routing.*by their ids alone"):
        redirected(cluster, replace(MANIFEST, detail={**DETAIL, "routing": "country"}))
    assert not cluster.blocked


def test_what_was_redirected_stays_so_when_the_command_is_run_again() -> None:
    moved = redirected(Cluster(blocked=False))
    assert redirected(Cluster(blocked=False), moved) == moved
