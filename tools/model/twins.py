"""Mutants by name, of the kit, the explorer and docs/model: who finds each, or why one can't.

`python -m tools.model.twins` writes docs/model/mutants.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.kit.explorer_bugs import BUGS
from tests.kit.mutants import MUTANTS
from tools.model.mutants import PLANTED

UNSEEN: Mapping[str, Sequence[str]] = {
    "the model knows stamps, and no numbers that grow": [
        "late duplicate after a match, by revision",
    ],
    "a request is one step of the model, with the guard in it": [
        "an epoch published in pieces",
        "None for a stale decision",
    ],
    "the model has no offsets beside a ledger": ["beside before the comparison", "nothing beside"],
    "the model has no bytes, names and connections": [
        "names without case",
        "a client's own error",
        "records in Latin-1",
        "sizes not checked",
    ],
    "the model has one checkpoint path": ["any upsert takes over"],
    "no two attempts of the model have one name": ["discard in every sink"],
    "the model has one fence for each place, whatever sink": ["one fence for all sinks"],
    "the model lists all that is there": [
        "attempts unlisted until a ledger is there",
        "a page of attempts is listed",
        "a page of names is listed",
        "a page of attempts is dropped",
    ],
    "no invariant says that what harms nobody is cleaned": [
        "nothing ever taken away",
        "doomed and kept",
        "leftovers never cleaned",
        "zombies of older epochs never cleaned",
        "abort that drops nothing",
        "failed tasks never cleaned",
        "record of a nameless batch stays",
    ],
    "the model has no clocks: it takes any attempt for stale": [
        "ages by the clocks of tasks",
        "gc by epoch",
        "gc by attempt",
    ],
    "a chunk is one row, and those of a decision have no order": [
        "chunks applied in another order",
        "partitions ordered as text",
        "rows before a refused one count again",
    ],
    "batches that run at once have no order in the model": [
        "an ended batch is forgotten while an older one waits",
    ],
    "the model knows no batch by a name that others may use": [
        "another query's version skipped",
        "sessions that take turns are drivers of one checkpoint",
    ],
    "the model counts no requests": ["a batch reads each ledger of its target"],
    "each record of the model can be read": ["a ledger that can't be read counts as none"],
    "no operator of the model gives a decision up": ["what is dropped can still be applied"],
    "the model reads the order of decisions from its history": ["each batch counts as overtaken"],
    "no invariant says with which error a driver is refused that had to be": [
        "chunks that a rival has cleaned away reported as lost",
        "clean-up hides the error of a task",
    ],
    "it takes two queries, and 37 steps: TLC does not come so far": ["doom ends with any decision"],
    "no invariant says what may come behind a forget": [
        "a tombstone is not inherited",
        "a tombstone owns its sink",
    ],
    "no invariant says who of two drivers goes on": ["replays supersede"],
    "the model has no options that a manifest could keep": [
        "roll-forward by today's options",
        "repeatable by the last epoch",
    ],
    "the model counts nothing": ["ledger counts chunks", "replays counted"],
    "a task of the model has a message": [
        "None message ignored",
        "messages with None mishandled in abort",
    ],
    "who commits in the model does not wait for the clean-up": ["clean-up fails the commit"],
    "a run of the model has one computation of an epoch": ["second write of a batch skipped"],
}
"""Mutants of the kit that docs/model can't see, by reason."""

ALONE: Mapping[str, str] = {
    "any lane": "the store in memory has no lanes: integration/redis/test_cluster_late.py",
    "rows before the acknowledgement": "the store in memory shows nothing that it will lose:"
    " tests/elasticsearch/test_streams.py",
}
"""Mutants of docs/model that the kit can't see in memory, and which tests stand for them."""

REQUESTS = "its requests are not the model's: one step is several there, or in another order"
UNLIKE: Mapping[str, str] = {
    "check then act in two steps": REQUESTS,
    "dropped before compared": REQUESTS,
    "marker outside the transaction": REQUESTS,
    "decision compared at the first chunk only": REQUESTS,
    "chunks looked at before the decision": REQUESTS,
    "a page of chunks is published": "its page has more chunks",
    "a batch passes over what others have decided": "it does not ask whom it must wait for",
    "discard by partition": "it drops what is like what it finds there, not like what it is told",
    "replay only read": "the store in memory shows nothing that it will lose",
    "marker before the transaction": "its rows take effect, unless one is refused",
    "marker outside the chunk's step": REQUESTS,
    "finished before applied": REQUESTS,
    "unknown outcome taken as failure": "it takes a lost finish for done",
    "decided epoch given up": REQUESTS,
    "epochs go back": "the kit finds it where offsets can't be read",
    "abort that undoes a published epoch": REQUESTS,
}
"""Mutants whose twin in the kit does not walk the model's counterexample, and why."""


def page() -> str:
    """docs/model/mutants.md."""
    lines = ["mutant | the kit | explorer | docs/model | the core goes", "---|---|---|---|---"]
    why = {name: reason for reason, names in UNSEEN.items() for name in names}
    for mutant in MUTANTS:
        model = _in_the_model(mutant.name) if mutant.name in PLANTED else f"{why[mutant.name]} |"
        explorer = "finds it" if mutant.name in BUGS else ""
        lines.append(f"{mutant.name} | {mutant.breaks} | {explorer} | {model}")
    lines += [f"{name} | {reason} | | {_in_the_model(name)}" for name, reason in ALONE.items()]
    lines += ["", UNLIKE_HEAD]
    lines += [f"- {name}: {reason}" for name, reason in UNLIKE.items()]
    return HEAD + "\n".join(lines) + "\n"


def _in_the_model(name: str) -> str:
    planted = PLANTED[name]
    return f"`{planted.breaks}` | {planted.leaves}"


HEAD = """# Mutants

Broken sinks, each with one fault: planted in the code, where the kit finds it (the rule of
[spec.md](../spec.md) that says so is named), and in the model, where TLC finds it (the invariant is
named), or why the model can't see it. The explorer is tried with those that only schedules show:
its oracles see rows, not which rule was broken. The last column has the step at which the core goes
another way than TLC's counterexample; none where the store in memory can't play that. Made by
`python -m tools.model.twins`.

"""
UNLIKE_HEAD = """With its namesake of the kit in it, the core walks each to the end, but for these:
"""


if __name__ == "__main__":
    print(page(), end="")
