"""What is checked before any row is read: the server, and the target at each decision."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import elasticsearch

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import message
from pyspark_elasticsearch.target import lookup as targets
from pyspark_elasticsearch.target import patterns, pipelines, replacing, visibility
from pyspark_elasticsearch.target.mappings import GUARD, OWN, STAMP
from pyspark_elasticsearch.target.whereabouts import behind
from pyspark_elasticsearch.write import fitness, names
from pyspark_elasticsearch.write.documents import Documents, Guard
from pyspark_elasticsearch.write.plan import named_twice, own_index
from sparkonce.errors import OptionError, SparkonceError, StoreError, StoreRefused
from sparkonce.option_values import seconds
from sparkonce.protocol import Stored

log = logging.getLogger("sparkonce")

TOMBSTONES = 3600
"""Seconds for which a deleted document's version must be remembered."""

OLDEST = 8
CLIENTS = {8: "elasticsearch>=8.15,<9", 9: "elasticsearch>=9,<10"}
"""What to install, by major release."""


class Fit(NamedTuple):
    """What was found to be fit.

    Attributes:
        target: None if it is named by each row.
        pipelines: that rows go through, and those that they call.
    """

    target: targets.Target | None
    pipelines: Mapping[str, pipelines.Definition]


NOTHING = Fit(None, {})


def require_fit_server(cluster: Cluster) -> None:
    """Refuse a server that this client does not speak to.

    Raises:
        StoreRefused: it is too old, or the client too new, or it is no cluster of one's own.
    """
    answer = cluster.ask("asking the server for its version", "GET", "/", allow=(400,))
    client = elasticsearch.__version__[0]
    if answer.status == 400:  # it does not know the headers of so new a client
        raise _versions(f"older than {client}", client, OLDEST)
    if answer.body["version"].get("build_flavor") == "serverless":
        raise StoreRefused(
            "The server is Elasticsearch Serverless",
            why="it shows and takes no settings of an index on which the guarantee rests, such as"
            " index.translog.durability and index.gc_deletes",
            todo="use a cluster of your own, or a hosted deployment of Elastic Cloud",
        )
    version = str(answer.body["version"]["number"])
    major = int(version.partition(".")[0])
    if not OLDEST <= major <= client + 1 or client > major:
        raise _versions(version, client, min(major, max(CLIENTS)))


def require_safe_indices(cluster: Cluster, own: Iterable[str]) -> None:
    """Refuse indices of ledgers and staged chunks that may lose some of them.

    Raises:
        StoreUnsafe: it says which.
        StoreRefused: one takes no writes.
    """
    for index in own:
        if found := targets.resolve(cluster, index):
            fitness.require_own(found)


def require_safe_letters(cluster: Cluster, index: str) -> None:
    """Refuse an index of dead letters that may lose some.

    Raises:
        StoreUnsafe: it says why.
        StoreRefused: it takes no writes.
    """
    if found := targets.resolve(cluster, index):
        fitness.require_safe(found)


def require_apart(cluster: Cluster, index: str, own: tuple[str, ...], letters: str | None) -> None:
    """Refuse a target that is one index with the connector's own or the one of dead letters.

    Args:
        cluster: where.
        index: the target, an alias of it, or a template, of which nothing is known.
        own: names of the connector's indices.
        letters: the name, or an alias, of the index of dead letters.

    Raises:
        OptionError: it says which.
    """
    ours = set[str]().union(*(behind(cluster, name) for name in own))
    target = set() if "{" in index else behind(cluster, index)
    aside = behind(cluster, letters) if letters else set()
    for option, name, found in (("index", index, target), ("deadLetter", letters, aside)):
        if ours & found:
            raise own_index(option, f"{name}")
    if target & aside:
        raise named_twice(f"index={index}", f"deadLetter={letters}")


class Watch:
    """Looks at the target, before each decision: a name that stays says nothing of it.

    An index may be deleted and made anew, or a pipeline get another body, from one epoch to the
    next. So one request (and one for ingest pipelines, where there are any) asks for all that the
    guarantee rests on, and what is not as it was when it was found to be fit is looked at as a
    whole once more.

    Args:
        cluster: where.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._of: Documents | None = None
        self._fit = NOTHING

    def require_fit(self, documents: Documents) -> targets.Target | None:
        """The target as a query may begin with it; it is made fit where that can be done.

        Raises:
            SparkonceError: it is not there and may not be made, or it is not fit.
        """
        return self._whole(documents, documents.create)

    def require_still_fit(self, documents: Documents) -> targets.Target | None:
        """The target as it is now, which was there when the query began.

        Raises:
            SparkonceError: it is not there any more, or not fit any more.
        """
        if documents.parts:  # an index may have come since, with a pipeline of its own
            return self._whole(documents, None)
        appends = documents.follows_aliases
        now = targets.require_there(self.cluster, documents.index, appends=appends)
        fit, known = self._fit.target, self._fit.pipelines
        same = documents == self._of and fit is not None and now.sign == fit.sign
        if same and (not known or pipelines.read(self.cluster, known) == known):
            return now
        return self._whole(documents, None)

    @property
    def piped(self) -> bool:
        """Whether rows went through ingest pipelines when the target was last looked at."""
        return bool(self._fit.pipelines)

    def _whole(self, documents: Documents, new: Stored | None) -> targets.Target | None:
        self._of, self._fit = None, NOTHING
        self._fit = _fit_target(self.cluster, documents, new)
        self._of = documents
        return self._fit.target


def _fit_target(cluster: Cluster, documents: Documents, new: Stored | None) -> Fit:
    if documents.parts:  # there is no index before the first row
        # Also where rows bring their own pipeline: an index has one for the end.
        of_names = patterns.settings(cluster, names.pattern(documents.parts), documents.index)
        return Fit(None, _kept(cluster, documents, {}, *of_names))
    name, appends = documents.index, documents.follows_aliases
    found = targets.resolve(cluster, name, appends=appends)
    if found is None:
        _require_no_stream(cluster, documents)
    made = found is None and new is not None and _create(cluster, *_new(documents, new))
    try:
        found = found or targets.resolve(cluster, name, appends=appends)
        return _require_fit(cluster, documents, found)
    except SparkonceError:
        if made:
            with suppress(StoreError):  # the reason is what is not fit
                _take_back(cluster, _new(documents, {})[0])
        raise


def _require_no_stream(cluster: Cluster, documents: Documents) -> None:
    """Refuse a name of which the cluster makes a data stream and no index."""
    name = documents.index
    if template := patterns.stream_of(cluster, name):
        todo = f"make it (PUT _data_stream/{name}), then restart the query"
        if documents.way.guard is not Guard.ID:
            todo = f"name an index that {template} does not match, as a data stream takes appends"
        raise OptionError(
            f"Option index: there is no data stream {name}",
            why=f"index template {template} matches that name, and makes data streams alone",
            todo=todo,
        )


def _new(documents: Documents, body: Stored) -> tuple[str, Stored]:
    """The index that may be made; mode overwrite writes to an alias of it."""
    name = documents.index
    if documents.overwrites:
        return f"{name}{replacing.FIRST}", {**body, "aliases": {name: {}}}
    return name, body


def _require_fit(cluster: Cluster, documents: Documents, found: targets.Target | None) -> Fit:
    if found is None:
        raise OptionError(
            f"Option index: there is no index {documents.index}",
            why="a first write would make it, with mappings that are guessed from one row",
            todo="create it, mend the option, or set option createIndex=true",
        )
    fitness.require_fit(found, documents)
    kept = _kept(cluster, documents, found.settings)
    _prepare(cluster, found, documents)
    visibility.prepare(cluster, documents, found.name)
    return Fit(found, kept)


def _prepare(cluster: Cluster, target: targets.Target, documents: Documents) -> None:
    """Let the index be what a write mode needs: the guard's mapping, tombstones that last."""
    if documents.way.guard is Guard.SCRIPT:
        _map(cluster, target, GUARD)
    elif documents.alias:
        _map(cluster, target, STAMP)
    deletes = documents.way.verb == "delete" or documents.op
    if deletes and _seconds(str(target.settings.get("index.gc_deletes", "60s"))) < TOMBSTONES:
        body = {"index.gc_deletes": f"{TOMBSTONES}s"}
        answer = cluster.ask(
            "raising index.gc_deletes",
            "PUT",
            path(target.name, "_settings"),
            body=body,
            allow=(403,),
        )
        if answer.status == 403:
            log.warning(
                "Index %s forgets after %s what was deleted, and this user may not change that:"
                " a write that is late by more brings a deleted document back",
                target.name,
                target.settings.get("index.gc_deletes", "60s"),
            )


def _map(cluster: Cluster, target: targets.Target, own: Mapping[str, Any]) -> None:
    """See that documents have a field for what the connector keeps in them."""
    there = target.fields.get(OWN, {})
    if any(there.get(name) != value for name, value in own.items() if name != "type"):
        doing = f"adding field {OWN} to the mapping of {target.name}"
        body = {"properties": {OWN: own}}
        cluster.ask(doing, "PUT", path(target.name, "_mapping"), body=body)


def _kept(
    cluster: Cluster, documents: Documents, *settings: Mapping[str, Any]
) -> Mapping[str, pipelines.Definition]:
    first = {name for one in settings for name in pipelines.of(documents, one)}
    found = pipelines.tree(cluster, first)
    pipelines.require_kept(documents, found)
    return found


def _create(cluster: Cluster, index: str, body: Mapping[str, Any]) -> bool:
    """Make an index; whether it was not there."""
    _, error = indices.make(cluster, index, body)
    if error and error.get("type") != indices.EXISTS:
        why, todo = _of_creation(f"{error.get('type')}: {message(error)}")
        said = f"Option createIndex could not make index {index}: {error.get('reason')}"
        raise OptionError(said, why, todo)
    return not error


def _of_creation(said: str) -> tuple[str, str]:
    """Why the cluster did not make an index, and what to do."""
    limits = {
        "Limit of total fields": ("total_fields", "columns", "write fewer columns"),
        "Limit of mapping depth": ("depth", "structs in structs", "make structs less deep"),
        "Limit of nested": ("nested_fields", "nested fields", "write fewer of them"),
    }
    for words, (limit, many, fewer) in limits.items():
        if words in said:
            raised = f"raise index.mapping.{limit}.limit for it by an index template"
            return f"the query has more {many} than that", f"{raised}, or {fewer}"
    if said.startswith("invalid_index_name_exception"):
        return "the cluster refuses its name", "mend option index"
    if said.startswith(("mapper_", "document_parsing", "illegal_argument")):
        return "the cluster refuses the mapping", "rename the column, or create the index by hand"
    return "the cluster refuses it", "mend what it names, or create the index by hand"


def _take_back(cluster: Cluster, index: str) -> None:
    """Delete an index that was just made and is not fit, unless somebody has written to it."""
    doing, absent = f"taking back index {index}", (403, 404)
    blocked = cluster.ask(doing, "PUT", path(index, "_block", "write"), allow=absent)
    if blocked.status != 200:
        return
    cluster.ask(doing, "POST", path(index, "_refresh"), allow=absent)
    counted = cluster.ask(doing, "GET", path(index, "_count"), allow=absent)
    shards = counted.body["_shards"] if counted.status == 200 else {}
    # A shard that has no copy anywhere counts as neither: rows of it can't be seen.
    whole = counted.status == 200 and shards["successful"] == shards["total"]
    if whole and not counted.body["count"]:
        cluster.ask(doing, "DELETE", path(index), allow=absent)
    else:
        body = {"index.blocks.write": None}
        cluster.ask(doing, "PUT", path(index, "_settings"), body=body, allow=absent)


def _versions(server: str, client: int, fit: int) -> StoreRefused:
    """The refusal; `fit` is the client's major release that would do."""
    todo = "look for a newer sparkonce"
    if fit < OLDEST:
        todo = f"upgrade the servers to release {OLDEST} or newer"
    elif fit != client:
        todo = f"pip install '{CLIENTS[fit]}' on the driver and every executor"
    return StoreRefused(
        f"The server's release is {server}, and the Python client's {client}",
        why="a client speaks to servers of its own major release and of the next one, 8 and newer",
        todo=todo,
    )


def _seconds(text: str) -> float:
    try:
        return float(seconds(0, float("inf"))(text))
    except ValueError:  # micros and nanos
        return 0.0
