"""The oracles: what must be true of a target and its ledgers after any history."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.commit import leftovers

if TYPE_CHECKING:
    from sparkonce.tck.simulation.actors import Query
    from sparkonce.tck.simulation.restarts import SimulatedSpark
    from sparkonce.tck.subject import Subject

WITNESS = "witness"
"""A row id that accompanies each other row: it counts how many took effect."""


def require(holds: object, seen: str) -> None:
    """An assertion that no interpreter flag disables.

    Raises:
        AssertionError: it does not hold; the message is the observation.
    """
    if not holds:
        raise AssertionError(seen)


@contextlib.contextmanager
def after(happened: str) -> Iterator[None]:
    """Add the earlier events to the message of an oracle that fails in this block.

    Raises:
        AssertionError: an oracle failed.
    """
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{error}\n  after: {happened}") from error
    except SparkonceError as error:
        text = f"{type(error).__name__}: {error}\n  after: {happened}"
        raise AssertionError(text) from error


def difference(before: object, now: object) -> str:
    """The added and the vanished rows, if both are rows; else both values."""
    if isinstance(before, Counter | list) and isinstance(now, Counter | list):
        old, new = Counter(before), Counter(now)
        return f"added {dict(new - old)}, vanished {dict(old - new)}"
    return f"it was {before}, and is {now}"


def with_witness(rows: Iterable[str]) -> list[str]:
    """Each row, and one for the witness."""
    return [row for each in rows for row in (each, WITNESS)]


def epoch_of(row: str) -> tuple[str, int]:
    """The query and the epoch that a row id of `restarts` names."""
    query, _, epoch = row.partition("#")[0].rpartition("/")
    return query, int(epoch)


def by_epoch(rows: Mapping[str, int]) -> dict[tuple[str, int], Counter[str]]:
    """A multiset of rows, divided by query and epoch."""
    found: dict[tuple[str, int], Counter[str]] = {}
    for row, times in rows.items():
        if row != WITNESS:
            found.setdefault(epoch_of(row), Counter())[row] = times
    return found


def by_attempt(rows: Mapping[str, int]) -> str:
    """Rows of one epoch, counted by the attempt that their ids name."""
    counts: Counter[str] = Counter()
    for row, times in rows.items():
        counts[row.partition("#")[2][:6]] += times
    return " + ".join(f"{times} rows of {attempt}" for attempt, times in counts.items()) or "none"


def require_exactly_once(*sparks: SimulatedSpark) -> None:
    """O1: each committed epoch took effect once: all rows of one attempt, and no others.

    Raises:
        AssertionError: it did not, or an uncommitted epoch took effect in part.
    """
    found = by_epoch(sparks[0].query.world.took_effect())
    for spark in sparks:
        for epoch, handed in spark.checkpoint.handed.items():
            rows = found.get((spark.query.id, epoch), Counter())
            lost = epoch <= spark.checkpoint.committed and not rows
            require(not lost, f"O1: epoch {epoch} of {spark.query.id} was lost")
            whole = not rows or rows in handed
            seen = f"{by_attempt(rows)}; the runs staged: {[*map(by_attempt, handed)]}"
            require(whole, f"O1: of epoch {epoch} of {spark.query.id} took effect {seen}")


def require_whole(seen: Sequence[Mapping[str, int]], spark: SimulatedSpark) -> None:
    """O3: each time, a reader saw whole epochs, and all earlier ones.

    Raises:
        AssertionError: the reader saw an epoch in part, too early, or no longer.
    """
    before = 0
    for rows in seen:
        epochs = by_epoch(rows)
        for (_, epoch), found in epochs.items():
            handed = [*map(by_attempt, spark.checkpoint.handed[epoch])]
            whole = found in spark.checkpoint.handed[epoch]
            saw = f"{by_attempt(found)}; the runs staged: {handed}"
            require(whole, f"O3: of epoch {epoch} a reader saw {saw}")
        reached = sorted(epoch for _, epoch in epochs)
        require(reached == list(range(len(reached))), f"O3: a reader saw epochs {reached}")
        require(len(reached) >= before, "O3: a reader saw an epoch, and later did not")
        before = len(reached)


def require_witness(world: Subject) -> None:
    """O2: as many rows took effect as the witness counted, each once.

    Raises:
        AssertionError: they differ.
    """
    rows = world.took_effect()
    counted = rows.pop(WITNESS, 0)
    total = sum(rows.values())
    require(counted == total, f"O2: the witness counted {counted} rows, the target holds {total}")
    doubled = {row: times for row, times in rows.items() if times != 1}
    require(not doubled, f"O2: rows took effect more than once: {doubled}")


def require_rows(world: Subject, wanted: set[str], *, witnessed: bool = True) -> None:
    """Check that exactly these rows, and the witness with them, took effect once each.

    Raises:
        AssertionError: others did.
    """
    found = world.took_effect()
    lost, alien = wanted - set(found), set(found) - wanted - {WITNESS}
    require(not lost, f"O1: rows did not take effect: {sorted(lost)}")
    require(not alien, f"O1: rows took effect that should not have: {sorted(alien)}")
    if witnessed:
        require_witness(world)
    doubled = [row for row in wanted if found[row] != 1]
    require(not doubled, f"O1: rows took effect more than once: {sorted(doubled)}")


def require_in_order(rows: Sequence[str]) -> None:
    """O3: epochs of a query took effect in order.

    Raises:
        AssertionError: they did not.
    """
    last: dict[str, int] = {}
    for row in rows:
        if row == WITNESS:
            continue
        query, epoch = epoch_of(row)
        require(epoch >= last.get(query, 0), f"O3: {row} took effect after a later epoch")
        last[query] = epoch


def require_agreement(world: Subject, *queries: Query) -> None:
    """O4: the ledgers count what took effect, and every decided epoch is finished.

    Raises:
        AssertionError: they do not agree.
    """
    ledgers = {query.name: query.ledger for query in queries}.values()
    counted, held = sum(ledger.totals.rows for ledger in ledgers), sum(world.took_effect().values())
    require(counted == held, f"O4: the ledgers count {counted} rows, the target holds {held}")
    open_ = [ledger.name for ledger in ledgers if ledger.decision.manifest is not None]
    require(not open_, f"O4: decided and not finished: {open_}")


def require_nothing_staged(world: Subject, *queries: Query) -> None:
    """O5: the log of these sinks is empty.

    Raises:
        AssertionError: it is not.
    """
    world.settle()
    for query in queries:
        staged = world.observer.staged(query.name)
        require(not staged, f"O5: still staged: {staged}")


def require_no_leftovers(world: Subject, *queries: Query) -> None:
    """O5, while tasks may still run: every staged attempt can still be decided.

    Raises:
        AssertionError: the log holds an attempt that no decision can hold any more.
    """
    world.settle()
    for query in queries:
        over = leftovers(world.observer, query.ledger)
        require(not over, f"O5: leftovers of {query.name}: {over}")


def require_clean(world: Subject, *queries: Query) -> None:
    """O2, O4 and O5, for the queries of one target and the log of the last of them.

    Raises:
        AssertionError: one of them does not hold.
    """
    require_witness(world)
    require_agreement(world, *queries)
    require_nothing_staged(world, queries[-1])
    order = world.in_order()
    if order is not None:
        require_in_order(order)
