"""The rules as a page: `python -m sparkonce.tck.spec`."""

from __future__ import annotations

import sys

from sparkonce.tck.rules.rule import MUST, Rule
from sparkonce.tck.rules.rulebook import ORACLES, RULES

_HEAD = """\
# The rules of an exactly-once sink, and of a source

What `python -m sparkonce.tck.spec` prints. Each rule has a number; the names of the
tests that check it carry the number. A test that fails prints the rule, and where to look. A rule
marked MAY can be left out with a reason; its tests are then skipped with that reason, and so are
those of a rule that the Spark at hand can't give to any sink, and of one for which a source has
nothing to check it by.
"""

_CHAPTERS = {
    "S": "Steps of a store",
    "C": "Commit",
    "A": "Abort",
    "I": "Identity",
    "Q": "A streaming query, seen from outside",
    "B": "A batch, seen from outside",
    "R": "Reads",
    "F": "A streaming source, seen from outside",
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
