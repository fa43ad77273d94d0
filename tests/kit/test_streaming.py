"""The suite for streaming sinks, as far as it needs no Spark."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sparkonce.spark.session import SETTINGS
from sparkonce.tck.batch import BatchContract, BatchSink
from sparkonce.tck.findings import BROKEN, HELD, LEFT_OUT, NOT_GIVEN, NOT_REACHED
from sparkonce.tck.on_spark import REPORT, Record, SparkContract
from sparkonce.tck.rules.rulebook import RULES
from sparkonce.tck.sources import SourceContract, StreamingSource
from sparkonce.tck.spark import run
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.trial import NotGiven, NotReached, QueryFailed, Trial
from sparkonce.tck.streaming import StreamingContract, StreamingSink


class Target:
    """A target in memory."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def sink(self, **described: object) -> StreamingSink:
        return StreamingSink(read=lambda: Counter(self.counts), format="fake", **described)  # type: ignore[arg-type]


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench", seed=1)


@pytest.mark.parametrize(
    ("letter", "contract", "subject"),
    [
        ("Q", StreamingContract, StreamingSink(Counter, format="any")),
        ("B", BatchContract, BatchSink(Counter, format="any")),
        ("F", SourceContract, StreamingSource(append=list, format="any")),
    ],
)
def test_every_rule_has_a_check_and_a_test(
    letter: str, contract: type[SparkContract], subject: run.Subject
) -> None:
    rules = {rule.number for rule in RULES if rule.number.startswith(letter)}
    tests = {name[5:8].upper() for name in dir(contract) if name.startswith("test_")}
    assert rules == set(run.numbers(subject)) == tests


def test_limit_shows_as_skipped_with_its_reason(bench: Bench, target: Target) -> None:
    record = Record(bench)
    with pytest.raises(pytest.skip.Exception, match="one machine"):
        record.check("Q05", target.sink(limits={"Q05": "one machine"}))
    assert [finding.outcome for finding in record.findings] == [LEFT_OUT]


def test_report_of_a_class_is_sorted_by_rule(
    bench: Bench, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(REPORT, str(tmp_path))
    record = Record(bench)
    for number in ("Q09", "Q04"):
        with pytest.raises(pytest.skip.Exception):
            record.check(number, target.sink(limits={number: "no"}))
    record.close("TestMine")
    told = json.loads((tmp_path / "TestMine.json").read_text())
    assert [finding["rule"] for finding in told["findings"]] == ["Q04", "Q09"]


def test_sink_needs_a_format_or_a_function() -> None:
    for described in ({}, {"format": "x", "attach": "y:z"}):
        with pytest.raises(ValueError, match="needs a format, or else a function"):
            StreamingSink(read=Counter, **described)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("done", "outcome"),
    [
        ("all", HELD),
        ("twice", BROKEN),
        (NotReached("x"), NOT_REACHED),
        (QueryFailed("y"), BROKEN),
        (NotGiven("z"), NOT_GIVEN),
    ],
)
def test_what_a_check_does_decides_its_finding(
    bench: Bench, target: Target, monkeypatch: pytest.MonkeyPatch, done: object, outcome: str
) -> None:
    def check(_: Bench, trial: Trial) -> str:
        trial.put(rows=5)
        target.counts.update(trial.sent * (2 if done == "twice" else 1))
        if isinstance(done, Exception):
            raise done
        return "done"

    monkeypatch.setitem(run.CHECKS, "Q01", check)
    target.counts["left by somebody else"] = 1
    finding = run.run_check(bench, "Q01", target.sink())
    sent = 0 if outcome == NOT_GIVEN else 5
    assert (finding.outcome, finding.sent, finding.alien) == (outcome, sent, 0)


class OfAnotherSpark(Bench):
    """Its drivers know one of the settings that Q10 needs, or none."""

    def clustered(self, sink: StreamingSink) -> Any:
        return SimpleNamespace(knows=lambda setting: setting in sink.settings)


@pytest.mark.parametrize("known", [(), SETTINGS[:1]])
def test_redrawn_rows_are_told_as_not_given_by_a_spark_without_checksums(
    tmp_path: Path, target: Target, known: tuple[str, ...]
) -> None:
    record = Record(OfAnotherSpark(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=f"this Spark has no {SETTINGS[0]}"):
        record.check("Q10", target.sink(settings=dict.fromkeys(known, "true")))
    assert [finding.outcome for finding in record.findings] == [NOT_GIVEN]


def test_rows_of_earlier_checks_that_are_gone_are_lost(
    bench: Bench, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(_: Bench, trial: Trial) -> str:
        trial.put(rows=5)
        target.counts = Counter([*trial.sent, "kept"])
        return "done"

    monkeypatch.setitem(run.CHECKS, "Q01", check)
    target.counts.update({"kept": 2, "old": 3})
    finding = run.run_check(bench, "Q01", target.sink())
    assert (finding.outcome, finding.sent, finding.lost, finding.alien) == (BROKEN, 5, 4, 0)
    assert finding.seen == "done; 4 of the lost rows are of earlier checks"


@pytest.mark.parametrize("reads", [0, 1])
def test_a_target_that_cannot_be_read_breaks_the_rule(
    bench: Bench, target: Target, monkeypatch: pytest.MonkeyPatch, reads: int
) -> None:
    answers = iter([Counter[str]()] * reads)
    monkeypatch.setitem(run.CHECKS, "Q01", lambda *_: "done")
    sink = replace(target.sink(), read=lambda: fail_after(answers))
    finding = run.run_check(bench, "Q01", sink)
    assert finding.outcome == BROKEN
    assert finding.seen == "read() raised OSError: no route to the target"


def fail_after(answers: Iterator[Counter[str]]) -> Counter[str]:
    for answer in answers:
        return answer
    raise OSError("no route to the target")


def test_contract_without_pytest_checks_every_rule_and_takes_a_new_target_for_each(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in run.CHECKS:
        monkeypatch.setitem(run.CHECKS, number, lambda *_: "done")
    made, told = [], []

    def sink() -> StreamingSink:
        made.append(target.sink(limits={"Q05": "no"}))
        return made[-1]

    monkeypatch.setattr(run, "SETTLE", {})
    findings = run.run_contract(sink, tell=told.append)
    assert [finding.rule.number for finding in findings] == sorted(run.CHECKS)
    assert len(made) == len(told) == len(run.CHECKS)
    assert {finding.outcome for finding in findings} == {HELD, LEFT_OUT}


# -- a trial's files


def test_files_are_epochs_of_new_rows(target: Target, tmp_path: Path) -> None:
    trial = Trial(target.sink(), tmp_path, "tag")
    trial.put(2, rows=3)
    files = sorted(trial.input.glob("*.json"))
    ids = [json.loads(line)["id"] for file in files for line in file.read_text().splitlines()]
    assert ids == trial.sent == [f"tag-{file}-{n}" for file in range(2) for n in range(3)]
    assert [file.stat().st_mtime for file in files] == [1e9, 1e9 + 1]


def test_epoch_is_half_done_until_spark_notes_it(target: Target, tmp_path: Path) -> None:
    trial = Trial(target.sink(), tmp_path, "tag")
    for log in ("offsets", "commits"):
        (trial.checkpoint / log).mkdir(parents=True)
        (trial.checkpoint / log / ".0.crc").touch()
        (trial.checkpoint / log / "0").touch()
    assert not trial.in_mid_epoch
    trial.uncommit(0)
    assert trial.in_mid_epoch
