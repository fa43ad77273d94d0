"""The suite for streaming sinks, as far as it needs no Spark: checks, findings and reports."""

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
from sparkonce.tck import report
from sparkonce.tck.batch import BatchContract, BatchSink
from sparkonce.tck.findings import (
    BROKEN,
    HELD,
    LEFT_OUT,
    NOT_GIVEN,
    NOT_REACHED,
    Finding,
    cause,
    judge,
    stems,
    with_error,
)
from sparkonce.tck.on_spark import REPORT, Record, SparkContract
from sparkonce.tck.rules.rule import RuleBroken
from sparkonce.tck.rules.rulebook import BY_NUMBER, RULES
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


# -- what a check of a streaming sink found: the oracle, and how it is told


Q02 = BY_NUMBER["Q02"]


@pytest.mark.parametrize(
    ("found", "lost", "doubled", "alien"),
    [
        ({"a": 1, "b": 1}, 0, 0, 0),
        ({"a": 1}, 1, 0, 0),
        ({"a": 3, "b": 2}, 0, 3, 0),
        ({"a": 2}, 1, 1, 0),
        ({"a": 1, "b": 1, "x": 2}, 0, 0, 2),
        ({}, 2, 0, 0),
        ({"a": 1, "b": 1, "x": -3, "y": 1}, 3, 0, 1),
    ],
)
def test_oracle_counts_a_multiset(
    found: dict[str, int], lost: int, doubled: int, alien: int
) -> None:
    finding = judge(Q02, ["a", "b"], Counter(found))
    assert (finding.sent, finding.lost, finding.doubled, finding.alien) == (2, lost, doubled, alien)
    assert finding.held is (lost + doubled + alien == 0)


def test_both_versions_of_a_row_are_one_too_many() -> None:
    finding = judge(BY_NUMBER["Q08"], ["1", "2"], stems(Counter({"1.a": 1, "1.b": 1, "2.b": 1})))
    assert (finding.lost, finding.doubled, finding.outcome) == (0, 1, BROKEN)


def test_failed_query_breaks_the_rule_and_names_the_cause() -> None:
    error = "Job aborted\nTraceback (most recent call last):\n  File \"x\"\nKeyError: 'id'\n at JVM"
    finding = with_error(judge(Q02, [], Counter()), error)
    assert (finding.outcome, finding.seen) == (BROKEN, "the query failed: KeyError: 'id'")
    assert with_error(finding, "").seen == "the query failed: no message"
    called = "From Python: Traceback (most recent call last):\npy4j.E: o1\n: x.Lost: gone\n at x"
    assert cause(called) == "x.Lost: gone"


def test_a_finding_without_counts_says_none() -> None:
    assert Finding(Q02, BROKEN, seen="it did not end").said == "it did not end"
    assert Finding(Q02, BROKEN, lost=3, seen="x").said == "0 sent, 3 lost, 0 doubled; x"


# -- findings


def test_broken_rule_says_rule_counts_and_what_was_done() -> None:
    with pytest.raises(RuleBroken) as caught:
        Finding(Q02, BROKEN, 9, 1, 2, 3, "twice replayed").insist()
    assert "rule Q02 (MUST)" in str(caught.value)
    assert "9 sent, 1 lost, 2 doubled, 3 never sent; twice replayed" in str(caught.value)


def test_check_that_did_not_reach_its_fault_is_no_pass() -> None:
    finding = Finding(Q02, NOT_REACHED, seen="no twin")
    assert finding.held is None
    with pytest.raises(RuleBroken, match=r"did not reach its fault\. no twin"):
        finding.insist()


def test_finding_as_json_has_what_programs_need() -> None:
    told = Finding(Q02, HELD, 5, seen="x", seconds=1.26).as_json()
    assert told == {
        "rule": "Q02",
        "level": "MUST",
        "text": Q02.text,
        "outcome": "held",
        "held": True,
        "sent": 5,
        "lost": 0,
        "doubled": 0,
        "alien": 0,
        "seen": "x",
        "seconds": 1.3,
    }


# -- the report


FINDINGS = [
    Finding(BY_NUMBER["Q01"], HELD, 1101, seen="3 epochs", seconds=8.2),
    Finding(Q02, BROKEN, 360, 0, 240, 7, "2 epochs replayed", 2.0),
    Finding(BY_NUMBER["Q05"], LEFT_OUT, seen="runs on one machine"),
    Finding(BY_NUMBER["Q06"], NOT_REACHED, seen="no twin"),
]


def test_table_tells_all_in_100_columns() -> None:
    text = report.as_text("mine", FINDINGS)
    assert text.startswith("mine: 1 held, 1 broken, 1 left out, 1 no fault\n")
    assert max(map(len, text.splitlines())) <= 100
    for words in ("BROKEN", "1,101", "7 rows that were never sent", "runs on one machine"):
        assert words in text, words


def test_report_is_left_as_table_and_json(tmp_path: Path) -> None:
    report.write(tmp_path / "new", "mine", "my sink", FINDINGS)
    told = json.loads((tmp_path / "new" / "mine.json").read_text())
    assert told["sink"] == "my sink"
    assert [finding["held"] for finding in told["findings"]] == [True, False, None, None]
    assert "my sink: 1 held" in (tmp_path / "new" / "mine.txt").read_text()
