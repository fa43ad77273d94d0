"""A rule of an exactly-once sink, and the error that reports a broken one."""

from __future__ import annotations

from dataclasses import dataclass

MUST, MAY = "MUST", "MAY"


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        number: its permanent name; test names contain it in lower case.
        level: `MUST`, or `MAY` for a rule that a sink can leave out if it says so.
        text: the promise.
        intent: what goes wrong for a user if the rule is broken.
        look_at: the most likely place of the cause, in a connector or in the core.
    """

    number: str
    level: str
    text: str
    intent: str
    look_at: str


class RuleBroken(AssertionError):
    """A sink broke a rule.

    Args:
        rule: the rule.
        seen: what the check saw instead.
    """

    def __init__(self, rule: Rule, seen: str) -> None:
        super().__init__(
            f"rule {rule.number} ({rule.level}): {rule.text}\n"
            f"  seen: {seen}\n"
            f"  look at: {rule.look_at}"
        )
        self.rule, self.seen = rule, seen
