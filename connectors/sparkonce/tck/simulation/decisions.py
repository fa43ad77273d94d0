"""Arguments for the steps of a store: staged and decided epochs, records, expected errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sparkonce.exactly_once.ledger import Ledger, new_token
from sparkonce.protocol import Applied, Manifest, Proposal, Receipt, Record, digest
from sparkonce.tck.simulation.actors import Run

SHORT = 60
"""The number of characters of an argument that a message shows."""


class Write(NamedTuple):
    """The arguments of `Store.swap`: a record, and the stamp that the store must hold."""

    new: Record
    over: str = ""


@dataclass(frozen=True)
class Ready:
    """An epoch that is staged, with its decision and its finish."""

    decision: Proposal
    finished: Record

    @property
    def manifest(self) -> Manifest:
        """The manifest of the decision."""
        return self.decision.manifest

    @property
    def decided(self) -> Record:
        """The record of the decision."""
        return self.decision.record

    def finish(self, _applied: Applied) -> Record:
        """The record that finishes the epoch, whatever happened to its rows."""
        return self.finished

    def over(self, stamp: str) -> Proposal:
        """The same decision with another record to replace."""
        return self.decision._replace(over=stamp)


def staged(run: Run, epoch: int, receipts: list[Receipt]) -> Ready:
    """The decision that a commit of these receipts would write."""
    query, store = run.query, run.query.world.store
    base = query.world.ledger(query.name) if store.read(query.name).revision else None
    base = base or Ledger.unwritten(query.name, query.id, query.target)
    manifest = run.committer().manifest(base, run.driver(epoch), receipts)
    decided = base.decided(store.prepare(manifest), run.run_id, None)
    assert decided.decision.manifest is not None  # noqa: S101 (for mypy)
    decision = Proposal(decided.to_record(), decided.replaces, decided.decision.manifest)
    return Ready(decision, decided.finished().to_record())


def decided(run: Run, epoch: int, *partitions: list[str]) -> Ready:
    """An epoch that is decided and not applied."""
    ready = staged(run, epoch, run.stage(epoch, *partitions))
    run.query.world.store.swap(run.query.name, ready.decided, ready.decision.over)
    return ready


def write(text: str, *, after: Record | None = None, revision: int | None = None) -> Write:
    """A record to write, which replaces another one or none."""
    before = after or Record()
    number = before.revision + 1 if revision is None else revision
    return Write(Record(number, new_token(), digest(text), text), before.stamp)


def brief(one: Record) -> str:
    """A record without its body."""
    if one == Record():
        return "no record"
    return f"revision {one.revision} (stamp {one.stamp[:8]}, token {one.token[:14]!r})"


def raises(
    expected: type[BaseException] | tuple[type[BaseException], ...],
    call: Callable[..., Any],
    *args: Any,
    **kwargs: Any,
) -> BaseException:
    """Check that a call raises the expected error, and return it.

    Raises:
        AssertionError: the call raises another error, or none.
    """
    kinds = expected if isinstance(expected, tuple) else (expected,)
    wanted = " or ".join(kind.__name__ for kind in kinds)
    try:
        answer = call(*args, **kwargs)
    except kinds as error:
        return error
    except Exception as error:
        seen = f"{_said(call, args)} raised {type(error).__name__} ({error}), not {wanted}"
        raise AssertionError(seen) from error
    raise AssertionError(
        f"{_said(call, args)} returned {_short(answer)}, but should raise {wanted}"
    )


def _said(call: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """A call as a program shows it, with bound and partial arguments."""
    if isinstance(call, partial):
        return _said(call.func, (*call.args, *args))
    owner = getattr(call, "__self__", None)
    name = getattr(call, "__name__", repr(call))
    prefix = f"{type(owner).__name__}." if owner is not None else ""
    return f"{prefix}{name}({', '.join(_short(arg) for arg in args)})"


def _short(arg: object) -> str:
    text = repr(arg)
    return text if len(text) <= SHORT else f"{text[:SHORT]}..."
