"""Which errors may stop a driver, and when: an error without a cause is a bug as well."""

from __future__ import annotations

from sparkonce import errors
from sparkonce.tck.explore.cast import Stream
from sparkonce.tck.explore.losses import LOG, NOTHING
from sparkonce.tck.explore.scenario import Scenario
from sparkonce.tck.simulation.oracles import require

RULES = {
    errors.SinkBehindCheckpoint: "C14",
    errors.StoreLostData: "S10",
    errors.DecisionLost: "C14",
    errors.CheckpointReplaced: "I01",
    errors.QueryRetired: "I02",
    errors.RowRefused: "C06",
    errors.StoreUnreachable: "S13",
    errors.StagedDataMissing: "S06",
    errors.ConcurrentDriver: "C04",
    errors.CheckpointBehindSink: "C15",
    errors.StaleSkip: "C10",
    errors.BatchOvertaken: "C22",
    errors.BatchUnfinished: "C21",
    errors.DecisionDropped: "C22",
}

OTHERS = (errors.ConcurrentDriver, errors.CheckpointBehindSink, errors.StaleSkip)
GIVEN_UP = "commit failed and was aborted"


def require_allowed(scenario: Scenario, loss: int) -> None:
    """Check that each error has a cause among the earlier events.

    Raises:
        AssertionError: one has none.
    """
    causes = _causes(scenario, loss)
    for stream in scenario.streams:
        for error in stream.refusals:
            kind = type(error)
            rule = RULES.get(kind)
            require(rule is not None, f"C01: {stream.query.id} was stopped by {error!r}")
            require(kind in causes, f"{rule}: rejected without a cause: {error!r}")
        if loss == NOTHING and len(scenario.owners) == 1:
            _require_others(stream)
    for batch in scenario.batches:
        for error in batch.refusals:
            require(type(error) in RULES, f"C01: {batch.name} was stopped by {error!r}")


def _require_others(stream: Stream) -> None:
    """No driver mistakes its own write for that of another driver."""
    own = [error for error in stream.unexplained if isinstance(error, OTHERS)]
    given_up = GIVEN_UP in stream.world.watch.marks
    require(given_up or not own, f"C02: {stream.query.id} ran alone, yet: {own}")


def _causes(scenario: Scenario, loss: int) -> set[type[errors.SparkonceError]]:
    watch, lost = scenario.world.watch, loss != NOTHING
    disturbed = scenario.disturbed or GIVEN_UP in watch.marks
    found: set[type[errors.SparkonceError]] = set()
    if disturbed or lost:
        found |= {errors.ConcurrentDriver, errors.StaleSkip, errors.CheckpointBehindSink}
    if disturbed or lost or scenario.operator or len(scenario.owners) > 1:
        found.add(errors.StagedDataMissing)
    if GIVEN_UP in watch.marks or scenario.world.faults:
        found.add(errors.StoreUnreachable)
    if len(scenario.owners) > 1 or watch.forgotten:
        found |= {errors.QueryRetired, errors.CheckpointReplaced}
    if lost:
        found |= {errors.SinkBehindCheckpoint, errors.DecisionLost}
    if loss == LOG:
        found.add(errors.StoreLostData)
    if watch.dropped:
        found.add(errors.DecisionDropped)
    if watch.marks & {"row refused", "row refused after the decision"}:
        found.add(errors.RowRefused)
    return found
