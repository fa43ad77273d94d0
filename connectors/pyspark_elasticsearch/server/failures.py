"""The cluster's errors as ours: one table by status and type, one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any

import elasticsearch

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


def _row(why: str, mend: str = "mend the mapping") -> KnownFailure:
    todo = f"{mend}, or set option onBadRow=deadLetter, which puts such rows aside"
    return KnownFailure(FailureKind.ROW, why, todo)


_index = partial(refused, kind=FailureKind.INDEX)
_passing = partial(KnownFailure, FailureKind.PASSING)
_lost = partial(KnownFailure, FailureKind.LOST)
_BUSY = _passing("the cluster has more to do than it can")

_NOT_THERE = "the index is not there (any more)", "create or restore it"

BY_TYPE = {
    "index_not_found_exception": _index(*_NOT_THERE),
    "resource_not_found_exception": refused(
        "something that an ingest pipeline names is not there (any more), such as a stored script",
        "create what the answer names",
    ),
    "index_closed_exception": _index("the index is closed", "open it (POST <index>/_open)"),
    "invalid_index_name_exception": _index("that is no name of an index", "mend option index"),
    "cluster_block_exception": refused(
        "the index or the cluster is read-only", "remove the block (index.blocks.*)"
    ),
    "security_exception": refused(
        "the user or the API key lacks a right", "grant it as docs/permissions.md lists"
    ),
    "version_conflict_engine_exception": KnownFailure(
        FailureKind.CONFLICT, "the document was changed meanwhile"
    ),
    "es_rejected_execution_exception": _BUSY,
    "circuit_breaking_exception": _BUSY,
    "process_cluster_event_timeout_exception": _BUSY,
    "unavailable_shards_exception": _passing("the index has no primary shard now"),
    "no_shard_available_action_exception": _passing("the index has no shard that answers now"),
    "document_parsing_exception": _row("a field does not fit its mapping"),
    "mapper_parsing_exception": _row("a field does not fit its mapping"),
    "mapper_exception": _row("a field does not fit the mapping"),
    "strict_dynamic_mapping_exception": _row("the mapping is strict and lacks a field"),
    "illegal_argument_exception": _row("the cluster can't store the document as it is"),
    "script_exception": _row(
        "the number can't be added to what is stored", "mend what the document holds"
    ),
    "document_missing_exception": _row("there is no such document"),
    "routing_missing_exception": _row("the mapping asks for a routing; set option routing"),
    "parsing_exception": _row("the document is malformed"),
    "x_content_parse_exception": _row("the document is malformed"),
    "action_request_validation_exception": _row("the document's id or size is refused"),
    "ingest_processor_exception": _row("the ingest pipeline failed on it"),
    "fail_processor_exception": _row("the ingest pipeline refused it"),
    "failure_store_used": refused(
        "it would hold the row once more at each try, and this connector would know of none",
        'turn it off (PUT _data_stream/<name>/_options {"failure_store": {"enabled": false}}) and'
        " mend the mapping, or set option onBadRow=deadLetter",
    ),
    "media_type_header_exception": refused(
        "this release of the client does not speak to this release of the server",
        "pip install 'elasticsearch>=8.15,<9' on the driver and every executor",
    ),
}

BY_STATUS = {
    401: refused(
        "the cluster does not take these credentials",
        "check options user, password, passwordFile and apiKey, or the URL",
    ),
    403: BY_TYPE["security_exception"],
    404: refused(*_NOT_THERE),
    409: refused("the cluster sees a conflict, and not one of versions", "look it up"),
    413: KnownFailure(
        FailureKind.TOO_LARGE,
        "a single document is larger than http.max_content_length of the server, or of a proxy",
        "raise it, or cut the row's large columns before the sink",
    ),
    429: _BUSY,
    502: _lost("a proxy could not reach the server"),
    503: _passing("the cluster is not ready: it has no master, or starts"),
    504: _lost("a proxy waited too long for the server"),
}

_CONDITIONS = {
    "no enrich index exists": refused(
        "an enrich policy of the ingest pipeline was not executed", "execute it"
    ),
    "no write index is defined": refused(
        "the name is an alias of several indices", "set is_write_index on one of them"
    ),
    "Number of documents in ": refused(
        "the index's shard has as many documents as one can have",
        "take an index with more shards, or names from the rows' dates",
    ),
}
"""What an illegal argument says, in its first words, where it is about no row."""

NOT_CALLED = "Pipeline processor configured for non-existent pipeline ["
"""What an illegal state says, which has the status of a failure inside the server."""

NO_PIPELINE = refused("the ingest pipeline is not there (any more)", "create it")
TOO_MANY_SCRIPTS = _passing(
    "the cluster compiles no more scripts for now (script.max_compilations_rate)"
)
NO_SCRIPTS = refused(
    "the cluster does not run the script that guards each document",
    "allow it (script.allowed_types with inline, script.allowed_contexts with update)",
)
OTHER = refused("the cluster gave this answer to the connector", "look it up")
OF_SERVER = _lost("the server failed inside", "look into its log")
FLOOD = _passing(
    "a node's disk is nearly full (flood stage), and the index takes no writes",
    "free disk space on the cluster",
)


BLOCKED = _index(
    "the index is read-only, by its own setting or as a part of a snapshot",
    "remove the block (index.blocks.*)",
)

LATE = KnownFailure(
    FailureKind.LATE,
    "the ledger's index was lost or restored, and the clock of the driver that decided is behind"
    " that of an earlier one",
    "set the clock right",
)


MAPPING_LATE = _passing(
    "the mapping could not be extended in time for a new field: the master or a node is slow"
)

TOO_SLOW = KnownFailure(
    FailureKind.REFUSED,
    "it takes longer than option timeout allows, so the cluster has ended it",
    "raise option timeout, or ask for less: a narrower option query, one without scripts and"
    " leading wildcards",
)

_OF_READS = {
    "search_timeout_exception": TOO_SLOW,
    "index_not_found_exception": KnownFailure(
        FailureKind.REFUSED, _NOT_THERE[0], "mend option index, or restore the index"
    ),
}

Classify = Callable[[int, Any], KnownFailure]
"""Says what is known of an answer, by its status and error."""


def classify(status: int, error: Any) -> KnownFailure:
    """What is known of an answer, of a request or of one item of a bulk."""
    kind = error.get("type", "") if isinstance(error, Mapping) else ""
    if status == 401:
        return BY_STATUS[status]
    if kind == "cluster_block_exception":
        # A full disk, and a cluster without a master, pass.
        of_index = str(error.get("reason", "")).startswith("index [")
        other = BLOCKED if of_index else BY_TYPE[kind]
        return {429: FLOOD, 503: BY_STATUS[503]}.get(status, other)
    if kind == "mapper_exception" and status >= 500:
        return MAPPING_LATE
    if kind == "illegal_argument_exception":
        return _of_illegal(error)
    if kind == "illegal_state_exception" and str(error.get("reason", "")).startswith(NOT_CALLED):
        return NO_PIPELINE
    by_status = BY_STATUS.get(status, OF_SERVER if status >= 500 else OTHER)
    return BY_TYPE.get(kind, by_status)


def classify_read(status: int, error: Any) -> KnownFailure:
    """What is known of an answer to a read: it has a query and no rows, so less can be wrong."""
    types = [str(cause.get("type")) for cause in causes(error)]
    if found := next((_OF_READS[one] for one in types if one in _OF_READS), None):
        return found
    if status == 400 and not {"index_closed_exception", "media_type_header_exception"} & {*types}:
        why, todo = "the cluster can't do what it is asked", "mend option query, if that is named"
        return KnownFailure(FailureKind.REFUSED, why, todo)
    if status == 403 and "cluster_block_exception" in types:
        why, todo = "a block of the index forbids to read it", "remove it (index.blocks.read)"
        return KnownFailure(FailureKind.REFUSED, why, todo)
    kind, why, todo = classify(status, error)
    return KnownFailure(kind, why, todo.replace(RESTART, "then start it again"))


def _of_illegal(error: Mapping[str, Any]) -> KnownFailure:
    """What an illegal argument is: a row's value, or something about the cluster."""
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
    """An error, what caused it, and so on; of a search that failed, as its first shard has it."""
    while isinstance(error, Mapping):
        yield error
        shards = error.get("failed_shards") or [{}]
        error = error.get("caused_by") or shards[0].get("reason")


def advice(status: int, error: Any) -> tuple[str, str]:
    """Why one document was refused, and what to do."""
    if status == 409:
        return (
            "something else writes this document with versions of its own, or it was written"
            " without option versionColumn",
            "stop what else writes it, delete the document, and let index.gc_deletes pass, after"
            " which its version is forgotten",
        )
    kind, why, todo = classify(status, error)
    if kind is FailureKind.INDEX:
        mended = todo.removesuffix(f", {RESTART}")
        return why, f"{mended}, or set option onBadRow=deadLetter, which puts its rows aside"
    return why, todo


def message(error: Any) -> str:
    """The server's own words: the reason, and what caused it."""
    words = [f"{one.get('type', '')}: {one.get('reason', '')}" for one in islice(causes(error), 3)]
    return "; ".join(words) or str(error)


@contextmanager
def translated(doing: str, classify: Classify = classify) -> Iterator[None]:
    """Raise what the client raises, while `doing` was tried, as one of our errors."""
    try:
        yield
    except (elasticsearch.ApiError, elasticsearch.TransportError) as error:
        raise _translated(error, doing, classify) from None


def _translated(error: Exception, doing: str, classify: Classify) -> StoreError:
    if isinstance(error, elasticsearch.UnsupportedProductError):
        about = error.body.get("version") if isinstance(error.body, Mapping) else None
        name = about.get("distribution") if isinstance(about, Mapping) else None
        product = "OpenSearch" if name == "opensearch" else "not Elasticsearch"
        return StoreRefused(
            f"What answers is {product}, while {doing}",
            why=str(error.message),
            todo="check option url; OpenSearch and servers before 7.14 are not supported",
        )
    if isinstance(error, elasticsearch.ApiError):
        body = error.body
        found = body.get("error") if isinstance(body, Mapping) else str(body)[:200]
        return of_answer(error.meta.status, found, doing, classify)
    if isinstance(error, elasticsearch.SSLError):
        return StoreRefused(
            f"TLS to the cluster failed while {doing}: {error.message}",
            why="its certificate is not trusted, or it speaks no TLS",
            todo=f"set option tlsCaFile, or mend option url, {RESTART}",
        )
    words = getattr(error, "message", str(error))
    why, todo = (
        "it is down, too slow (option timeout), or the network or option url is wrong",
        AGAIN,
    )
    if isinstance(error, elasticsearch.ConnectionTimeout):
        why = "nothing came within option timeout: it is too slow, has too much to do, or is away"
        todo = f"raise option timeout, or {AGAIN}"
    what = f"Elasticsearch did not answer while {doing}: {type(error).__name__}: {words}"
    return StoreUnreachable(what, why, todo)


def of_answer(status: int, error: Any, doing: str, classify: Classify = classify) -> StoreError:
    """Our error for an answer that says no."""
    return classify(status, error).error("Elasticsearch", doing, f"{status} {message(error)}")
