"""What stands behind FROM: a table, or the SELECT of option ``query`` or ``dbtable``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyspark_mysql.server.literals import identifier
from sparkonce import checks
from sparkonce.change import Names
from sparkonce.errors import OptionError
from sparkonce.options import Options

TOKEN = re.compile(
    r"(?P<blank>\s+|/\*(?!!|M!).*?\*/|(?:--(?=\s|$)|\#)[^\n]*\n?)"
    r"""|(?P<word>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|[\w$.]+|.)""",
    re.DOTALL,
)
"""Blanks and comments, and all else, as a session reads them that has none of ANSI_QUOTES and
NO_BACKSLASH_ESCAPES. What begins with ``/*!`` is no comment."""

ALIAS = re.compile(r"(?:as)?(?:`(?:[^`]|``)+`|[\w$]+)?", re.IGNORECASE)


class Subquery(str):
    """A SELECT."""


def subquery(text: str) -> Subquery | None:
    """The SELECT of a ``dbtable`` as Spark's JDBC has it, ``(SELECT ...) AS name``; or None.

    Raises:
        ValueError: it begins so, and is something else.
    """
    words = [*_words(text)]
    if not words or words[0][0] != "(":
        return None
    depth = 0
    for at, (word, _) in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            rest = "".join(one for one, _ in words[at + 1 :])
            if not ALIAS.fullmatch(rest):
                break
            return Subquery(text[words[0][1] : words[at][1] - 1])
    raise ValueError("(SELECT ...) AS name")


def relation(options: Options) -> str:
    """What stands behind FROM.

    Raises:
        OptionError: options name no table and no query, or both, or half of a range.
    """
    table, query = options["dbtable"], options["query"]
    ranged = [options[one] for one in ("partitionColumn", "lowerBound", "upperBound")]
    checks.refuse(
        [
            (
                bool(table) == bool(query),
                "Options dbtable and query: one of them says what is read",
                f"{'both are' if table else 'none is'} set",
                "set one of them",
            ),
            (
                any(ranged) and not all(ranged),
                "Options partitionColumn, lowerBound and upperBound belong together",
                "ranges are made of all three",
                "set all of them, or none",
            ),
        ]
    )
    if names := named(options):
        return identifier(*names)
    return f"(\n{_alone(query or table)}\n) AS sparkonce_query"


def named(options: Options) -> Names:
    """The table that is read, with its database if that is named; empty of a query."""
    table = options["dbtable"]
    return () if not table or isinstance(table, Subquery) else table


def _alone(query: str) -> str:
    """The query without semicolons and comments behind its last word.

    Raises:
        OptionError: another statement follows it.
    """
    end, is_over = 0, False
    for word, at in _words(query):
        if word == ";":
            is_over = True
        elif is_over:
            raise OptionError(
                f"Option query has more than one statement: {word!r} begins another",
                why="what is read is one SELECT",
                todo="leave one of them; a semicolon inside a text stands in quotes",
            )
        else:
            end = at
    return query[:end]


def _words(text: str) -> Iterator[tuple[str, int]]:
    """Each word that is no blank and no comment, and where it ends."""
    for found in TOKEN.finditer(text):
        if found["word"]:
            yield found["word"], found.end()
