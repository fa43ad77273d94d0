"""Tasks that a plan hits: how to announce them and wait for them, and their notes."""

from __future__ import annotations

from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.faults import AFTER_ROWS, Note, Plan
from sparkonce.tck.spark.remote import RemoteDriver
from sparkonce.tck.spark.trial import ROWS, Repeated, Trial, until


def epoch_to_hit(
    bench: Bench, trial: Trial, point: str, act: str, attempts: int = 1, rows: int = ROWS
) -> int:
    """Add an epoch, and announce the fault of its first attempts; return its number."""
    trial.put(rows=rows)
    epoch = trial.next_epoch
    bench.board.announce(Plan(point, act, epoch, attempts))
    return epoch


def attempts_at(bench: Bench, point: str, epoch: int) -> set[int]:
    """The numbers of the attempts at the planned task that reached that point."""
    return {note.attempt for note in _of_the_hit(bench, point, epoch)}


def executors_at(bench: Bench, point: str, epoch: int) -> set[int]:
    """The processes of these attempts."""
    return {note.executor for note in _of_the_hit(bench, point, epoch)}


def _of_the_hit(bench: Bench, point: str, epoch: int) -> list[Note]:
    return [note for note in bench.board.notes(point, epoch) if note.partition == 0]


def await_hit(
    bench: Bench, trial: Repeated, driver: RemoteDriver, point: str, epoch: int
) -> Note | None:
    """The held task; None if no first attempt of the sink reaches that point."""

    def hit() -> list[Note]:
        return [note for note in _of_the_hit(bench, point, epoch) if note.attempt == 0]

    until(lambda: bool(hit()) or not driver.wait().running, f"a task held {point}", driver)
    found = hit()
    if not found:
        trial.ended(driver.wait())
    return found[0] if found else None


def rows_sent(bench: Bench, epoch: int) -> bool:
    """Whether a task of this epoch has sent its rows."""
    return bool(bench.board.notes(AFTER_ROWS, epoch))
