"""Rule S20: auxiliary records."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest import SkipTest

from sparkonce.errors import StagedDataMissing
from sparkonce.exactly_once.ledger import new_token
from sparkonce.protocol import AuxiliaryRecord, Proposal, Record
from sparkonce.store import Store
from sparkonce.tck.simulation.actors import Query
from sparkonce.tck.simulation.decisions import Ready, raises, staged
from sparkonce.tck.simulation.oracles import after, require, with_witness
from sparkonce.tck.subject import NewSubject, Subject
from sparkonce.tck.suites.applies import NEVER
from sparkonce.tck.suites.suite import Contract

LONG = "'\"\\`%s{}\n" * 20_000

Step = Callable[[Store, Ready, Proposal], Record | None]


class BesideRules(Contract):
    """Checks of `Proposal.beside`, in both steps that decide."""

    def test_s20_publish_keeps_what_is_beside_a_decision(self, new_subject: NewSubject) -> None:
        """Neither a stale decision nor one that lacks a chunk writes the record."""
        _require_beside(new_subject(), _publish)

    def test_s20_decide_keeps_what_is_beside_a_decision(self, new_subject: NewSubject) -> None:
        """The same, step by step."""
        world = new_subject()
        world.need("apply")
        _require_beside(world, lambda store, _, decision: store.decide(decision))


def _require_beside(world: Subject, step: Step) -> None:
    run, name = Query(world).start(), f"beside/{new_token()}"
    run.write(0, with_witness(["a"]))
    before = ""
    for epoch, text in enumerate(["first", LONG, "last"], 1):
        good = staged(run, epoch, run.stage(epoch, with_witness([f"b{epoch}"])))
        step(world.store, good, _with(good, name, "stale")._replace(over="gone"))
        _require_kept(world, name, before, f"a stale decision of epoch {epoch}")
        lacking = staged(run, epoch, run.stage(epoch, with_witness([f"c{epoch}"])))
        world.store.discard(run.query.name, sorted(lacking.manifest.attempts))
        refused = _with(lacking, name, "lacking")
        raises(StagedDataMissing, partial(step, world.store, lacking, refused))
        _require_kept(world, name, before, f"epoch {epoch} without its chunk")
        step(world.store, good, _with(good, name, text))
        _require_kept(world, name, text, f"the decision of epoch {epoch}")
        run.commit(epoch, [])
        before = text
    world.store.swap(name, Record(), world.observer.read(name).stamp)
    require(world.observer.read(name) == Record(), "the store cannot remove an auxiliary record")


def _publish(store: Store, good: Ready, proposal: Proposal) -> Record:
    there = store.publish(proposal, good.finish)
    if there is None:
        raise SkipTest(NEVER)
    return there


def _with(good: Ready, name: str, text: str) -> Proposal:
    """The decision, with this auxiliary record."""
    return good.decision._replace(beside=AuxiliaryRecord(name, text))


def _require_kept(world: Subject, name: str, text: str, what: str) -> None:
    found = world.observer.read(name).body
    with after(what):
        require(found == text, f"the store keeps {found[:40]!r}, not {text[:40]!r}")
