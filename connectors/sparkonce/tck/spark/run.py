"""Runs checks, and turns what happens into findings."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable
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
from sparkonce.tck.rulebook import BY_NUMBER
from sparkonce.tck.rules import Rule
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.checks import CHECKS
from sparkonce.tck.spark.remote import SparkTrouble
from sparkonce.tck.spark.sink import StreamingSink
from sparkonce.tck.spark.trial import NotGiven, NotReached, QueryFailed, ReadFailed, Trial

# Time for the requests of tasks that Spark has given up to arrive.
SETTLE = {"Q03": 0.5, "Q04": 1.0, "Q05": 1.0, "Q06": 1.0, "Q09": 1.0, "Q10": 1.0}


def run_contract(
    sink: StreamingSink | Callable[[], StreamingSink],
    seed: int | None = None,
    tell: Callable[[Finding], object] = lambda _: None,
) -> list[Finding]:
    """Check all rules of a streaming sink, without pytest.

    Args:
        sink: the sink; or a function that gives it a new target, and is called for each check,
            for a target that takes the rows of one query only.
        seed: of the moments at which things are killed and stopped.
        tell: is told each finding as soon as there is one.
    """
    findings = []
    with (
        tempfile.TemporaryDirectory(prefix="sparkonce-tck-", ignore_cleanup_errors=True) as home,
        Bench(Path(home) / "bench", seed) as bench,
    ):
        for number in CHECKS:
            described = sink() if callable(sink) else sink
            findings.append(run_check(bench, number, described))
            tell(findings[-1])
    return sorted(findings, key=lambda finding: finding.rule.number)


def run_check(bench: Bench, number: str, sink: StreamingSink) -> Finding:
    """Check one rule of a sink."""
    rule = BY_NUMBER[number]
    if number in sink.limits:
        return Finding(rule, LEFT_OUT, seen=sink.limits[number])
    began = time.monotonic()
    finding = _checked(bench, rule, sink)
    return replace(finding, seconds=time.monotonic() - began)


def _checked(bench: Bench, rule: Rule, sink: StreamingSink) -> Finding:
    tag = f"{rule.number.lower()}-{uuid.uuid4().hex[:6]}"
    try:
        trial = Trial(sink, bench.new_home(rule.number), tag)
        return _tried(bench, rule, trial)
    except ReadFailed as error:
        return Finding(rule, BROKEN, seen=str(error))


def _tried(bench: Bench, rule: Rule, trial: Trial) -> Finding:
    try:
        seen = CHECKS[rule.number](bench, trial)
    except NotGiven as error:
        return Finding(rule, NOT_GIVEN, seen=str(error))
    except (NotReached, SparkTrouble) as error:
        bench.reset()
        return Finding(rule, NOT_REACHED, len(trial.sent), seen=str(error))
    except QueryFailed as error:
        bench.reset()
        return with_error(_judged(rule, trial), str(error))
    return with_story(_judged(rule, trial), seen)


def _judged(rule: Rule, trial: Trial) -> Finding:
    time.sleep(SETTLE.get(rule.number, 0.0))
    found = trial.found()
    return judge(rule, trial.sent, stems(found) if rule.number == "Q08" else found)
