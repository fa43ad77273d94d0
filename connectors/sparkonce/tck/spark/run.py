"""Runs checks, and turns their results into findings."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from sparkonce.tck.findings import (
    BROKEN,
    LEFT_OUT,
    NOT_GIVEN,
    NOT_REACHED,
    Finding,
    judge,
    stems,
    with_error,
    with_story,
)
from sparkonce.tck.rules.rule import Rule
from sparkonce.tck.rules.rulebook import BY_NUMBER
from sparkonce.tck.spark.batch_checks import BATCH_CHECKS, IN_FOREACH_BATCH
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import CHECKS
from sparkonce.tck.spark.remote import SparkTrouble
from sparkonce.tck.spark.sink import BatchSink, Sink
from sparkonce.tck.spark.source import StreamingSource
from sparkonce.tck.spark.source_checks import SOURCE_CHECKS
from sparkonce.tck.spark.source_trial import SourceTrial
from sparkonce.tck.spark.trial import (
    BatchTrial,
    NotGiven,
    NotReached,
    QueryFailed,
    ReadFailed,
    Trial,
    WrongDoing,
)

Subject = Sink | StreamingSource

# Time for requests of tasks that Spark has abandoned to arrive.
SETTLE = {
    "Q03": 0.5,
    "Q04": 1.0,
    "Q05": 1.0,
    "Q06": 1.0,
    "Q09": 1.0,
    "Q10": 1.0,
    "B02": 0.5,
    "B03": 0.5,
    "B04": 1.0,
    "B05": 1.0,
    "B06": 1.0,
    "B10": 1.0,
}
CHOSEN = ("Q08", "B07")
"""Rules for which a query chooses ids at random."""


def run_contract(
    subject: Subject | Callable[[], Subject],
    seed: int | None = None,
    tell: Callable[[Finding], object] = lambda _: None,
) -> list[Finding]:
    """Check all rules of a streaming sink, a batch sink, or a source, without pytest.

    Args:
        subject: the sink; or a function that returns it with a new target, called for each check,
            for a target that takes the rows of one query only. For a source, always the function.
        seed: selects the moments of kills and stops.
        tell: called with each finding as soon as it exists.
    """
    findings: list[Finding] = []
    with (
        tempfile.TemporaryDirectory(prefix="sparkonce-tck-", ignore_cleanup_errors=True) as home,
        Bench(Path(home) / "bench", seed) as bench,
    ):
        described = subject() if callable(subject) else subject
        for number in numbers(described):
            if findings and callable(subject):
                described = subject()
            findings.append(run_check(bench, number, described))
            tell(findings[-1])
    return sorted(findings, key=lambda finding: finding.rule.number)


def numbers(subject: Subject) -> Sequence[str]:
    """The rules for this kind of subject, in an order that starts few drivers."""
    if isinstance(subject, StreamingSource):
        return [*SOURCE_CHECKS]
    return [*BATCH_CHECKS, *IN_FOREACH_BATCH] if isinstance(subject, BatchSink) else [*CHECKS]


def run_check(bench: Bench, number: str, subject: Subject) -> Finding:
    """Check one rule of a sink, or of a source."""
    rule = BY_NUMBER[number]
    if reason := subject.left_out(number):
        return Finding(rule, LEFT_OUT, seen=reason)
    began = time.monotonic()
    finding = _checked(bench, rule, subject)
    return replace(finding, seconds=time.monotonic() - began)


def _checked(bench: Bench, rule: Rule, subject: Subject) -> Finding:
    tag = f"{rule.number.lower()}-{uuid.uuid4().hex[:6]}"
    try:
        return _tried(bench, rule, *_check(subject, rule.number, bench.new_home(rule.number), tag))
    except ReadFailed as error:
        return Finding(rule, BROKEN, seen=str(error))


def _check(
    subject: Subject, number: str, home: Path, tag: str
) -> tuple[Trial | SourceTrial, Callable[[Bench], str]]:
    """The trial, and its check."""
    if isinstance(subject, StreamingSource):
        source = SourceTrial(subject, home, tag)
        return source, lambda bench: SOURCE_CHECKS[number](bench, source)
    if not isinstance(subject, BatchSink):
        trial = Trial(subject, home, tag)
        return trial, lambda bench: CHECKS[number](bench, trial)
    if number in IN_FOREACH_BATCH:
        inside = Trial(subject.in_foreach_batch(), home, tag)
        return inside, lambda bench: IN_FOREACH_BATCH[number](bench, inside)
    batch = BatchTrial(subject, home, tag)
    return batch, lambda bench: BATCH_CHECKS[number](bench, batch)


def _tried(
    bench: Bench, rule: Rule, trial: Trial | SourceTrial, check: Callable[[Bench], str]
) -> Finding:
    try:
        seen = check(bench)
    except NotGiven as error:
        return Finding(rule, NOT_GIVEN, seen=str(error))
    except (NotReached, SparkTrouble) as error:
        bench.reset()
        return Finding(rule, NOT_REACHED, len(trial.sent), seen=str(error))
    except QueryFailed as error:
        bench.reset()
        return with_error(_judged(rule, trial), str(error))
    except WrongDoing as error:
        return Finding(rule, BROKEN, seen=str(error))
    return with_story(_judged(rule, trial), seen)


def _judged(rule: Rule, trial: Trial | SourceTrial) -> Finding:
    time.sleep(SETTLE.get(rule.number, 0.0))
    found = trial.found()
    return judge(rule, trial.sent, stems(found) if rule.number in CHOSEN else found)
