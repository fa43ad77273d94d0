"""Maps errors of the cluster, by status and type, to errors of sparkonce."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

from pyspark_elasticsearch.server.library import OtherProduct, TimedOut, Unanswered, Untrusted
from sparkonce.errors import (
    AGAIN,
    RESTART,
    FailureKind,
    KnownFailure,
    StoreError,
    StoreRefused,
    StoreUnreachable,
    refused,
)

PIPELINE = "correct the row or the pipeline"
REINDEX = "correct the row, or reindex with a mapping that can hold it"


def _row(why: str, cure: str = REINDEX) -> KnownFailure:
    todo = f"{cure}, or set option onBadRow=deadLetter, which writes such rows to an index"
    return KnownFailure(FailureKind.ROW, why, todo)


_index = partial(refused, kind=FailureKind.INDEX)
_passing = partial(KnownFailure, FailureKind.PASSING)
_lost = partial(KnownFailure, FailureKind.LOST)
_BUSY = _passing("the cluster is overloaded")

_MISSING = "the index does not exist, or was deleted", "create or restore it"

BY_TYPE = {
    "index_not_found_exception": _index(*_MISSING),
    "resource_not_found_exception": refused(
        "something that an ingest pipeline names does not exist, for example a stored script",
        "create what the answer names",
    ),
    "index_closed_exception": _index("the index is closed", "open it (POST <index>/_open)"),
    "invalid_index_name_exception": _index("no index can have this name", "correct option index"),
    "cluster_block_exception": refused(
        "the index or the cluster is read-only", "remove the block (index.blocks.*)"
    ),
    "security_exception": refused(
        "the user or the API key lacks a right", "grant it as docs/permissions.md lists"
    ),
    "version_conflict_engine_exception": KnownFailure(
        FailureKind.CONFLICT, "another write changed the document in the meantime"
    ),
    "es_rejected_execution_exception": _BUSY,
    "rejected_execution_exception": _BUSY,  # of OpenSearch
    "index_create_block_exception": _passing(  # of OpenSearch
        "the cluster takes no new index: its disks are nearly full, or an administrator has set"
        " cluster.blocks.create_index",
        "free disk space, or remove the setting",
    ),
    "circuit_breaking_exception": _BUSY,
    "process_cluster_event_timeout_exception": _BUSY,
    "unavailable_shards_exception": _passing("a shard of the index has no primary now"),
    "no_shard_available_action_exception": _passing("no shard of the index answers now"),
    "already_closed_exception": _lost(
        "a node keeps a shard whose files it has closed, as after a full disk",
        "free disk space, and restart that node",
    ),
    "document_parsing_exception": _row("a field does not fit its mapping"),
    "mapper_parsing_exception": _row("a field does not fit its mapping"),
    "mapper_exception": _row("a field does not fit the mapping"),
    "strict_dynamic_mapping_exception": _row("the mapping is strict and lacks a field"),
    "illegal_argument_exception": _row("the cluster cannot store this document"),
    "script_exception": _row(
        "the number can't be added to the stored value, or option script raised an error",
        "correct the document or the script",
    ),
    "document_missing_exception": _row("the document does not exist"),
    "routing_missing_exception": _row("the mapping requires a routing; set option routing"),
    "parsing_exception": _row("the document is malformed"),
    "x_content_parse_exception": _row("the document is malformed"),
    "action_request_validation_exception": _row("the cluster rejects the document's id or size"),
    "ingest_processor_exception": _row("the ingest pipeline failed on the document", PIPELINE),
    "fail_processor_exception": _row("the ingest pipeline rejected the document", PIPELINE),
    "failure_store_used": refused(
        "each try would add the row to the failure store again, unseen by this connector",
        'turn it off (PUT _data_stream/<name>/_options {"failure_store": {"enabled": false}}) and'
        " correct the mapping, or set option onBadRow=deadLetter",
    ),
    "media_type_header_exception": refused(
        "this release of the client does not support this release of the server",
        "pip install 'elasticsearch>=8.15,<9' on the driver and every executor",
    ),
}

BY_STATUS = {
    401: refused(
        "the cluster rejects these credentials",
        "check options user, password, passwordFile and apiKey, or the URL",
    ),
    403: BY_TYPE["security_exception"],
    404: refused(*_MISSING),
    409: refused("a conflict, though not of versions", "look up the answer"),
    413: KnownFailure(
        FailureKind.TOO_LARGE,
        "a single document is larger than http.max_content_length of the server, or of a proxy",
        "raise that limit, or shorten the row's large columns before the sink",
    ),
    429: _BUSY,
    502: _lost("a proxy could not reach the server"),
    503: _passing("the cluster is not ready: it has no master, or is starting"),
    504: _lost("a proxy waited too long for the server"),
}

_CONDITIONS = {
    "no enrich index exists": refused(
        "nobody has executed an enrich policy of the ingest pipeline", "execute it"
    ),
    "no write index is defined": refused(
        "the name is an alias of several indices", "set is_write_index on one of them"
    ),
    "Number of documents in ": refused(
        "a shard of the index holds the maximum number of documents",
        "use an index with more shards, or make names of indices from the rows' dates",
    ),
}
"""The first words of an illegal argument that concerns no row."""

POINTS = _passing(
    "its nodes have as many points in time as they may, and a read has one for each shard",
    "lower option keepAlive, for which they outlive a read, or raise search.max_open_pit_context",
)
NO_PIPELINE = refused("the ingest pipeline does not exist, or was deleted", "create it")
_BY_WORDS = {
    "Pipeline processor configured for non-existent pipeline [": NO_PIPELINE,
    "Trying to create too many Point In Time contexts": POINTS,  # OpenSearch
}
"""The first words of errors whose types and statuses are those of others."""

TOO_MANY_SCRIPTS = _passing(
    "the cluster has reached its limit of compiled scripts (script.max_compilations_rate)"
)
NO_SCRIPTS = refused(
    "the cluster does not allow the script that guards each document",
    "allow it (script.allowed_types with inline, script.allowed_contexts with update)",
)
OTHER = refused("the connector does not know this answer", "look it up")
OF_SERVER = _lost("the server failed internally", "read its log")
FLOOD = _passing(
    "a node's disk is nearly full (flood stage), so the index is read-only",
    "free disk space on the cluster",
)


BLOCKED = _index(
    "the index is read-only, by its own setting or because a snapshot backs it",
    "remove the block (index.blocks.*)",
)

LATE = KnownFailure(
    FailureKind.LATE,
    "the ledger's index was lost or restored, and the clock of the driver that decided is behind"
    " that of an earlier driver",
    "correct the clock",
)


MAPPING_LATE = _passing(
    "the cluster could not add a new field to the mapping in time: the master or a node is slow"
)

TOO_SLOW = KnownFailure(
    FailureKind.REFUSED,
    "the search exceeded option timeout, so the cluster ended it",
    "raise option timeout, or narrow option query, without scripts and leading wildcards",
)

_OF_READS = {
    "search_timeout_exception": TOO_SLOW,
    "index_not_found_exception": KnownFailure(
        FailureKind.REFUSED, _MISSING[0], "correct option index, or restore the index"
    ),
}


def classify(status: int, error: Any) -> KnownFailure:
    """Classify the answer to a request, or to one item of a bulk request."""
    kind = error.get("type", "") if isinstance(error, Mapping) else ""
    if status == 401:
        return BY_STATUS[status]
    if kind == "cluster_block_exception":
        # A full disk and a missing master are temporary.
        of_index = str(error.get("reason", "")).startswith("index [")
        other = BLOCKED if of_index else BY_TYPE[kind]
        return {429: FLOOD, 503: BY_STATUS[503]}.get(status, other)
    if kind == "mapper_exception" and status >= 500:
        return MAPPING_LATE
    if kind == "illegal_argument_exception":
        return _of_illegal(error)
    for cause in causes(error):
        for words, about in _BY_WORDS.items():
            if str(cause.get("reason", "")).startswith(words):
                return about
    by_status = BY_STATUS.get(status, OF_SERVER if status >= 500 else OTHER)
    return BY_TYPE.get(kind, by_status)


def classify_read(status: int, error: Any) -> KnownFailure:
    """Classify the answer to a read, which has a query and no rows."""
    types = [str(cause.get("type")) for cause in causes(error)]
    if found := next((_OF_READS[one] for one in types if one in _OF_READS), None):
        return found
    if "query_phase_execution_exception" in types and "Time exceeded" in message(error):
        return TOO_SLOW
    if status == 400 and not {"index_closed_exception", "media_type_header_exception"} & {*types}:
        why, todo = (
            "the cluster cannot execute the request",
            "correct option query if the answer names it",
        )
        return KnownFailure(FailureKind.REFUSED, why, todo)
    if status == 403 and "cluster_block_exception" in types:
        why, todo = "the index blocks reads", "remove the block (index.blocks.read)"
        return KnownFailure(FailureKind.REFUSED, why, todo)
    kind, why, todo = classify(status, error)
    return KnownFailure(kind, why, todo.replace(RESTART, "then start the read again"))


def _of_illegal(error: Mapping[str, Any]) -> KnownFailure:
    """Classify an illegal argument: the fault of a row, or a condition of the cluster."""
    reason = str(error.get("reason", ""))
    if reason.startswith("pipeline with id [") and reason.endswith("] does not exist"):
        return NO_PIPELINE
    for words, about in _CONDITIONS.items():
        if any(str(cause.get("reason")).startswith(words) for cause in causes(error)):
            return about
    if "sparkonce: the guard has" in message(error):
        return LATE
    if reason == "failed to execute script":
        if any(cause.get("type") == "circuit_breaking_exception" for cause in causes(error)):
            return TOO_MANY_SCRIPTS
        ran = any(cause.get("reason") == "runtime error" for cause in causes(error))
        return BY_TYPE["script_exception"] if ran else NO_SCRIPTS
    return BY_TYPE["illegal_argument_exception"]


def causes(error: Any) -> Iterator[Mapping[str, Any]]:
    """An error and its chain of causes; for a failed search, the error of its first shard."""
    while isinstance(error, Mapping):
        yield error
        shards = error.get("failed_shards") or [{}]
        error = error.get("caused_by") or shards[0].get("reason")


def advice(status: int, error: Any) -> tuple[str, str]:
    """Why the cluster rejected one document, and what to do."""
    if status == 409:
        return (
            "another program writes this document with its own versions, or a query wrote it"
            " without option versionColumn",
            "stop the other writer, delete the document, and wait for index.gc_deletes, after"
            " which the index forgets its version",
        )
    kind, why, todo = classify(status, error)
    if kind is FailureKind.INDEX:
        cure = todo.removesuffix(f", {RESTART}")
        return why, f"{cure}, or set option onBadRow=deadLetter, which writes its rows elsewhere"
    return why, todo


def message(error: Any) -> str:
    """The server's own words: the reason and its causes."""
    words = [f"{one.get('type', '')}: {one.get('reason', '')}" for one in islice(causes(error), 3)]
    return "; ".join(words) or str(error)


@contextmanager
def translated(doing: str, product: str) -> Iterator[None]:
    """Convert errors of the client to errors of sparkonce; `doing` names the request."""
    try:
        yield
    except (Unanswered, OtherProduct) as error:
        raise _translated(error, doing, product) from None


def _translated(error: Unanswered | OtherProduct, doing: str, product: str) -> StoreError:
    if isinstance(error, OtherProduct):
        return StoreRefused(
            f"The server is not {product}, as seen while {doing}",
            why=str(error),
            todo='for OpenSearch use format("opensearch"), on the command line opensearch+<url>;'
            " otherwise check option url: releases before 7.14 also answer so",
        )
    if isinstance(error, Untrusted):
        return StoreRefused(
            f"TLS to the cluster failed while {doing}: {error}",
            why="the client does not trust the certificate, or the server does not use TLS",
            todo=f"set option tlsCaFile, or correct option url, {RESTART}",
        )
    why, todo = (
        "the server is down or too slow (option timeout), or the network or option url is wrong",
        AGAIN,
    )
    if isinstance(error, TimedOut):
        why = "no answer within option timeout: the server is slow, overloaded or unreachable"
        todo = f"raise option timeout, or {AGAIN}"
    return StoreUnreachable(f"{product} did not answer while {doing}: {error}", why, todo)
