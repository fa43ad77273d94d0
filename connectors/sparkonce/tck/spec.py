"""Prints the rules as a page: `python -m sparkonce.tck.spec`."""

from __future__ import annotations

import sys

from sparkonce.tck.rules.rule import MUST, Rule
from sparkonce.tck.rules.rulebook import ORACLES, RULES

_HEAD = """\
# The rules of an exactly-once sink, and of a source

`python -m sparkonce.tck.spec` prints this page. Each rule has a number, which the names of its
tests contain. A test that fails prints the rule, and where to look. A sink can leave out a rule
marked MAY if it names a reason; pytest then skips the tests of the rule with that reason. The kit
also skips a rule that no sink can keep on this release of Spark, and one that a source gives it no
means to check.
"""

_CHAPTERS = {
    "S": "Steps of a store",
    "C": "Commit",
    "A": "Abort",
    "I": "Identity",
    "Q": "A streaming query, observed from outside",
    "B": "A batch, observed from outside",
    "R": "Reads",
    "F": "A streaming source, observed from outside",
}


def as_markdown() -> str:
    """The rules and the oracles as a page of the docs."""
    parts = [_HEAD]
    for letter, title in _CHAPTERS.items():
        parts.append(f"## {title}\n")
        parts += [_paragraph(rule) for rule in RULES if rule.number.startswith(letter)]
    parts.append("## Oracles\n")
    parts += [f"- **{name}**: {text}" for name, text in ORACLES.items()]
    return "\n".join(parts) + "\n"


def _paragraph(rule: Rule) -> str:
    level = "" if rule.level == MUST else f" ({rule.level})"
    return f"**{rule.number}**{level} {rule.text} *{rule.intent}*\n"


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
