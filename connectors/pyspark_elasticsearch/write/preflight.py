"""What is checked before any row is read: the server, and the target at each decision."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import elasticsearch

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import message
from pyspark_elasticsearch.target import aliases, pipelines, templates
from pyspark_elasticsearch.target import lookup as targets
from pyspark_elasticsearch.target.lookup import GUARD, OWN, STAMP, Target
from pyspark_elasticsearch.target.placement import behind
from pyspark_elasticsearch.write import fitness
from pyspark_elasticsearch.write.documents import Documents, RowGuard
from pyspark_elasticsearch.write.plan import named_twice, own_index
from sparkonce.errors import OptionError, SparkonceError, StoreError, StoreRefused
from sparkonce.option_values import seconds
from sparkonce.protocol import Stored

log = logging.getLogger("sparkonce")

Definitions = Mapping[str, pipelines.Definition]
GC_DELETES, FORGOTTEN = "index.gc_deletes", "60s"
TOMBSTONES = 3600  # seconds for which a deleted document's version must be remembered
OLDEST = 8
CLIENTS = {8: "elasticsearch>=8.15,<9", 9: "elasticsearch>=9,<10"}
"""What to install, by major release."""


def require_fit_server(cluster: Cluster) -> None:
    """Refuse a server that this client does not speak to, or that is no cluster of one's own."""
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


def _versions(server: str, client: int, fit: int) -> StoreRefused:
    # `fit` is the client's major release that would do.
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


def require_safe_indices(
    cluster: Cluster,
    names: Iterable[str],
    require: Callable[[Target], None] = fitness.require_own,
) -> None:
    """Refuse indices of the connector's own that may lose some of what they hold."""
    for index in names:
        if found := targets.resolve(cluster, index):
            require(found)


def require_apart(cluster: Cluster, index: str, own: tuple[str, ...], letters: str | None) -> None:
    """Refuse a target that is one index with the connector's own or the one of dead letters.

    The target and that of letters may be named by aliases; of a template nothing is known.
    """
    ours = set[str]().union(*(behind(cluster, name) for name in own))
    target = set() if "{" in index else behind(cluster, index)
    aside = behind(cluster, letters) if letters else set()
    for option, name, found in (("index", index, target), ("deadLetter", letters, aside)):
        if ours & found:
            raise own_index(option, f"{name}")
    if target & aside:
        raise named_twice(f"index={index}", f"deadLetter={letters}")


class TargetWatch:
    """Looks at the target, before each decision: a name that stays says nothing of it.

    An index may be deleted and made anew, or a pipeline get another body, from one epoch to the
    next. So one request (and one for ingest pipelines, where there are any) asks for all that the
    guarantee rests on, and what is not as it was when it was found to be fit is looked at as a
    whole once more.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._of: Documents | None = None  # what the target is fit for
        self._target: Target | None = None  # it is none where each row names it
        self._pipelines: Definitions = {}  # that rows go through, and those that they call

    def require_fit(self, documents: Documents) -> Target | None:
        """The target as a query may begin with it, made fit where that can be done; or refused."""
        return self._whole(documents, documents.create)

    def require_still_fit(self, documents: Documents) -> Target | None:
        """The target as it is now; refused if it is gone since the query began, or not fit now."""
        if documents.parts:  # an index may have come since, with a pipeline of its own
            return self._whole(documents, None)
        appends = documents.follows_aliases
        now = targets.resolve(self.cluster, documents.index, appends=appends, whole=False)
        if now is None:
            raise StoreRefused(
                f"There is no index {documents.index} any more",
                why="it was deleted since the query began; the rows of earlier epochs are gone with"
                " it",
                todo="restore it from a snapshot, or create it, then restart the query; to write"
                " all rows again, start a new checkpoint",
            )
        fit, known = self._target, self._pipelines
        same = documents == self._of and fit is not None and now.sign == fit.sign
        if same and (not known or pipelines.read(self.cluster, known) == known):
            return now
        return self._whole(documents, None)

    @property
    def has_pipelines(self) -> bool:
        """Whether rows went through ingest pipelines when the target was last looked at."""
        return bool(self._pipelines)

    def _whole(self, documents: Documents, new: Stored | None) -> Target | None:
        self._of, self._target, self._pipelines = None, None, {}
        self._target, self._pipelines = _fit_target(self.cluster, documents, new)
        self._of = documents
        return self._target


def _fit_target(
    cluster: Cluster, documents: Documents, new: Stored | None
) -> tuple[Target | None, Definitions]:
    if documents.parts:  # there is no index before the first row
        # Also where rows bring their own pipeline: an index has one for the end.
        pattern = templates.pattern(documents.parts)
        of_names = templates.settings(cluster, pattern, documents.index)
        return None, _fit_pipelines(cluster, documents, {}, *of_names)
    name, appends = documents.index, documents.follows_aliases
    found = targets.resolve(cluster, name, appends=appends)
    if found is None:
        _require_no_stream(cluster, documents)
    # Mode overwrite writes to an alias of the index that is made.
    index = f"{name}{aliases.FIRST}" if documents.overwrites else name
    made = found is None and new is not None
    if made:
        body = {**(new or {}), "aliases": {name: {}} if documents.overwrites else {}}
        made = _create(cluster, index, body)
    try:
        found = found or targets.resolve(cluster, name, appends=appends)
        return _require_fit(cluster, documents, found)
    except SparkonceError:
        if made:
            with suppress(StoreError):  # the reason is what is not fit
                _take_back(cluster, index)
        raise


def _require_no_stream(cluster: Cluster, documents: Documents) -> None:
    name = documents.index
    if template := templates.stream_of(cluster, name):
        todo = f"make it (PUT _data_stream/{name}), then restart the query"
        if documents.mode.guard is not RowGuard.ID:
            todo = f"name an index that {template} does not match, as a data stream takes appends"
        raise OptionError(
            f"Option index: there is no data stream {name}",
            why=f"index template {template} matches that name, and makes data streams alone",
            todo=todo,
        )


def _require_fit(
    cluster: Cluster, documents: Documents, found: Target | None
) -> tuple[Target | None, Definitions]:
    if found is None:
        raise OptionError(
            f"Option index: there is no index {documents.index}",
            why="a first write would make it, with mappings that are guessed from one row",
            todo="create it, mend the option, or set option createIndex=true",
        )
    fitness.require_fit(found, documents)
    through = _fit_pipelines(cluster, documents, found.settings)
    if documents.mode.guard is RowGuard.SCRIPT:
        _map(cluster, found, GUARD)
    elif documents.alias:
        _map(cluster, found, STAMP)
    if documents.mode.verb == "delete" or documents.op:
        _raise_gc_deletes(cluster, found)
    if documents.alias:
        aliases.prepare(cluster, documents.alias, found.name)
    return found, through


def _fit_pipelines(
    cluster: Cluster, documents: Documents, *settings: Mapping[str, Any]
) -> Definitions:
    first = {name for one in settings for name in pipelines.of(documents, one)}
    found = pipelines.tree(cluster, first)
    pipelines.require_kept(documents, found)
    return found


def _map(cluster: Cluster, target: Target, own: Mapping[str, Any]) -> None:
    there = target.fields.get(OWN, {})
    if any(there.get(name) != value for name, value in own.items() if name != "type"):
        doing = f"adding field {OWN} to the mapping of {target.name}"
        body = {"properties": {OWN: own}}
        cluster.ask(doing, "PUT", path(target.name, "_mapping"), body=body)


def _raise_gc_deletes(cluster: Cluster, target: Target) -> None:
    now = str(target.settings.get(GC_DELETES, FORGOTTEN))
    with suppress(ValueError):  # micros and nanos
        if seconds(0, float("inf"))(now) >= TOMBSTONES:
            return
    doing, settings = f"raising {GC_DELETES}", path(target.name, "_settings")
    body = {GC_DELETES: f"{TOMBSTONES}s"}
    if cluster.ask(doing, "PUT", settings, body=body, allow=(403,)).status == 403:
        log.warning(
            "Index %s forgets after %s what was deleted, and this user may not change that:"
            " a write that is late by more brings a deleted document back",
            *(target.name, now),
        )


def _create(cluster: Cluster, index: str, body: Mapping[str, Any]) -> bool:
    status, error = indices.make(cluster, index, body)
    if error:
        why, todo = _of_creation(f"{error.get('type')}: {message(error)}")
        what = f"Option createIndex could not make index {index}: {error.get('reason')}"
        raise OptionError(what, why, todo)
    return status == 200


def _of_creation(error: str) -> tuple[str, str]:
    """Why, and what to do."""
    limits = {
        "Limit of total fields": ("total_fields", "columns", "write fewer columns"),
        "Limit of mapping depth": ("depth", "structs in structs", "make structs less deep"),
        "Limit of nested": ("nested_fields", "nested fields", "write fewer of them"),
    }
    for words, (limit, many, fewer) in limits.items():
        if words in error:
            raised = f"raise index.mapping.{limit}.limit for it by an index template"
            return f"the query has more {many} than that", f"{raised}, or {fewer}"
    if error.startswith("invalid_index_name_exception"):
        return "the cluster refuses its name", "mend option index"
    if error.startswith(("mapper_", "document_parsing", "illegal_argument")):
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
