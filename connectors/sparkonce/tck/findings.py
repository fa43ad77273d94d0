"""The finding of one check of a sink or source, and the oracle that judges the target."""

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
"""The prefix of a Java error that Python code raises."""
_RAISED = re.compile(r"[A-Za-z_][\w.]*: ")
HELD, BROKEN, LEFT_OUT, NOT_REACHED = "held", "broken", "left out", "not reached"
NOT_GIVEN = "not given"


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        rule: the rule that the check covers.
        outcome: `HELD`, `BROKEN`, or one of three that prove nothing. `LEFT_OUT`: the sink's author
            says that the sink can't keep the rule. `NOT_GIVEN`: this release of Spark lacks what
            the rule needs, for any sink. `NOT_REACHED`: the fault did not occur.
        sent: rows that should have taken effect.
        lost: rows sent that did not take effect, and vanished rows of earlier checks.
        doubled: the number of surplus effects of rows.
        alien: rows that took effect although the check never sent them.
        seen: what happened, in words.
        seconds: the duration of the check.
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
        """Whether the rule holds; None if unknown."""
        return {HELD: True, BROKEN: False}.get(self.outcome)

    @property
    def said(self) -> str:
        """The finding in one line; without counts if the check counted nothing."""
        if not (self.sent or self.lost or self.doubled or self.alien):
            return self.seen
        counts = f"{self.sent} sent, {self.lost} lost, {self.doubled} doubled"
        counts += f", {self.alien} never sent" if self.alien else ""
        return f"{counts}; {self.seen}" if self.seen else counts

    def insist(self) -> None:
        """Fail the test if the rule is broken or was not checked.

        Raises:
            RuleBroken: the rule is broken, or the check did not reach its fault.
        """
        if self.outcome == NOT_REACHED:
            raise RuleBroken(self.rule, f"nothing: the check did not reach its fault. {self.seen}")
        if self.outcome == BROKEN:
            raise RuleBroken(self.rule, self.said)

    def as_json(self) -> dict[str, Any]:
        """The finding for reports that programs read."""
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
    """Compare the ids sent, each once, with how often each took effect.

    An id with a negative count existed before the check, and has vanished.
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
    """The ids without the ``.a`` or ``.b`` that a query appended at random."""
    counts: Counter[str] = Counter()
    for one, times in found.items():
        counts[one[:-2] if one.endswith((".a", ".b")) else one] += times
    return counts


def with_story(finding: Finding, seen: str) -> Finding:
    """The finding with the actions of the check before what it saw in the target."""
    return replace(finding, seen="; ".join(filter(None, [seen, finding.seen])))


def with_error(finding: Finding, error: str) -> Finding:
    """The finding of a check whose query failed for good: broken, whatever took effect."""
    return replace(finding, outcome=BROKEN, seen=f"the query failed: {cause(error)}")


def cause(error: str) -> str:
    """The key line of an error: the last of a Python traceback, or Java's first, or its own."""
    lines = error.strip().splitlines() or ["no message"]
    after = lines[lines.index(_TRACEBACK) + 1 :] if _TRACEBACK in lines else []
    raised = (line for line in after if _RAISED.match(line))
    java = (line.removeprefix(_JAVA) for line in lines if line.startswith(_JAVA))
    return next(chain(raised, java, lines))
