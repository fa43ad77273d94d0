"""What a check of a streaming sink found: the oracle, and how it is told."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from sparkonce.tck import report
from sparkonce.tck.findings import (
    BROKEN,
    HELD,
    LEFT_OUT,
    NOT_REACHED,
    Finding,
    cause,
    judge,
    stems,
    with_error,
)
from sparkonce.tck.rules.rule import RuleBroken
from sparkonce.tck.rules.rulebook import BY_NUMBER

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
