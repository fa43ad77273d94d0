"""Aliases that show whole epochs: option ``visibleAlias`` and mode overwrite.

With `visibleAlias` each document carries its sink and the fence of its decision. The filter of the
alias selects the documents of this sink up to a fence. Once searches find all documents of an
epoch, one update of the cluster's state raises that fence.

In mode overwrite a batch goes into a new index. Readers see the old index until searches find all
rows of the new one. Then one update of the cluster's state points all aliases of the old index to
the new one and deletes the old index, see
https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-indices-update-aliases

This module also ensures that each sink id writes to an index by one name only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.journal.records import Destination, LedgerRecords
from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import Answer, Cluster, JsonObject, path
from pyspark_elasticsearch.server.failures import message
from pyspark_elasticsearch.target.lookup import OWN
from pyspark_elasticsearch.target.templates import meet
from sparkonce.codec import reading
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import Manifest, digest

log = logging.getLogger("sparkonce")

SHOWING, REPLACING = "showing an epoch", "replacing an index"
NOTING, LOOKING = "recording where a sink writes", "searching for sinks of an index"
FIRST = "-000001"  # suffix of the first index of an alias
MADE = "index.creation_date"  # a setting: when the index was created, in ms since 1970

OF_ITSELF = ("uuid", "creation_date", "provided_name", "version", "resize", "blocks", "history")
"""Settings that a successor does not take from the old index."""


PLAIN = {"boost", "adjust_pure_negative", "include_lower"}
"""Parameters of a query that change nothing here."""


class AliasFilter(NamedTuple):
    """The filter of an alias: documents of a sink up to a fence; none while no sink has it."""

    sink: str  # its digest, as in documents
    fence: int


def stamp(sink: str, fence: int) -> str:
    """The member that marks each document of a decision."""
    return f'"{OWN}":{{"sink":"{digest(sink)}","fence":{fence}}}'


def prepare(cluster: Cluster, alias: str, index: str) -> None:
    """Ensure that the alias exists for this index; `OptionError` if it shows other indices."""
    found = _behind(cluster, alias, f"reading alias {alias}")
    if others := [name for name in found if name != index]:
        raise OptionError(
            f"Option visibleAlias={alias!r} is an alias of {', '.join(others)}",
            why="readers would see documents of those indices, too",
            todo="name another alias",
        )
    if not found:
        # The alias shows nothing before the first epoch is whole.
        _filter(cluster, alias, index, {"match_none": {}})


def claim(cluster: Cluster, alias: str, index: str, sink: str, *, once: bool) -> None:
    """Reserve the alias for this sink before a decision.

    With `once`, this is the only decision of the sink.

    Raises:
        OptionError: the alias would show only one batch, or belongs to another index.
        StoreRefused: the alias shows another sink.
    """
    if once:
        raise OptionError(
            f"Option visibleAlias={alias!r} needs a batch with a name",
            why="the alias shows the decisions of one sink, and a batch without a name is a sink of"
            " its own, whatever sinkId is: the alias would show no later batch",
            todo="set txnAppId and txnVersion in addition to sinkId, or write by writeStream or in"
            " foreachBatch",
        )
    prepare(cluster, alias, index)
    if not _is_own(cluster, alias, index, sink):
        # No sink has it yet. Of two concurrent sinks, at least one finds the filter of the other.
        _filter(cluster, alias, index, _decided(sink, -1))
        _is_own(cluster, alias, index, sink)


def show(cluster: Cluster, alias: str, sink: str, to: Destination) -> None:
    """Show readers all decisions of this sink up to a fence.

    This refreshes the index first, or some shards would show their part of the epoch later than
    others. If the refresh misses a shard, the alias stays unchanged (`StoreUnreachable`).
    """
    _is_own(cluster, alias, to.index, sink, decided=True)
    _refresh(cluster, to.index)
    _filter(cluster, alias, to.index, _decided(sink, to.fence))


def _decided(sink: str, fence: int) -> dict[str, Any]:
    until = {"range": {f"{OWN}.fence": {"lte": fence}}}
    return {"bool": {"filter": [of_sink(digest(sink)), until]}}


def shown_by(query: Mapping[str, Any]) -> AliasFilter | None:
    """The filter in a search; None if this module did not write it."""
    match query:
        case {"match_none": _}:
            return AliasFilter("", -1)
        case {"bool": {"filter": [{"term": term}, {"range": bounds}], **more}}:
            match term.get(f"{OWN}.sink"), bounds.get(f"{OWN}.fence"):
                case (
                    {"value": str(sink), **of_term},
                    # As older releases and OpenSearch show it, or as newer ones.
                    {"from": None, "to": int(fence), "include_upper": True, **of_range}
                    | {"lte": int(fence), **of_range},
                ) if not ({*more, *of_term, *of_range} - PLAIN):
                    return AliasFilter(sink, fence)
    return None


def of_sink(sink: str) -> dict[str, Any]:
    """A query for all documents of a sink, visible or not; `sink` is its digest."""
    return {"term": {f"{OWN}.sink": sink}}


def hidden(by: AliasFilter) -> dict[str, Any]:
    """A query for the documents that the alias hides; for all while no sink has it."""
    if not by.sink:
        return {"match_all": {}}
    later = {"range": {f"{OWN}.fence": {"gt": by.fence}}}
    return {"bool": {"filter": [of_sink(by.sink), later]}}


def _refresh(cluster: Cluster, index: str) -> None:
    """Refresh every copy that answers searches.

    Copies without a node are not refreshed, and answer no searches. A copy of a shard whose primary
    is missing is not refreshed either, though the answer reports no failure.
    """
    shards = JsonObject(cluster.ask(SHOWING, "POST", path(index, "_refresh")).body["_shards"])
    done, failed = shards["successful"], shards["failed"]
    if not failed and done == shards["total"]:
        return
    health = cluster.ask(SHOWING, "GET", path("_cluster", "health", index)).body
    if failed or health["status"] == "red" or done < health["active_shards"]:
        reasons = [str(one.get("reason")) for one in shards.get("failures", ())]
        raise StoreUnreachable(
            f"Epoch not shown: {failed} copies of shards of {index} failed to refresh, and {done}"
            f" of {health['active_shards']} did {reasons[0] if reasons else ''}".rstrip(),
            why="all its rows are written, but such a copy would show only some of them",
            todo="check the cluster; the query resumes by itself, or after a restart",
        )


def _is_own(cluster: Cluster, alias: str, index: str, sink: str, *, decided: bool = False) -> bool:
    """Whether the alias shows this sink; False if none, `StoreRefused` if another one."""
    answer = cluster.ask(SHOWING, "GET", path(index, "_alias", alias), allow=(404,))
    if answer.status == 404:
        return False
    about = answer.body[index]["aliases"][alias].get("filter", {})
    terms = (one.get("term", {}) for one in about.get("bool", {}).get("filter", []))
    sinks = {term[f"{OWN}.sink"] for term in terms if f"{OWN}.sink" in term}
    if sinks - {digest(sink)}:
        dropped = f"delete this one (DELETE {index}/_alias/{alias}), which hides them"
        todo = f"name another alias; or if no reader needs the other sink's rows, {dropped}"
        if decided:  # a decision keeps its alias, even if the option has changed
            todo = f"once no reader needs the other sink's rows, {dropped}"
        raise StoreRefused(
            f"Option visibleAlias={alias!r} is the alias of another sink",
            why="an alias shows the epochs of one sink, and would hide those of the other",
            todo=f"{todo}; then restart the query",
        )
    return bool(sinks)


def _filter(cluster: Cluster, alias: str, index: str, query: Mapping[str, Any]) -> None:
    action = {"add": {"index": index, "alias": alias, "filter": query}}
    answer = cluster.ask(SHOWING, "POST", "/_aliases", body={"actions": [action]})
    todo = "check the cluster; the query resumes by itself, or after a restart"
    _require_taken(answer, f"alias {alias}", todo)


def _require_taken(answer: Answer, what: str, todo: str) -> None:
    if not answer.body["acknowledged"]:
        why = "they are slow, or the cluster is losing nodes"
        raise StoreUnreachable(f"Some nodes did not apply {what} in time", why, todo)


def _behind(cluster: Cluster, alias: str, doing: str = REPLACING) -> list[str]:
    # Not /_alias/<alias>, for which OpenSearch requires rights on all indices.
    status, body = cluster.ask(doing, "GET", path(alias, "_alias", alias), allow=(404,))
    return list(body) if status == 200 else []


def make(cluster: Cluster, to: Destination, alias: str) -> bool:
    """Create the index of an overwrite with the settings and mappings of the one it replaces.

    Returns False if another overwrite has replaced that index in the meantime.
    """
    if cluster.ask(REPLACING, "HEAD", path(to.index), allow=(404,)).status == 200:
        return True
    answer = cluster.ask(REPLACING, "GET", path(to.replaces), allow=(404,))
    if answer.status == 404:
        _require_superseded(cluster, to, alias)
        return False
    about = answer.body[to.replaces]
    settings = {k: v for k, v in about["settings"]["index"].items() if k not in OF_ITSELF}
    body = {"settings": {"index": settings}, "mappings": about["mappings"]}
    _, error = indices.make(cluster, to.index, body)
    if error:
        raise StoreRefused(
            f"Index {to.index}, to replace {to.replaces}, could not be created: {message(error)}",
            why="the new index copies settings and mappings of the old one, and the cluster rejects"
            " them",
            todo="correct what the cluster names, then run `sparkonce recover`",
        )
    return True


def take_over(cluster: Cluster, to: Destination, alias: str) -> None:
    """Point all aliases of the old index to the new one, and delete the old one."""
    answer = cluster.ask(REPLACING, "GET", path(to.replaces, "_alias"), allow=(404,))
    if answer.status == 200:
        cluster.ask(REPLACING, "POST", path(to.index, "_refresh"))
        aliases: Mapping[str, Mapping[str, Any]] = answer.body[to.replaces]["aliases"]
        actions = [
            {"remove_index": {"index": to.replaces}},
            *({"add": {"index": to.index, "alias": name, **of}} for name, of in aliases.items()),
        ]
        answer = cluster.ask(
            REPLACING, "POST", "/_aliases", body={"actions": actions}, allow=(404,)
        )
    if answer.status == 200:
        todo = "check the cluster, then run `sparkonce recover`"
        _require_taken(answer, f"aliases of {to.index}", todo)
    # The old index was deleted, by another try or by a later overwrite.
    elif to.index not in _behind(cluster, alias):
        _require_superseded(cluster, to, alias)
        # No alias will point to the new index.
        cluster.ask(REPLACING, "DELETE", path(to.index), allow=(404,))


def _require_superseded(cluster: Cluster, to: Destination, alias: str) -> None:
    """Reject the state unless the alias points to the index of a later overwrite."""
    others = _behind(cluster, alias)
    if not others:
        raise StoreRefused(
            f"Index {to.replaces} no longer exists, and alias {alias} points to no index",
            why="another program deleted the index after the batch was decided",
            todo="recreate it with its aliases, then run `sparkonce recover`",
        )
    if to.replaces in others:
        raise StoreUnreachable(
            f"Alias {alias} points to {to.replaces}, which no longer exists",
            "a node that lags, or is cut off, shows a former state of the cluster",
        )
    # Before the decision, a node that lagged may have shown a former index.
    dates = cluster.ask(REPLACING, "GET", path(",".join(sorted(others)), "_settings", MADE)).body
    if max(int(one["settings"]["index"]["creation_date"]) for one in dates.values()) < to.fence:
        raise StoreRefused(
            f"Index {to.replaces} was already replaced when the batch was decided",
            why="a node that lagged showed a former alias, or clocks differ by seconds",
            todo="run `sparkonce recover --drop`, which gives up this batch, and write it again",
        )
    newer = ", ".join(others)
    log.warning("Discarding index %s: %s already replaced %s", to.index, newer, to.replaces)


class IndexNames:
    """Records, beside the ledgers, the indices that each sink writes to.

    An alias and its index are two targets, and so have two ledgers, neither of which knows the
    decisions of the other. So each sink records, before it decides, every index that its target has
    pointed to. A sink that is new to an index looks for earlier sinks with the same sink id. A
    record stays when the alias moves to another index.
    """

    def __init__(self, records: LedgerRecords) -> None:
        self.records = records
        self._recorded: set[tuple[str, str]] = set()

    def require_one(self, manifest: Manifest, index: str) -> None:
        """Reject a manifest whose sink id has another name for the same index.

        For a template, `index` is the pattern of its names.
        """
        if (manifest.sink, index) in self._recorded:
            return
        ledger = from_record(self.records.read(manifest.sink), manifest.sink)
        begins = ledger is None or not ledger.totals.epochs
        # A batch without a name has its own id, and repeats no other one.
        if ledger is None or not ledger.owner.once:
            new = self._record(manifest, index)
            found = self._recorded_of(manifest.sink) if new or begins else []
            moved = any(sink == manifest.sink and at != index for sink, at, _ in found)
            for sink, at, name in found if begins or moved else ():
                if sink != manifest.sink and meet(at, index) and self._has_ledger(sink):
                    if new:  # this sink writes nothing there, and must not block others
                        own = path(self.records.indices.ledger, "_doc", _id(manifest, index))
                        self.records.cluster.ask(NOTING, "DELETE", own, allow=(404,))
                    here, there = manifest.target.partition(":")[2], name.partition(":")[2]
                    raise StoreRefused(
                        f"Option index={here!r} points to {index}, to which this sink id writes as"
                        f" {there!r}",
                        why=f"each name has its own ledger, so rows that {sink} has applied"
                        " would be applied again",
                        todo=f"set index={there}; or if these are other rows, set another sinkId",
                    )
        self._recorded.add((manifest.sink, index))

    def _record(self, manifest: Manifest, index: str) -> bool:
        """Record an index; whether it is new. Two concurrent sinks find each other's record."""
        about = {"name": manifest.sink, "place": index, "target": manifest.target}
        target = path(self.records.indices.ledger, "_create", _id(manifest, index))
        answer = self.records.cluster.ask(
            NOTING, "PUT", target, body={"kind": "naming", **about}, allow=(409,)
        )
        return answer.status != 409

    def _has_ledger(self, sink: str) -> bool:
        ledger = from_record(self.records.read(sink), sink)
        return ledger is not None and not ledger.owner.forgotten

    def _recorded_of(self, sink: str) -> list[tuple[str, str, str]]:
        """The records of all sinks with the same sink id: sink, index, and name of the index."""
        cluster, index = self.records.cluster, self.records.indices.ledger
        cluster.ask(LOOKING, "POST", path(index, "_refresh"))
        # Not by prefix: a cluster may reject such a search (search.allow_expensive_queries).
        query, same = {"term": {"kind": "naming"}}, f"{sink.rpartition('@')[0]}@"
        pages = reads.pages(cluster, LOOKING, index, {"query": query, "sort": ["name", "_doc"]})
        with reading(f"naming of {sink}"):
            every = (hit["_source"] for page in pages for hit in page)
            found = (one for one in every if one["name"].startswith(same))
            return [(one["name"], one["place"], one["target"]) for one in found]


def _id(manifest: Manifest, index: str) -> str:
    # A name has at most 255 bytes, and an id 512.
    return f"naming/{digest(manifest.sink)}/{index}"
