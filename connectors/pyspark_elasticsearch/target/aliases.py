"""Aliases that show whole epochs: option ``visibleAlias``, mode overwrite; one alias for a sink id.

With `visibleAlias` each document carries its sink and the fence of its decision. The alias has a
filter that lets through what this sink has decided up to a fence; it is moved, in one update of the
cluster's state, once all documents of an epoch can be found.

In mode overwrite a batch goes into an index of its own. Readers see the old index until all rows of
the new one can be found. Then, in one update of the cluster's state, its aliases lead to the new
index and it is deleted, see
https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-indices-update-aliases
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
NOTING, LOOKING = "noting where a sink writes", "looking who writes into an index"
FIRST = "-000001"  # behind the name of an alias, in that of the first index made for it

OF_ITSELF = ("uuid", "creation_date", "provided_name", "version", "resize", "blocks", "history")
"""Settings that an index does not share with its successor."""


class AliasFilter(NamedTuple):
    """What an alias shows: what a sink has decided up to a fence; nothing if it is nobody's yet."""

    sink: str  # its digest, as documents have it
    fence: int


def stamp(sink: str, fence: int) -> str:
    """What each document of a decision carries."""
    return f'"{OWN}":{{"sink":"{digest(sink)}","fence":{fence}}}'


def prepare(cluster: Cluster, alias: str, index: str) -> None:
    """See that the alias is there, and shows nothing else; `OptionError` if it is another's."""
    there = _behind(cluster, alias, f"looking at alias {alias}")
    if others := [name for name in there if name != index]:
        raise OptionError(
            f"Option visibleAlias={alias!r} is an alias of {', '.join(others)}",
            why="readers would see them beside the epochs of this query",
            todo="name another alias",
        )
    if not there:
        # Nothing is shown before the first epoch is whole.
        _filter(cluster, alias, index, {"match_none": {}})


def claim(cluster: Cluster, alias: str, index: str, sink: str, *, once: bool) -> None:
    """See, before a decision, that the alias will show it; it shows nothing else from now on.

    With `once`, no other decision of this sink will come.

    Raises:
        OptionError: it would show one batch alone, or is an alias of another index.
        StoreRefused: it shows another sink.
    """
    if once:
        raise OptionError(
            f"Option visibleAlias={alias!r} does not go with a batch that has no name",
            why="the alias shows what one sink has decided, and such a batch is a sink by itself,"
            " whatever sinkId says: the alias would show no batch after it",
            todo="set txnAppId and txnVersion beside sinkId, or write by writeStream or in"
            " foreachBatch",
        )
    prepare(cluster, alias, index)
    if not _is_own(cluster, alias, index, sink):
        # Nobody's yet. Whoever comes at the same time finds this, or is found here.
        _filter(cluster, alias, index, _decided(sink, -1))
        _is_own(cluster, alias, index, sink)


def show(cluster: Cluster, alias: str, sink: str, to: Destination) -> None:
    """Let readers see all that this sink has decided up to a fence.

    The index is refreshed first, lest a shard shows its part of the epoch later than the others:
    where one would, nothing is shown (`StoreUnreachable`).
    """
    _is_own(cluster, alias, to.index, sink, decided=True)
    _refresh(cluster, to.index)
    _filter(cluster, alias, to.index, _decided(sink, to.fence))


def _decided(sink: str, fence: int) -> dict[str, Any]:
    until = {"range": {f"{OWN}.fence": {"lte": fence}}}
    return {"bool": {"filter": [of_sink(digest(sink)), until]}}


def shown_by(query: Mapping[str, Any]) -> AliasFilter | None:
    """What a filter shows, as a search has it; None if it is not of this module."""
    match query:
        case {"match_none": _}:
            return AliasFilter("", -1)
        case {"bool": {"filter": [{"term": term}, {"range": bounds}], **more}}:
            match term.get(f"{OWN}.sink"), bounds.get(f"{OWN}.fence"):
                case {"value": str(sink), **of_term}, {"lte": int(fence), **of_range} if not (
                    {*more, *of_term, *of_range} - {"boost"}
                ):
                    return AliasFilter(sink, fence)
    return None


def of_sink(sink: str) -> dict[str, Any]:
    """A query of all that a sink has decided, shown or not, by the sink as a filter has it."""
    return {"term": {f"{OWN}.sink": sink}}


def hidden(by: AliasFilter) -> dict[str, Any]:
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
            why="all its rows are written, and such a copy would show some of them and not others",
            todo="look into the cluster; the query goes on by itself, or once it is restarted",
        )


def _is_own(cluster: Cluster, alias: str, index: str, sink: str, *, decided: bool = False) -> bool:
    """Whether an alias shows this sink; False if it shows none, `StoreRefused` if another."""
    answer = cluster.ask(SHOWING, "GET", path(index, "_alias", alias), allow=(404,))
    if answer.status == 404:
        return False
    about = answer.body[index]["aliases"][alias].get("filter", {})
    terms = (one.get("term", {}) for one in about.get("bool", {}).get("filter", []))
    sinks = {term[f"{OWN}.sink"] for term in terms if f"{OWN}.sink" in term}
    if sinks - {digest(sink)}:
        dropped = f"drop this one (DELETE {index}/_alias/{alias}), which hides them"
        todo = f"name another alias; or if readers need the other sink's rows no more, {dropped}"
        if decided:  # the decision keeps its alias, whatever the option says by now
            todo = f"once readers need the other sink's rows no more, {dropped}"
        raise StoreRefused(
            f"Option visibleAlias={alias!r} is the alias of another sink",
            why="it shows the epochs of one sink, and would hide those of the other",
            todo=f"{todo}; then restart the query",
        )
    return bool(sinks)


def _filter(cluster: Cluster, alias: str, index: str, query: Mapping[str, Any]) -> None:
    action = {"add": {"index": index, "alias": alias, "filter": query}}
    answer = cluster.ask(SHOWING, "POST", "/_aliases", body={"actions": [action]})
    todo = "look into the cluster; the query goes on by itself, or once it is restarted"
    _require_taken(answer, f"alias {alias}", todo)


def _require_taken(answer: Answer, what: str, todo: str) -> None:
    if not answer.body["acknowledged"]:
        why = "they are slow, or the cluster loses some"
        raise StoreUnreachable(f"Some nodes did not take {what} in time", why, todo)


def _behind(cluster: Cluster, alias: str, doing: str = REPLACING) -> list[str]:
    status, body = cluster.ask(doing, "GET", path("_alias", alias), allow=(404,))
    return list(body) if status == 200 else []


def make(cluster: Cluster, to: Destination, alias: str) -> bool:
    """Make the index of an overwrite as the one is that it replaces, unless it is there.

    Gives whether it is wanted: not where another overwrite has replaced that index meanwhile.
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
            f"Index {to.index}, which replaces {to.replaces}, could not be made: {message(error)}",
            why="it gets settings and mappings of that one, and the cluster refuses them",
            todo="mend what it names, then run `sparkonce recover`",
        )
    return True


def take_over(cluster: Cluster, to: Destination, alias: str) -> None:
    """Let all aliases of the old index lead to the new one, and delete the old one."""
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
        todo = "look into the cluster, then run `sparkonce recover`"
        _require_taken(answer, f"aliases of {to.index}", todo)
    # The old index is gone: another try was first, or a later overwrite took its place.
    elif to.index not in _behind(cluster, alias):
        _require_superseded(cluster, to, alias)
        # No alias will lead to it.
        cluster.ask(REPLACING, "DELETE", path(to.index), allow=(404,))


def _require_superseded(cluster: Cluster, to: Destination, alias: str) -> None:
    """Go on only where the alias leads to the index of an overwrite that was decided later."""
    others = _behind(cluster, alias)
    if not others:
        raise StoreRefused(
            f"Index {to.replaces} is there no more, nor is one behind alias {alias}",
            why="something else has deleted it since the batch was decided",
            todo="make it anew, with its aliases, then run `sparkonce recover`",
        )
    log.warning("%s comes too late: %s has replaced %s", to.index, others, to.replaces)


class IndexNames:
    """Notes, beside the ledgers, where sinks write.

    An alias and its index are two targets by option ``index``, and so two ledgers, of which neither
    knows what the other has decided. So each sink notes beside its ledger which indices its target
    has led to, before it decides; and a sink that comes new to an index looks who was there before
    under the same sink id. A note stays when an alias moves on.
    """

    def __init__(self, records: LedgerRecords) -> None:
        self.records = records
        self._noted: set[tuple[str, str]] = set()

    def require_one(self, manifest: Manifest, index: str) -> None:
        """Refuse to decide a manifest whose sink id has another name for the same index.

        Of a template, `index` is the pattern of the names that rows bring.
        """
        if (manifest.sink, index) in self._noted:
            return
        ledger = from_record(self.records.read(manifest.sink), manifest.sink)
        begins = ledger is None or not ledger.totals.epochs
        # A batch without a name has an id of its own, and is none's repetition.
        if ledger is None or not ledger.owner.once:
            new = self._note(manifest, index)
            notes = self._notes(manifest.sink) if new or begins else []
            moved = any(sink == manifest.sink and at != index for sink, at, _ in notes)
            for sink, at, name in notes if begins or moved else ():
                if sink != manifest.sink and meet(at, index) and self._has_ledger(sink):
                    if new:  # it writes nothing there, and stands in nobody's way
                        note = path(self.records.indices.ledger, "_doc", _id(manifest, index))
                        self.records.cluster.ask(NOTING, "DELETE", note, allow=(404,))
                    here, there = manifest.target.partition(":")[2], name.partition(":")[2]
                    raise StoreRefused(
                        f"Option index={here!r} leads to {index}, into which this sink id writes as"
                        f" {there!r}",
                        why=f"each name has a ledger of its own, and that of {sink} would not be"
                        " asked: what it has applied would be applied again",
                        todo=f"set index={there}; or if these are other rows, set a sinkId of their"
                        " own",
                    )
        self._noted.add((manifest.sink, index))

    def _note(self, manifest: Manifest, index: str) -> bool:
        """Write a note; whether it was not there. Two that come at once find each other's."""
        about = {"name": manifest.sink, "place": index, "target": manifest.target}
        target = path(self.records.indices.ledger, "_create", _id(manifest, index))
        answer = self.records.cluster.ask(
            NOTING, "PUT", target, body={"kind": "naming", **about}, allow=(409,)
        )
        return answer.status != 409

    def _has_ledger(self, sink: str) -> bool:
        ledger = from_record(self.records.read(sink), sink)
        return ledger is not None and not ledger.owner.forgotten

    def _notes(self, sink: str) -> list[tuple[str, str, str]]:
        """The sinks of the same sink id, with an index and the name for it, each."""
        cluster, index = self.records.cluster, self.records.indices.ledger
        cluster.ask(LOOKING, "POST", path(index, "_refresh"))
        same = {"prefix": {"name": f"{sink.rpartition('@')[0]}@"}}
        query = {"bool": {"filter": [{"term": {"kind": "naming"}}, same]}}
        pages = reads.pages(cluster, LOOKING, index, {"query": query, "sort": ["name", "_doc"]})
        with reading(f"naming of {sink}"):
            found = (hit["_source"] for page in pages for hit in page)
            return [(one["name"], one["place"], one["target"]) for one in found]


def _id(manifest: Manifest, index: str) -> str:
    # As long as the name is, which may be 255 bytes of the 512 that an id may have.
    return f"naming/{digest(manifest.sink)}/{index}"
