"""Which request of the core it is that a step of docs/model sends or reads by."""

from __future__ import annotations

from tools.model.names import KINDS, is_claim, name_of
from tools.model.seen import Eyes, chunk_of, given, ordinal
from tools.model.tla import Function

from sparkonce.tck.explore.requests import Request


def is_sent(request: Request, message: Function, eyes: Eyes) -> bool:
    """Whether it is a message that is on its way: a drop, a doom, a ledger taken away."""
    kind = message["kind"]
    if kind in ("free", "cut"):
        is_it = request.name == "swap" and is_claim(request.sink) == (kind == "free")
    else:
        is_it = request.name == {"drop": "discard", "doom": "doom"}.get(kind)
    named = message["drop"] if kind in ("drop", "doom") else ()
    return is_it and _is_about(request, message) and set(eyes.known(request.attempts)) >= set(named)


def is_asked(request: Request, message: Function, eyes: Eyes) -> bool:
    """Whether it is a message of a driver."""
    kind = message["kind"]
    if not _is_of(request, kind) or not _is_about(request, message):
        return False
    if kind != "row":
        return True
    attempt, seq = chunk_of(request)
    return (ordinal(request), (eyes.numbers[attempt], seq + 1)) == (message["k"], message["c"])


def is_read(request: Request, step: Function, own: str) -> bool:
    """Whether it is what a driver reads at this step.

    Args:
        request: of the core.
        step: of the model; or where a driver is, so that which chunk is not said.
        own: the sink of the driver.
    """
    match step["pc"]:
        case "look" | "fetch":
            return request.name == step["pc"] and _is_at(request, step.get("k"))
        case "alone":
            return request.name == "unfinished"
        case "claim":
            return request.name == "read" and is_claim(request.sink)
        case "rival":
            return request.name == "read" and not is_claim(request.sink) and request.sink != own
        case _:
            return request.name == "read" and not is_claim(request.sink)


def is_next(request: Request, at: Function, own: str) -> bool:
    """Whether it is what a driver is about to do."""
    if at["pc"] in ("ask", "row", "mark"):
        return _is_of(request, at["kind"] if at["pc"] == "ask" else at["pc"])
    if at["pc"] == "neighbours" and is_of_neighbours(request, own):
        return True
    return is_read(request, at, own)


def is_of_neighbours(request: Request, own: str) -> bool:
    """Whether it is what a batch reads of others."""
    of_others = request.name in ("read", "decided_after") and request.sink != own
    return request.name == "unfinished" or of_others


def _is_of(request: Request, kind: str) -> bool:
    return kind in KINDS.get(request.name, ()) and is_claim(request.sink) == (kind == "claim")


def _is_about(request: Request, message: Function) -> bool:
    return is_claim(request.sink) or name_of(request.sink) == message["name"]


def _is_at(request: Request, k: int | None) -> bool:
    if request.name != "fetch" or request.manifest is None or k is None:
        return True
    part, seq = request.manifest.chunks[k - 1]
    return given(request)[1:] == (part.attempt, seq)
