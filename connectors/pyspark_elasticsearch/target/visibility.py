"""Option ``visibleAlias``: an alias that shows whole epochs.

Each document carries its sink and the fence of its decision. The alias has a filter that lets
through what this sink has decided up to a fence; it is moved, in one update of the cluster's state,
once all documents of an epoch can be found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark_elasticsearch.journal.records import Destination
from pyspark_elasticsearch.server.client import Cluster, Told, path
from pyspark_elasticsearch.target.mappings import OWN
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable
from sparkonce.protocol import digest

if TYPE_CHECKING:
    from pyspark_elasticsearch.models.documents import Documents

DOING = "showing an epoch"


def stamp(sink: str, fence: int) -> str:
    """What each document of a decision carries."""
    return f'"{OWN}":{{"sink":"{digest(sink)}","fence":{fence}}}'


def prepare(cluster: Cluster, documents: Documents, index: str) -> None:
    """See that the alias is there, and shows nothing else.

    Raises:
        OptionError: it is another's.
    """
    alias = documents.alias
    if not alias:
        return
    known = cluster.ask(f"looking at alias {alias}", "GET", path("_alias", alias), allow=(404,))
    there = known.body if known.status == 200 else {}
    if others := [name for name in there if name != index]:
        raise OptionError(
            f"Option visibleAlias={alias!r} is an alias of {', '.join(others)}",
            why="readers would see them beside the epochs of this query",
            todo="name another alias",
        )
    if not there:
        # Nothing is shown before the first epoch is whole.
        _point(cluster, alias, index, {"match_none": {}})


def show(cluster: Cluster, alias: str, sink: str, to: Destination) -> None:
    """Let readers see all that this sink has decided up to a fence.

    The index is refreshed first, lest a shard shows its part of the epoch later than the others.

    Raises:
        StoreRefused: the alias shows another sink.
        StoreUnreachable: a copy of a shard would show a part of the epoch.
    """
    sink = digest(sink)
    _require_own(cluster, alias, to.index, sink)
    _refresh(cluster, to.index)
    decided = {"range": {f"{OWN}.fence": {"lte": to.fence}}}
    mine = {"term": {f"{OWN}.sink": sink}}
    _point(cluster, alias, to.index, {"bool": {"filter": [mine, decided]}})


def _refresh(cluster: Cluster, index: str) -> None:
    """Let every copy that answers searches show what it has.

    Copies without a node are not refreshed, nor do they answer. A copy of a shard whose primary is
    missing is not refreshed either, which the answer does not call a failure.
    """
    told = Told(cluster.ask(DOING, "POST", path(index, "_refresh")).body["_shards"])
    done, failed = told["successful"], told["failed"]
    if not failed and done == told["total"]:
        return
    health = cluster.ask(DOING, "GET", path("_cluster", "health", index)).body
    if failed or health["status"] == "red" or done < health["active_shards"]:
        reasons = [str(one.get("reason")) for one in told.get("failures", ())]
        raise StoreUnreachable(
            f"Epoch not shown: {failed} copies of shards of {index} failed to refresh, and {done}"
            f" of {health['active_shards']} did {reasons[0] if reasons else ''}".rstrip(),
            why="all its rows are written, and such a copy would show some of them and not others",
            todo="look into the cluster; the query goes on by itself, or once it is restarted",
        )


def _require_own(cluster: Cluster, alias: str, index: str, sink: str) -> None:
    known = cluster.ask(DOING, "GET", path(index, "_alias", alias), allow=(404,))
    if known.status == 404:
        return
    about = known.body[index]["aliases"][alias].get("filter", {})
    filters = about.get("bool", {}).get("filter", [])
    shown = {one.get("term", {}).get(f"{OWN}.sink", sink) for one in filters}
    if shown - {sink}:
        raise StoreRefused(
            f"Option visibleAlias={alias!r} is the alias of another sink",
            why="it shows the epochs of one sink, and would hide those of the other",
            todo=f"name another alias, or drop this one (DELETE {index}/_alias/{alias}) if its sink"
            " writes no more; then restart the query",
        )


def _point(cluster: Cluster, alias: str, index: str, query: Mapping[str, Any]) -> None:
    action = {"add": {"index": index, "alias": alias, "filter": query}}
    answer = cluster.ask(DOING, "POST", "/_aliases", body={"actions": [action]})
    if not answer.body["acknowledged"]:
        raise StoreUnreachable(
            f"Some nodes did not take alias {alias} in time",
            why="they are slow, or the cluster loses some",
            todo="look into the cluster; the query goes on by itself, or once it is restarted",
        )
