"""The cluster's errors as ours: one table by status and type, one place."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import elasticsearch

from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable

GOES_ON = "then restart the query; it goes on where it stopped"
AGAIN = "check option url and the cluster; what is started again loses and doubles nothing"


class Kind(enum.Enum):
    """What an answer asks for."""

    LOST = "no answer, or none that says what became of the request"
    PASSING = "nothing was done; the same may work in a moment"
    CONFLICT = "the document has a version that is as high"
    LATE = "the document's guard has a higher fence"
    ROW = "this document can't be stored"
    INDEX = "the index takes no writes, and others may"
    TOO_LARGE = "the request is larger than the server takes"
    REFUSED = "someone must change something"


class Known(NamedTuple):
    """What is known of an answer."""

    kind: Kind
    why: str
    todo: str


def _refused(why: str, todo: str) -> Known:
    return Known(Kind.REFUSED, why, f"{todo}, {GOES_ON}")


def _index(why: str, todo: str) -> Known:
    return Known(Kind.INDEX, why, f"{todo}, {GOES_ON}")


def _row(why: str) -> Known:
    return Known(
        Kind.ROW,
        why,
        "mend the mapping, or set option onBadRow=deadLetter, which puts such rows aside",
    )


_BUSY = Known(Kind.PASSING, "the cluster has more to do than it can", AGAIN)

_NOT_THERE = "the index is not there (any more)", "create or restore it"

BY_TYPE = {
    "index_not_found_exception": _index(*_NOT_THERE),
    "resource_not_found_exception": _refused(
        "something that an ingest pipeline names is not there (any more), such as a stored script",
        "create what the answer names",
    ),
    "index_closed_exception": _index("the index is closed", "open it (POST <index>/_open)"),
    "invalid_index_name_exception": _index("that is no name of an index", "mend option index"),
    "cluster_block_exception": _refused(
        "the index or the cluster is read-only", "remove the block (index.blocks.*)"
    ),
    "security_exception": _refused(
        "the user or the API key lacks a right", "grant it as docs/permissions.md lists"
    ),
    "version_conflict_engine_exception": Known(
        Kind.CONFLICT, "the document was changed meanwhile", AGAIN
    ),
    "es_rejected_execution_exception": _BUSY,
    "circuit_breaking_exception": _BUSY,
    "process_cluster_event_timeout_exception": _BUSY,
    "unavailable_shards_exception": Known(
        Kind.PASSING, "the index has no primary shard now", AGAIN
    ),
    "no_shard_available_action_exception": Known(
        Kind.PASSING, "the index has no shard that answers now", AGAIN
    ),
    "document_parsing_exception": _row("a field does not fit its mapping"),
    "mapper_parsing_exception": _row("a field does not fit its mapping"),
    "mapper_exception": _row("a field does not fit the mapping"),
    "strict_dynamic_mapping_exception": _row("the mapping is strict and lacks a field"),
    "illegal_argument_exception": _row("the cluster can't store the document as it is"),
    "script_exception": Known(
        Kind.ROW,
        "the number can't be added to what is stored",
        "mend what the document holds, or set option onBadRow=deadLetter, which puts such rows"
        " aside",
    ),
    "document_missing_exception": _row("there is no such document"),
    "routing_missing_exception": _row("the mapping asks for a routing; set option routing"),
    "parsing_exception": _row("the document is malformed"),
    "x_content_parse_exception": _row("the document is malformed"),
    "action_request_validation_exception": _row("the document's id or size is refused"),
    "ingest_processor_exception": _row("the ingest pipeline failed on it"),
    "fail_processor_exception": _row("the ingest pipeline refused it"),
    "failure_store_used": _refused(
        "it would hold the row once more at each try, and this connector would know of none",
        'turn it off (PUT _data_stream/<name>/_options {"failure_store": {"enabled": false}}) and'
        " mend the mapping, or set option onBadRow=deadLetter",
    ),
    "media_type_header_exception": _refused(
        "this release of the client does not speak to this release of the server",
        "pip install 'elasticsearch>=8.15,<9' on the driver and every executor",
    ),
}

BY_STATUS = {
    401: _refused(
        "the cluster does not take these credentials",
        "check options user, password, passwordFile and apiKey, or the URL",
    ),
    403: BY_TYPE["security_exception"],
    404: _refused(*_NOT_THERE),
    409: _refused("the cluster sees a conflict, and not one of versions", "look it up"),
    413: Known(
        Kind.TOO_LARGE,
        "a single document is larger than http.max_content_length of the server, or of a proxy",
        "raise it, or cut the row's large columns before the sink",
    ),
    429: _BUSY,
    502: Known(Kind.LOST, "a proxy could not reach the server", AGAIN),
    503: Known(Kind.PASSING, "the cluster is not ready: it has no master, or starts", AGAIN),
    504: Known(Kind.LOST, "a proxy waited too long for the server", AGAIN),
}

_CONDITIONS = {
    "no enrich index exists": _refused(
        "an enrich policy of the ingest pipeline was not executed", "execute it"
    ),
    "no write index is defined": _refused(
        "the name is an alias of several indices", "set is_write_index on one of them"
    ),
    "Number of documents in ": _refused(
        "the index's shard has as many documents as one can have",
        "take an index with more shards, or names from the rows' dates",
    ),
}
"""What an illegal argument says, in its first words, where it is about no row."""

NOT_CALLED = "Pipeline processor configured for non-existent pipeline ["
"""What an illegal state says, which has the status of a failure inside the server."""

NO_PIPELINE = _refused("the ingest pipeline is not there (any more)", "create it")
TOO_MANY_SCRIPTS = Known(
    Kind.PASSING,
    "the cluster compiles no more scripts for now (script.max_compilations_rate)",
    AGAIN,
)
NO_SCRIPTS = _refused(
    "the cluster does not run the script that guards each document",
    "allow it (script.allowed_types with inline, script.allowed_contexts with update)",
)
OTHER = _refused("the cluster gave this answer to the connector", "look it up")
OF_SERVER = Known(Kind.LOST, "the server failed inside", "look into its log")
FLOOD = Known(
    Kind.PASSING,
    "a node's disk is nearly full (flood stage), and the index takes no writes",
    "free disk space on the cluster",
)


BLOCKED = _index(
    "the index is read-only, by its own setting or as a part of a snapshot",
    "remove the block (index.blocks.*)",
)

LATE = Known(
    Kind.LATE,
    "the ledger's index was lost or restored, and the clock of the driver that decided is behind"
    " that of an earlier one",
    "set the clock right",
)


MAPPING_LATE = Known(
    Kind.PASSING,
    "the mapping could not be extended in time for a new field: the master or a node is slow",
    AGAIN,
)


Knows = Callable[[int, Any], Known]
"""Says what is known of an answer, by its status and error."""


def known(status: int, error: Any) -> Known:
    """What is known of an answer, of a request or of one item of a bulk."""
    kind = error.get("type", "") if isinstance(error, Mapping) else ""
    if status == 401:
        return BY_STATUS[status]
    if kind == "cluster_block_exception":
        return _of_block(status, str(error.get("reason", "")))
    if kind == "mapper_exception" and status >= 500:
        return MAPPING_LATE
    if kind == "illegal_argument_exception":
        return _of_illegal(error)
    if kind == "illegal_state_exception" and str(error.get("reason", "")).startswith(NOT_CALLED):
        return NO_PIPELINE
    by_status = BY_STATUS.get(status, OF_SERVER if status >= 500 else OTHER)
    return BY_TYPE.get(kind, by_status)


def _of_block(status: int, reason: str) -> Known:
    """What a block asks for. A full disk, and a cluster without a master, pass."""
    if status in (429, 503):
        return FLOOD if status == 429 else BY_STATUS[503]
    return BLOCKED if reason.startswith("index [") else BY_TYPE["cluster_block_exception"]


def _of_illegal(error: Mapping[str, Any]) -> Known:
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
        return _of_script([*causes(error)])
    return BY_TYPE["illegal_argument_exception"]


def _of_script(causes: Sequence[Mapping[str, Any]]) -> Known:
    """Why a script failed, or did not even run."""
    if any(cause.get("type") == "circuit_breaking_exception" for cause in causes):
        return TOO_MANY_SCRIPTS
    ran = any(cause.get("reason") == "runtime error" for cause in causes)
    return BY_TYPE["script_exception"] if ran else NO_SCRIPTS


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
    kind, why, todo = known(status, error)
    if kind is Kind.INDEX:
        mended = todo.removesuffix(f", {GOES_ON}")
        return why, f"{mended}, or set option onBadRow=deadLetter, which puts its rows aside"
    return why, todo


def message(error: Any) -> str:
    """The server's own words: the reason, and what caused it."""
    known = islice(causes(error), 3)
    words = [f"{cause.get('type', '')}: {cause.get('reason', '')}" for cause in known]
    return "; ".join(words) or str(error)


@contextmanager
def translated(doing: str, known: Knows = known) -> Iterator[None]:
    """Raise what the client raises as one of our errors.

    Args:
        doing: what was tried.
        known: says what an answer asks for.
    """
    try:
        yield
    except (elasticsearch.ApiError, elasticsearch.TransportError) as error:
        raise _translated(error, doing, known) from None


def _translated(error: Exception, doing: str, known: Knows) -> StoreError:
    if isinstance(error, elasticsearch.UnsupportedProductError):
        about = error.body.get("version") if isinstance(error.body, Mapping) else None
        name = about.get("distribution") if isinstance(about, Mapping) else None
        said = "OpenSearch" if name == "opensearch" else "not Elasticsearch"
        return StoreRefused(
            f"What answers is {said}, while {doing}",
            why=str(error.message),
            todo="check option url; OpenSearch and servers before 7.14 are not supported",
        )
    if isinstance(error, elasticsearch.ApiError):
        body = error.body
        told = body.get("error") if isinstance(body, Mapping) else str(body)[:200]
        return of_answer(error.meta.status, told, doing, known)
    if isinstance(error, elasticsearch.SSLError):
        return StoreRefused(
            f"TLS to the cluster failed while {doing}: {error.message}",
            why="its certificate is not trusted, or it speaks no TLS",
            todo=f"set option tlsCaFile, or mend option url, {GOES_ON}",
        )
    said = getattr(error, "message", str(error))
    is_late = isinstance(error, elasticsearch.ConnectionTimeout)
    return StoreUnreachable(
        f"Elasticsearch did not answer while {doing}: {type(error).__name__}: {said}",
        why="nothing came within option timeout: it is too slow, has too much to do, or is away"
        if is_late
        else "it is down, too slow (option timeout), or the network or option url is wrong",
        todo=f"raise option timeout, or {AGAIN}" if is_late else AGAIN,
    )


def of_answer(status: int, error: Any, doing: str, known: Knows = known) -> StoreError:
    """Our error for an answer that says no."""
    kind, why, todo = known(status, error)
    if kind in (Kind.LOST, Kind.PASSING):
        return StoreUnreachable(
            f"Elasticsearch failed while {doing}: {status} {message(error)}", why, todo
        )
    return StoreRefused(
        f"Elasticsearch refused while {doing}: {status} {message(error)}", why, todo
    )
