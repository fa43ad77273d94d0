"""What a rule of an exactly-once sink is, and the error that says that one is broken."""

from __future__ import annotations

from dataclasses import dataclass

MUST, MAY = "MUST", "MAY"


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        number: names it for ever; test names carry it in lower case.
        level: `MUST`, or `MAY` for what a sink can leave out if it says so.
        text: what holds.
        intent: what goes wrong for a user where it does not.
        look_at: where the cause lies most likely, in a connector or in the core.
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
        seen: what was seen instead.
    """

    def __init__(self, rule: Rule, seen: str) -> None:
        super().__init__(
            f"rule {rule.number} ({rule.level}): {rule.text}\n"
            f"  seen: {seen}\n"
            f"  look at: {rule.look_at}"
        )
        self.rule, self.seen = rule, seen
