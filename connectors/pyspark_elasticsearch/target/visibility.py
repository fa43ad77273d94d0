"""Option ``visibleAlias``: an alias that shows whole epochs.

Each document carries its sink and the fence of its decision. The alias has a filter that lets
through what this sink has decided up to a fence; it is moved, in one update of the cluster's state,
once all documents of an epoch can be found.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark_elasticsearch.journal.records import Destination
from pyspark_elasticsearch.server.client import Cluster, Told, path
from pyspark_elasticsearch.target.mappings import OWN
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable
from sparkonce.protocol import digest

if TYPE_CHECKING:
    from pyspark_elasticsearch.write.documents import Documents

DOING = "showing an epoch"


class Shown(NamedTuple):
    """What an alias shows: what a sink has decided up to a fence; nothing if it is nobody's yet."""

    sink: str
    fence: int


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


def claim(cluster: Cluster, documents: Documents, index: str, sink: str, *, once: bool) -> None:
    """See, before a decision, that the alias will show it; it shows nothing else from now on.

    Args:
        cluster: where.
        documents: of the plan.
        index: that the alias is of.
        sink: whose decisions it shows.
        once: whether no other decision of this sink will come.

    Raises:
        OptionError: it would show one batch alone, or is an alias of another index.
        StoreRefused: it shows another sink.
    """
    alias = documents.alias
    if not alias:
        return
    if once:
        raise OptionError(
            f"Option visibleAlias={alias!r} does not go with a batch that has no name",
            why="the alias shows what one sink has decided, and such a batch is a sink by itself,"
            " whatever sinkId says: the alias would show no batch after it",
            todo="set txnAppId and txnVersion beside sinkId, or write by writeStream or in"
            " foreachBatch",
        )
    prepare(cluster, documents, index)
    if not _is_own(cluster, alias, index, sink):
        # Nobody's yet. Whoever comes at the same time finds this, or is found here.
        _point(cluster, alias, index, _shown(sink, -1))
        _is_own(cluster, alias, index, sink)


def show(cluster: Cluster, alias: str, sink: str, to: Destination) -> None:
    """Let readers see all that this sink has decided up to a fence.

    The index is refreshed first, lest a shard shows its part of the epoch later than the others.

    Raises:
        StoreRefused: the alias has become another sink's.
        StoreUnreachable: a copy of a shard would show a part of the epoch.
    """
    _is_own(cluster, alias, to.index, sink, decided=True)
    _refresh(cluster, to.index)
    _point(cluster, alias, to.index, _shown(sink, to.fence))


def _shown(sink: str, fence: int) -> dict[str, Any]:
    mine = of_sink(digest(sink))
    return {"bool": {"filter": [mine, {"range": {f"{OWN}.fence": {"lte": fence}}}]}}


def shown_by(query: Mapping[str, Any]) -> Shown | None:
    """What a filter shows, as a search has it; None if it is not of this module."""
    match query:
        case {"match_none": _}:
            return Shown("", -1)
        case {"bool": {"filter": [{"term": term}, {"range": bounds}], **more}}:
            match term.get(f"{OWN}.sink"), bounds.get(f"{OWN}.fence"):
                case {"value": str(sink), **of_term}, {"lte": int(fence), **of_range} if not (
                    {*more, *of_term, *of_range} - {"boost"}
                ):
                    return Shown(sink, fence)
    return None


def of_sink(sink: str) -> dict[str, Any]:
    """A query of all that a sink has decided, shown or not, by the sink as a filter has it."""
    return {"term": {f"{OWN}.sink": sink}}


def hidden(by: Shown) -> dict[str, Any]:
    """A query of what an alias will show later; of all, as long as it is nobody's."""
    if not by.sink:
        return {"match_all": {}}
    later = {"range": {f"{OWN}.fence": {"gt": by.fence}}}
    return {"bool": {"filter": [of_sink(by.sink), later]}}


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


def _is_own(cluster: Cluster, alias: str, index: str, sink: str, *, decided: bool = False) -> bool:
    """Whether an alias shows this sink; False if it shows none.

    Raises:
        StoreRefused: it shows another one.
    """
    known = cluster.ask(DOING, "GET", path(index, "_alias", alias), allow=(404,))
    if known.status == 404:
        return False
    about = known.body[index]["aliases"][alias].get("filter", {})
    terms = (one.get("term", {}) for one in about.get("bool", {}).get("filter", []))
    shown = {term[f"{OWN}.sink"] for term in terms if f"{OWN}.sink" in term}
    if shown - {digest(sink)}:
        dropped = f"drop this one (DELETE {index}/_alias/{alias}), which hides them"
        todo = f"name another alias; or if readers need the other sink's rows no more, {dropped}"
        if decided:  # the decision keeps its alias, whatever the option says by now
            todo = f"once readers need the other sink's rows no more, {dropped}"
        raise StoreRefused(
            f"Option visibleAlias={alias!r} is the alias of another sink",
            why="it shows the epochs of one sink, and would hide those of the other",
            todo=f"{todo}; then restart the query",
        )
    return bool(shown)


def _point(cluster: Cluster, alias: str, index: str, query: Mapping[str, Any]) -> None:
    action = {"add": {"index": index, "alias": alias, "filter": query}}
    answer = cluster.ask(DOING, "POST", "/_aliases", body={"actions": [action]})
    if not answer.body["acknowledged"]:
        raise StoreUnreachable(
            f"Some nodes did not take alias {alias} in time",
            why="they are slow, or the cluster loses some",
            todo="look into the cluster; the query goes on by itself, or once it is restarted",
        )
