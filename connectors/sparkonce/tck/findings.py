"""What a check of a streaming sink found, and the oracle that judges the target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from sparkonce.tck.rules.rule import Rule, RuleBroken

_TRACEBACK = "Traceback (most recent call last):"
_JAVA = ": "
"""Before what Java said, where Python's code has called it."""
_RAISED = re.compile(r"[A-Za-z_][\w.]*: ")
HELD, BROKEN, LEFT_OUT, NOT_REACHED = "held", "broken", "left out", "not reached"
NOT_GIVEN = "not given"


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        rule: what was checked.
        outcome: `HELD`, `BROKEN`, `LEFT_OUT` (the sink's author says that it can't), `NOT_GIVEN`
            (this Spark lacks what the rule needs, whatever the sink), or `NOT_REACHED` (the fault
            did not come about, so nothing is known).
        sent: rows that should have taken effect.
        lost: those of them that did not; and rows of earlier checks that are gone.
        doubled: how often a row took effect once more than it should.
        alien: rows that took effect and were never sent.
        seen: what happened, in words.
        seconds: what it took.
    """

    rule: Rule
    outcome: str
    sent: int = 0
    lost: int = 0
    doubled: int = 0
    alien: int = 0
    seen: str = ""
    seconds: float = 0.0

    @property
    def held(self) -> bool | None:
        """Whether the rule holds; None where that is not known."""
        return {HELD: True, BROKEN: False}.get(self.outcome)

    @property
    def said(self) -> str:
        """All of it in one line; without counts where none were made."""
        if not (self.sent or self.lost or self.doubled or self.alien):
            return self.seen
        counts = f"{self.sent} sent, {self.lost} lost, {self.doubled} doubled"
        counts += f", {self.alien} never sent" if self.alien else ""
        return f"{counts}; {self.seen}" if self.seen else counts

    def insist(self) -> None:
        """Let a test fail where the rule does not hold, or was not checked.

        Raises:
            RuleBroken: it does not, or was not.
        """
        if self.outcome == NOT_REACHED:
            raise RuleBroken(self.rule, f"nothing: the check did not reach its fault. {self.seen}")
        if self.outcome == BROKEN:
            raise RuleBroken(self.rule, self.said)

    def as_json(self) -> dict[str, Any]:
        """For reports that programs read."""
        return {
            "rule": self.rule.number,
            "level": self.rule.level,
            "text": self.rule.text,
            "outcome": self.outcome,
            "held": self.held,
            "sent": self.sent,
            "lost": self.lost,
            "doubled": self.doubled,
            "alien": self.alien,
            "seen": self.seen,
            "seconds": round(self.seconds, 1),
        }


def judge(rule: Rule, sent: Iterable[str], found: Counter[str]) -> Finding:
    """Compare what was sent, each id once, with how often each took effect.

    What took effect less than 0 times was there before, and is gone.
    """
    wanted = set(sent)
    others = [times for one, times in found.items() if one not in wanted]
    gone = -sum(times for times in others if times < 0)
    lost = sum(found[one] < 1 for one in wanted) + gone
    doubled = sum(found[one] - 1 for one in wanted if found[one] > 1)
    alien = sum(times for times in others if times > 0)
    outcome = BROKEN if lost or doubled or alien else HELD
    seen = f"{gone} of the lost rows are of earlier checks" if gone else ""
    return Finding(rule, outcome, len(wanted), lost, doubled, alien, seen)


def stems(found: Counter[str]) -> Counter[str]:
    """The ids without the ``.a`` or ``.b`` that a query chose for them by chance."""
    counts: Counter[str] = Counter()
    for one, times in found.items():
        counts[one[:-2] if one.endswith((".a", ".b")) else one] += times
    return counts


def with_story(finding: Finding, seen: str) -> Finding:
    """The finding with what was done; what was seen in the target comes after it."""
    return replace(finding, seen="; ".join(filter(None, [seen, finding.seen])))


def with_error(finding: Finding, error: str) -> Finding:
    """The finding of a check whose query failed for good: whatever took effect, that is broken."""
    return replace(finding, outcome=BROKEN, seen=f"the query failed: {cause(error)}")


def cause(error: str) -> str:
    """The line of an error that counts: a Python traceback's last, or Java's first, or its own."""
    lines = error.strip().splitlines() or ["no message"]
    after = lines[lines.index(_TRACEBACK) + 1 :] if _TRACEBACK in lines else []
    raised = (line for line in after if _RAISED.match(line))
    java = (line.removeprefix(_JAVA) for line in lines if line.startswith(_JAVA))
    return next(chain(raised, java, lines))
