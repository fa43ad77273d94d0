"""The tokens of a logged statement, as the server parsed it, and a cursor that walks over them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

# Bits of ``sql_mode``. MSSQL is of MariaDB.
ANSI_QUOTES, MSSQL, NO_BACKSLASH_ESCAPES = 1 << 2, 1 << 10, 1 << 20


class Token(NamedTuple):
    """A word, a quoted name (`), a string (') or a sign, whose kind is the sign itself."""

    kind: str
    text: str


# From here on the tokens of a text are uncertain.
UNKNOWN = Token("?", "")

DEPTH = {"(": 1, ")": -1}
"""What a bracket adds to the depth."""

SPACE = r"[ \t\n\v\f\r]"
WORD = r"[0-9A-Za-z_$\u0080-\U0010ffff]"


@lru_cache
def _expression(mode: int, *, mariadb: bool) -> re.Pattern[str]:
    """The regular expression of a token. Comments that a server executes are not comments."""
    escaped = "" if mode & NO_BACKSLASH_ESCAPES else r"|\\."
    inside = "" if mode & NO_BACKSLASH_ESCAPES else r"\\"
    double = f'"(?:[^"{inside}]{escaped}|"")*"'
    quotes = r'(?P<quotes>"(?:[^"]|"")*")' if mode & ANSI_QUOTES else f"(?P<double>{double})"
    brackets = r"|(?P<brackets>\[(?:[^\]]|\]\])*\])" if mode & MSSQL and mariadb else ""
    run = "M?!" if mariadb else "!"
    return re.compile(
        rf"(?P<space>{SPACE}+)"
        rf"|(?P<opens>/\*{run}(?:\d{{5,6}}(?!\d)|(?!\d)))|(?P<closes>\*/)"
        rf"|(?P<comment>/\*(?!{run}).*?\*/|--(?=[\x00-\x20\x7f]|\Z)[^\n]*|\#[^\n]*)"
        rf"|(?P<string>'(?:[^'{inside}]{escaped}|'')*')"
        rf"|(?P<ticks>`(?:[^`]|``)*`)|{quotes}{brackets}"
        rf"|(?!\$\w*\$)(?P<word>{WORD}+)"  # newer strings of MySQL begin with $tag$
        r"|(?P<sign>/(?!\*)|[^\x00-\x20\x7f\u0080-\U0010ffff/'\"`\\\[\]])",
        re.DOTALL,
    )


def tokens_of(text: str, mode: int, *, mariadb: bool) -> Iterator[Token]:
    """The tokens of a text; `UNKNOWN` for invalid text, or where the server may see another."""
    expression, at, inside = _expression(mode, mariadb=mariadb), 0, False
    while at < len(text):
        found = expression.match(text, at)
        kind = found.lastgroup if found else None
        if found is None or kind is None or kind == ("opens" if inside else "closes"):
            break
        inside = inside != (kind in ("opens", "closes"))
        yield from _token(kind, found[0])
        at = found.end()
    if inside or at < len(text):
        yield UNKNOWN


def _token(kind: str, text: str) -> Iterator[Token]:
    if kind in ("ticks", "quotes", "brackets"):
        yield Token("`", text[1:-1].replace(text[-1] * 2, text[-1]))
    elif kind in ("string", "double"):
        yield Token("'", text)
    elif kind == "word":  # some servers do not treat blanks beyond ASCII as blanks
        yield UNKNOWN if any(map(str.isspace, text)) else Token(kind, text)
    elif kind == "sign":
        yield Token(text, text)


class Cursor:
    """Walks over tokens; each method takes the next tokens, or none."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._at = tokens, 0

    @property
    def ended(self) -> bool:
        """Whether no token is left."""
        return self._at == len(self._tokens)

    @property
    def text(self) -> str:
        """The text of the next token; empty at the end."""
        return "" if self.ended else self._tokens[self._at].text

    @property
    def rest(self) -> Sequence[Token]:
        """The tokens that are left."""
        return self._tokens[self._at :]

    def peek(self, *words: str) -> str:
        """One of these words, in upper case, which stays; an empty text for another token."""
        found = self._next("word").upper()
        return found if found in words else ""

    def word(self, *words: str) -> str:
        """One of these words, in upper case; an empty text for another token."""
        found = self.peek(*words)
        self._at += bool(found)
        return found

    def number(self) -> str:
        """A number without sign and point."""
        found = self._next("word")
        is_number = found[:1].isdecimal()
        self._at += is_number
        return found if is_number else ""

    def words(self, text: str) -> bool:
        """Take these words if they follow; return whether they did."""
        begin = self._at
        if all(self.word(one) for one in text.split()):
            return True
        self._at = begin
        return False

    def sign(self, sign: str) -> bool:
        """Take this sign if it follows; return whether it did."""
        found = not self.ended and self._tokens[self._at].kind == sign
        self._at += found
        return found

    def signs(self, signs: str) -> bool:
        """Take these signs if they follow; return whether they did."""
        begin = self._at
        if all(map(self.sign, signs)):
            return True
        self._at = begin
        return False

    def name(self) -> str:
        """A name, quoted or not; an empty text if there is none."""
        found = self._next("`") or self._next("word")
        self._at += bool(found)
        return found

    def string(self) -> bool:
        """Take a string if it follows; return whether it did."""
        return self.sign("'")

    def group(self) -> Sequence[Token] | None:
        """The tokens between brackets; None if no bracket follows."""
        if self.ended or self._tokens[self._at].kind != "(":
            return None
        begin, depth = self._at + 1, 0
        for at in range(self._at, len(self._tokens)):
            depth += DEPTH.get(self._tokens[at].kind, 0)
            if depth == 0:
                self._at = at + 1
                return self._tokens[begin:at]
        return None

    def _next(self, kind: str) -> str:
        is_there = not self.ended and self._tokens[self._at].kind == kind
        return self._tokens[self._at].text if is_there else ""


def split(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    """The parts between commas that are in no brackets."""
    begin = depth = 0
    for at, one in enumerate(tokens):
        depth += DEPTH.get(one.kind, 0)
        if one.kind == "," and depth == 0:
            yield tokens[begin:at]
            begin = at + 1
    yield tokens[begin:]
