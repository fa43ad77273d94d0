"""What a statement of the log may have done to a table, of which it tells no rows."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

TOKEN = re.compile(
    r"/\*M?!\d*|\*/"  # around what the server runs all the same
    r"|/\*.*?\*/|--(?=\s|$)[^\n]*|\#[^\n]*"
    r"|'(?:[^'\\]|\\.|'')*'"
    r"|`(?P<ticks>(?:[^`]|``)*)`"
    r'|"(?P<quotes>(?:[^"]|"")*)"'  # a name, by sql_mode ANSI_QUOTES
    r"|(?P<word>[\w$]+)|(?P<sign>[^\s])",
    re.DOTALL,
)
ON_INDEXES = re.compile(
    r"ADD (CONSTRAINT (\w+ )?)?(UNIQUE|FULLTEXT|SPATIAL|INDEX|KEY|FOREIGN|CHECK)\b"
    r"|(DROP|RENAME|ALTER) (INDEX|KEY|FOREIGN|CONSTRAINT|CHECK)\b"
    r"|(COMMENT|AUTO_INCREMENT|STATS_\w+|ALGORITHM|LOCK)\b"
)
"""Clauses of ALTER TABLE that change neither rows nor columns."""

CASCADES = re.compile(r"\bFOREIGN\b.*\b(CASCADE|SET NULL|SET DEFAULT)\b")
"""Those behind which rows may change that are not logged."""

ADMINISTRATION = re.compile(
    "ANALYZE|BEGIN|CHECK|COMMIT|CREATE|FLUSH|GRANT|LOCK|OPTIMIZE|RELEASE|REPAIR|REVOKE|ROLLBACK"
    "|SAVEPOINT|SET|UNLOCK|XA"
)
"""First words of statements that change neither; CREATE OR REPLACE is looked at before."""


class Effect(enum.Enum):
    """What a statement may have changed of a table."""

    NOTHING = 0
    ROWS = 1
    COLUMNS = 2


class Token(NamedTuple):
    """A word, a name in quotes, or a sign."""

    text: str
    quoted: bool

    @property
    def word(self) -> str:
        """As a keyword; nothing if it is none."""
        return "" if self.quoted else self.text.upper()


def effect(text: str, default: str, table: tuple[str, str]) -> Effect:
    """What a statement may have changed.

    Args:
        text: of the statement.
        default: the database of names without one.
        table: its database and its name.
    """
    tokens = _without_settings([*_tokens(text)])
    words = [one.word for one in tokens[:4]]
    if words[:1] == ["DROP"] and words[1:2] in (["DATABASE"], ["SCHEMA"]):
        found = _past(tokens, 2, "IF", "EXISTS")
        return Effect.COLUMNS if _same(_name(found, "")[1:], table[:1]) else Effect.NOTHING
    names = _tables(tokens, words)
    if names is None:
        return _of_rows(tokens, words, default, table)
    if not any(_same(_name(name, default), table) for name in names):
        return Effect.NOTHING
    return _of_table(tokens, words[0])


def _of_table(tokens: Sequence[Token], verb: str) -> Effect:
    if verb == "TRUNCATE":
        return Effect.ROWS
    clauses = [*_clauses(tokens)] if verb == "ALTER" else [""]
    if any(not ON_INDEXES.match(one) for one in clauses):
        return Effect.COLUMNS
    return Effect.ROWS if any(map(CASCADES.search, clauses)) else Effect.NOTHING


def _tables(tokens: Sequence[Token], words: Sequence[str]) -> list[list[Token]] | None:
    """The names of the tables that a statement is about; None if it is about none."""
    if words[:1] == ["TRUNCATE"]:
        return [_past(tokens, 1, "TABLE")]
    if words[:3] == ["CREATE", "OR", "REPLACE"]:
        return [_past(tokens, 4)] if words[3:] == ["TABLE"] else []
    if words[:1] not in (["ALTER"], ["DROP"], ["RENAME"]):
        return None
    rest = _past(tokens, 1, "ONLINE", "IGNORE")
    if not rest or rest[0].word not in ("TABLE", "TABLES"):
        return []
    names = _past(rest, 1, "IF", "EXISTS")
    if words[0] == "ALTER":
        return [names, *_given_and_taken(names)]
    ends = [at for at, one in enumerate(names) if one.text == "," or one.word == "TO"]
    return [names[at:] for at in (0, *(end + 1 for end in ends))]


def _given_and_taken(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The name that an ALTER TABLE gives to a table, and the table whose rows it takes."""
    for at, one in enumerate(tokens[:-1]):
        after = tokens[at + 1]
        if one.word == "RENAME" and after.word not in ("COLUMN", "INDEX", "KEY"):
            yield _past(tokens, at + 1, "TO", "AS") if after.text != "=" else _past(tokens, at + 2)
        elif (one.word, after.word) == ("WITH", "TABLE"):
            yield _past(tokens, at + 2)


def _of_rows(
    tokens: Sequence[Token], words: Sequence[str], default: str, table: tuple[str, str]
) -> Effect:
    """Of a statement that a session logs as it is, by ``binlog_format=STATEMENT`` or ``MIXED``."""
    if not words or ADMINISTRATION.fullmatch(words[0]):
        return Effect.NOTHING
    into = next((at for at, one in enumerate(tokens) if one.word == "INTO"), None)
    if words[0] in ("INSERT", "REPLACE") and into is not None:
        is_ours = _same(_name(tokens[into + 1 :], default), table)
        return Effect.ROWS if is_ours else Effect.NOTHING
    is_near = _same((default,), table[:1]) or any(_same((one.text,), table[:1]) for one in tokens)
    return Effect.ROWS if is_near else Effect.NOTHING


def _clauses(tokens: Sequence[Token]) -> Iterator[str]:
    """The first words of what an ALTER TABLE does."""
    named = _past(_past(tokens, 1, "ONLINE", "IGNORE"), 1, "IF", "EXISTS")
    at = 3 if named[1:2] == [Token(".", quoted=False)] else 1
    depth, clause = 0, list[str]()
    for one in [*named[at:], Token(",", quoted=False)]:
        depth += (one.text == "(") - (one.text == ")")
        if one.text == "," and depth == 0:
            yield " ".join(clause)
            clause = []
        else:
            clause.append(one.word or "name")


def _without_settings(tokens: list[Token]) -> list[Token]:
    """Without MariaDB's SET STATEMENT ... FOR."""
    if [one.word for one in tokens[:2]] != ["SET", "STATEMENT"]:
        return tokens
    ends = [at for at, one in enumerate(tokens) if one.word == "FOR"]
    return tokens[ends[0] + 1 :] if ends else tokens


def _past(tokens: Sequence[Token], at: int, *optional: str) -> list[Token]:
    """What follows so many tokens, and such words."""
    rest = list(tokens[at:])
    while rest and rest[0].word in optional and rest[0].word:
        rest.pop(0)
    return rest


def _name(tokens: Sequence[Token], default: str) -> tuple[str, ...]:
    """A name with its database."""
    found = [one.text for one in tokens[:3]]
    return (found[0], found[2]) if found[1:2] == ["."] else (default, *found[:1])


def _same(name: Sequence[str], other: Sequence[str]) -> bool:
    """Whether names are the same, in any case of letters: some servers tell no difference."""
    return [one.lower() for one in name] == [one.lower() for one in other]


def _tokens(text: str) -> Iterator[Token]:
    for found in TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "ticks":
            yield Token(found[kind].replace("``", "`"), quoted=True)
        elif kind == "quotes":
            yield Token(found[kind].replace('""', '"'), quoted=True)
        elif kind:
            yield Token(found[kind], quoted=False)
