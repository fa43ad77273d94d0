"""What the explorer calls things, and what docs/model does."""

from __future__ import annotations

from sparkonce.exactly_once.registers import CLAIM, holder_of
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.tape import Line

QUERIES = {"a": "a", "n": "b", "p": "p"}
"""Of one checkpoint path. The third query of the explorer has another path, and is left out."""

SHARED = "orders"
"""The sink id that queries share."""

WHYS = {
    "ConcurrentDriver": "Concurrent",
    "CheckpointReplaced": "Replaced",
    "QueryRetired": "Retired",
    "StagedDataMissing": "Missing",
    "StoreLostData": "Lost",
    "SinkBehindCheckpoint": "SinkBehind",
    "CheckpointBehindSink": "Behind",
    "VersionBehindSink": "Behind",
    "CheckpointDiverged": "Diverged",
    "RowRefused": "Refused",
    "BatchOvertaken": "Overtaken",
    "StoreUnreachable": "Unreachable",
}
"""Why a commit is refused."""

WRITES = frozenset({"own", "retire", "replay", "decide", "finish", "fence", "claim"})
KINDS = {
    "swap": WRITES | {"cut", "free"},
    "publish": {"decide"},
    "decide": {"decide"},
    "apply": {"row"},
    "update": {"row"},
    "mark": {"mark"},
    "fence": {"draw"},
    "stage": {"stage"},
    "doom": {"doom"},
    "discard": {"drop"},
}
"""Which requests of the model those of a store may be."""

READING = frozenset(
    {"read", "names", "unfinished", "decided_after", "staged", "check", "look", "fetch"}
)


def is_claim(name: str) -> bool:
    """Whether a record says who owns a checkpoint path."""
    return name.startswith(CLAIM)


def is_known(sink: str) -> bool:
    """Whether the model has this sink."""
    return sink.partition("@")[0] in (*QUERIES, SHARED)


def name_of(sink: str) -> str:
    """A sink by its name in the model."""
    return query_of(sink.partition("@")[0])


def query_of(query: str) -> str:
    """A query, or a sink id, by its name in the model."""
    return "s" if query == SHARED else QUERIES.get(query, query)


def key(actor: str) -> str:
    """An actor without its part: `a1b` for the driver of that name, and for its commit worker."""
    return actor.partition(" ")[2] or actor


def is_of_other(request: Request) -> bool:
    """Whether a request is about a sink, or a claim, that the model does not have."""
    sink = request.sink
    if is_claim(sink) and request.new is not None:
        sink = holder_of(request.new, request.name) or ""
    return bool(sink) and not is_claim(sink) and not is_known(sink)


def is_other(line: Line) -> bool:
    """Whether it is about the query of another path."""
    return key(line.who).startswith("c")


# -- what became of a request


def arrives(line: Line) -> bool:
    """Whether it took its effect at once."""
    return line.fault is None or line.fault.effect


def is_heard(line: Line) -> bool:
    """Whether it was answered."""
    return line.fault is None or line.fault.answer


def is_late(line: Line) -> bool:
    """Whether it comes late, or once more."""
    return line.fault is not None and line.fault.late is not None


def may_come(line: Line) -> bool:
    """Whether it may come later, or is sent again by who got no answer."""
    return is_late(line) or not is_heard(line)
