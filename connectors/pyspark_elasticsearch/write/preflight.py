"""Checks the server before a query reads any row, and the target before each decision."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.journal import indices
from pyspark_elasticsearch.server import bulk
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import causes, message
from pyspark_elasticsearch.target import aliases, pipelines, safety, templates
from pyspark_elasticsearch.target import lookup as targets
from pyspark_elasticsearch.target.lookup import GUARD, OWN, STAMP, Target
from pyspark_elasticsearch.target.placement import behind
from pyspark_elasticsearch.write import fitness
from pyspark_elasticsearch.write.documents import Documents, RowGuard, script
from pyspark_elasticsearch.write.plan import named_twice, own_index
from sparkonce import checks
from sparkonce.errors import OptionError, SparkonceError, StoreError, StoreRefused, error_text
from sparkonce.option_values import seconds
from sparkonce.protocol import Stored
from sparkonce.templates import pattern as pattern_of
from sparkonce.values.spark_types import spark_type

log = logging.getLogger("sparkonce")

Definitions = Mapping[str, pipelines.Definition]
GC_DELETES, FORGOTTEN = "index.gc_deletes", "60s"
OF_NAMES = (
    "remove it from the template, or choose names that it does not match. If no row goes to an"
    " index, set index.blocks.write on it"
)
TOMBSTONES = 3600  # seconds for which the index must remember a deleted document's version


def require_safe_indices(
    cluster: Cluster,
    names: Iterable[str],
    require: Callable[[Target], None] = fitness.require_own,
) -> None:
    """Reject indices of the connector that may lose what they hold."""
    for index in names:
        if found := targets.resolve(cluster, index):
            require(found)


def require_apart(cluster: Cluster, index: str, own: tuple[str, ...], letters: str | None) -> None:
    """Reject a target that is also an index of the connector, or the index of dead letters.

    Aliases may name the target and the index of dead letters. A template is not checked.
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
    """Checks the target before each decision: behind the same name it may have changed.

    From one epoch to the next somebody may recreate an index, or change a pipeline. So one request,
    and another one for ingest pipelines, reads everything that the guarantee depends on. If
    anything differs from the target that passed the checks, all checks run again.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._of: Documents | None = None  # the documents that the target is fit for
        self._target: Target | None = None  # None where each row names its index
        self._pipelines: Definitions = {}  # those that rows pass through, and those that they call

    def require_fit(self, documents: Documents) -> Target | None:
        """The target at the start of a query, adjusted where possible; rejects an unfit target."""
        return self._whole(documents, documents.create)

    def require_still_fit(self, documents: Documents) -> Target | None:
        """The current target; rejects one that was deleted since the start, or is unfit now."""
        if documents.parts:  # an index may be new, with its own pipeline
            return self._whole(documents, None)
        appends = documents.follows_aliases
        now = targets.resolve(self.cluster, documents.index, appends=appends, whole=False)
        if now is None:
            raise StoreRefused(
                f"Index {documents.index} no longer exists",
                why="somebody deleted it after the query began, and with it the rows of earlier"
                " epochs",
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
        """Whether rows passed through ingest pipelines at the last check of the target."""
        return bool(self._pipelines)

    def _whole(self, documents: Documents, new: Stored | None) -> Target | None:
        self._of, self._target, self._pipelines = None, None, {}
        self._target, self._pipelines = _fit_target(self.cluster, documents, new)
        self._of = documents
        return self._target


def _fit_target(
    cluster: Cluster, documents: Documents, new: Stored | None
) -> tuple[Target | None, Definitions]:
    if documents.parts:  # the first row creates the index
        # Even where option pipeline is set: an index may also have a final pipeline.
        pattern = pattern_of(documents.parts)
        of_names = dict(templates.settings(cluster, pattern, documents.index))
        for of, settings in of_names.items():
            if not safety.is_closed(settings):  # no row goes there
                safety.require(of, settings, safety.ALL, OF_NAMES)
        return None, _fit_pipelines(cluster, documents, {}, *of_names.values())
    name, appends = documents.index, documents.follows_aliases
    found = targets.resolve(cluster, name, appends=appends)
    # Mode overwrite writes to an alias of the new index.
    index = f"{name}{aliases.FIRST}" if documents.overwrites else name
    made, template = False, templates.stream_of(cluster, name) if found is None else ""
    if template:
        _make_stream(cluster, documents, template, create=new is not None)
    elif found is None and new is not None:
        body = {**new, "aliases": {name: {}} if documents.overwrites else {}}
        made = _create(cluster, index, body)
    try:
        found = found or targets.resolve(cluster, name, appends=appends)
        if found and documents.adds and not made and _add_fields(cluster, found, documents):
            found = targets.resolve(cluster, name, appends=appends)
        return _require_fit(cluster, documents, found)
    except SparkonceError:
        if made:
            with suppress(StoreError):  # the error to report is the first one
                _take_back(cluster, index)
        raise


def _make_stream(cluster: Cluster, documents: Documents, template: str, *, create: bool) -> None:
    """Create a data stream whose name an index template matches."""
    name, appends = documents.index, documents.follows_aliases
    if not (create and appends):
        todo = "set option createIndex=true"
        if not appends:
            todo = f"name an index that {template} does not match: data streams accept only appends"
        raise OptionError(
            f"Option index: data stream {name} does not exist",
            why=f"index template {template} matches that name, and creates only data streams",
            todo=todo,
        )
    # A bulk request creates a missing stream. This one stores nothing: a stream takes no update.
    doing, line = f"creating data stream {name}", {"update": {"_index": name, "_id": "none"}}
    lines = f'{json.dumps(line)}\n{{"doc": {{}}}}\n'.encode()
    (item,) = bulk.send(cluster, doing, "/_bulk", lines, 1)
    if not targets.resolve(cluster, name, appends=True):
        raise OptionError(
            f"Option createIndex could not create data stream {name}: {message(item.error)}",
            why=f"index template {template} or the cluster's settings forbid it",
            todo=f"create it by hand (PUT _data_stream/{name}), then restart the query",
        )


def _require_fit(
    cluster: Cluster, documents: Documents, found: Target | None
) -> tuple[Target | None, Definitions]:
    if found is None:
        raise OptionError(
            f"Option index: index {documents.index} does not exist",
            why="the first write would create it, with mappings guessed from one row",
            todo="create it, correct the option, or set option createIndex=true",
        )
    fitness.require_fit(found, documents)
    through = _fit_pipelines(cluster, documents, found.settings)
    if documents.mode.guard is RowGuard.SCRIPT:
        _map(cluster, found, GUARD)
        _require_compiles(cluster, found, documents)
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


def _require_compiles(cluster: Cluster, target: Target, documents: Documents) -> None:
    """Reject a script that the cluster can't compile, by an operation that changes nothing."""
    if not documents.script:
        return
    # With all that rows send: a script may have 65,535 characters.
    source = script(documents, first="if (params.none) { ctx.op = 'none'; return; } ")
    probe = {"source": source, "lang": "painless", "params": {"none": True}}
    body = {"scripted_upsert": True, "script": probe, "upsert": {}}
    at = path(target.name, "_update", "sparkonce-compiles")
    doing, params = f"compiling option script on {target.name}", {"routing": "sparkonce"}
    status, answer = cluster.ask(doing, "POST", at, body=body, params=params, allow=(400,))
    if status == 400:
        found = [one for one in causes(answer["error"]) if one.get("script_stack")]
        near = " ".join(map(str, found[0]["script_stack"])) if found else ""
        raise OptionError(
            f"Option script can't be compiled: {message(answer['error'])} {near}".rstrip(),
            why="the cluster runs it as the body of a function with ctx and params, in Painless",
            todo="correct the script; it can't declare functions",
        )


def _map(cluster: Cluster, target: Target, own: Mapping[str, Any]) -> None:
    there = target.fields.get(OWN, {})
    if any(there.get(name) != value for name, value in own.items() if name != "type"):
        doing = f"adding field {OWN} to the mapping of {target.name}"
        body = {"properties": {OWN: own}}
        cluster.ask(doing, "PUT", path(target.name, "_mapping"), body=body)


def _add_fields(cluster: Cluster, target: Target, documents: Documents) -> bool:
    """Map the columns that the index lacks; whether there were any."""
    arrow = documents.arrow
    columns = pa.schema([arrow.field(name) for name in documents.columns])
    wanted = targets.definition(columns, None, cluster.dialect)["mappings"]["properties"]
    fields = targets.lacking(wanted, target.fields)
    if not fields:
        return False
    doing = f"adding {', '.join(fields)} to the mapping of {target.name}"
    checks.refuse(_of_new_fields(target, {name: columns.field(name) for name in fields}))
    put = path(target.name, "_mapping")
    status, error = cluster.ask(doing, "PUT", put, body={"properties": fields}, allow=(400,))
    if status == 400:
        why, todo = _of_creation(f"{error['error'].get('type')}: {message(error['error'])}")
        raise OptionError(
            f"Option addColumns: {doing} failed: {message(error['error'])}", why, todo
        )
    return True


def _of_new_fields(
    target: Target, fields: Mapping[str, pa.Field]
) -> Iterator[checks.Contradiction]:
    names = ", ".join(fields)
    yield (
        target.since,
        f"Option addColumns can't add {names} to {target.name}, a data stream",
        "its next index would lack them",
        "add them to the index template, and roll over (POST <stream>/_rollover)",
    )
    flat = str(target.mappings.get("subobjects", True)).lower() == "false"
    for name, field in fields.items():
        yield (
            flat and types.is_nested(field.type),
            f"Option addColumns can't add column {name!r} of type {spark_type(field)}",
            f"index {target.name} has subobjects=false in its mapping, and so no objects",
            "select its members as columns, with dots in their names",
        )
        yield (
            _lacks_type(field.type),
            f"Option addColumns can't add column {name!r} of type {spark_type(field)}",
            "a value that is always null does not tell the type of its field",
            "cast the column before the sink",
        )


def _lacks_type(kind: pa.DataType) -> bool:
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return bool(types.is_null(kind)) or any(map(_lacks_type, inner))


def _raise_gc_deletes(cluster: Cluster, target: Target) -> None:
    now = str(target.settings.get(GC_DELETES, FORGOTTEN))
    with suppress(ValueError):  # micros and nanos
        if seconds(0, float("inf"))(now) >= TOMBSTONES:
            return
    doing, settings = f"raising {GC_DELETES}", path(target.name, "_settings")
    body = {GC_DELETES: f"{TOMBSTONES}s"}
    if cluster.ask(doing, "PUT", settings, body=body, allow=(403,)).status == 403:
        said = error_text(
            f"Index {target.name} forgets deletes after {now}",
            why=f"this user may not raise {GC_DELETES}, so a later write can restore a deleted"
            " document",
            todo="grant the user `manage` on the index",
        )
        log.warning("%s", said)


def _create(cluster: Cluster, index: str, body: Mapping[str, Any]) -> bool:
    status, error = indices.make(cluster, index, body)
    if error:
        why, todo = _of_creation(f"{error.get('type')}: {message(error)}")
        what = f"Option createIndex could not create index {index}: {error.get('reason')}"
        raise OptionError(what, why, todo)
    return status == 200


def _of_creation(error: str) -> tuple[str, str]:
    """Why, and what to do."""
    limits = {
        "Limit of total fields": ("total_fields", "columns", "write fewer columns"),
        "Limit of mapping depth": ("depth", "nested structs", "nest fewer structs"),
        "Limit of nested": ("nested_fields", "nested fields", "write fewer of them"),
    }
    for words, (limit, many, fewer) in limits.items():
        if words in error:
            raised = f"raise index.mapping.{limit}.limit for the index by an index template"
            return f"the query has more {many} than the limit", f"{raised}, or {fewer}"
    if error.startswith("invalid_index_name_exception"):
        return "the cluster rejects the name", "correct option index"
    if error.startswith(("mapper_", "document_parsing", "illegal_argument")):
        return "the cluster rejects the mapping", "rename the column, or create the index by hand"
    return "the cluster rejects the index", "correct what it names, or create the index by hand"


def _take_back(cluster: Cluster, index: str) -> None:
    """Delete a new index that is unfit, unless somebody has written to it."""
    doing, absent = f"deleting new index {index}", (403, 404)
    blocked = cluster.ask(doing, "PUT", path(index, "_block", "write"), allow=absent)
    if blocked.status != 200:
        return
    cluster.ask(doing, "POST", path(index, "_refresh"), allow=absent)
    body: dict[str, Any] = {"size": 0, "track_total_hits": True}
    at, params = path(index, "_search"), cluster.dialect.searching
    counted = cluster.ask(doing, "POST", at, params=params, body=body, allow=absent)
    shards = counted.body["_shards"] if counted.status == 200 else {}
    # A shard without any copy counts as neither: its rows are invisible.
    whole = counted.status == 200 and shards["successful"] == shards["total"]
    if whole and not counted.body["hits"]["total"]["value"]:
        cluster.ask(doing, "DELETE", path(index), allow=absent)
    else:
        body = {"index.blocks.write": None}
        cluster.ask(doing, "PUT", path(index, "_settings"), body=body, allow=absent)
