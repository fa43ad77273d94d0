"""Schemas as text, in Spark's DDL: ``id bigint, tags array<string>``. No JVM is asked."""

from __future__ import annotations

import re

import pyarrow as pa

from sparkonce.errors import OptionError
from sparkonce.values.columns import require_names
from sparkonce.values.spark_types import INTERVAL, NAMES, decimal, quoted, spark_type, typed

UNITS = ("day", "hour", "minute", "second")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|\w+|[<>(),:])")


def shown(schema: pa.Schema) -> str:
    """The schema as DDL, which `parse` reads."""
    return ", ".join(f"{quoted(field.name)} {spark_type(field)}" for field in schema)


def parse(text: str) -> pa.Schema:
    """Read a schema.

    Args:
        text: names and types, such as ``id bigint, at timestamp, tags array<string>``.

    Raises:
        OptionError: it can't be read, or a name or a type can't be written.
    """
    schema = pa.schema(_Reader(text).fields(""))
    require_names(schema)
    return schema


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fields(self, end: str) -> list[pa.Field]:
        """Fields with commas between, up to a sign."""
        found: list[pa.Field] = []
        while self._peek() != end:
            if found:
                self._expect(",")
            found.append(self._named())
        return found

    def _named(self) -> pa.Field:
        name = self._next()
        if not re.match(r"[\w`]", name):
            raise self._problem(f"a name, and not {name!r}")
        name = name[1:-1].replace("``", "`") if name.startswith("`") else name
        self._take(":")
        field = self._typed(name)
        if self._take("not"):
            self._expect("null")
            field = field.with_nullable(False)
        if self._take("comment"):
            self._next()
        return field

    def _typed(self, name: str) -> pa.Field:
        word = self._next().lower()
        if word in ("array", "map", "struct") and self._peek() == "<":
            return pa.field(name, self._nested(word))
        if word in ("decimal", "dec", "numeric"):
            return pa.field(name, self._decimal())
        if word == "interval":
            told = self._interval()
            return typed(name, pa.duration("us"), "" if told == INTERVAL else told)
        if word not in NAMES:
            raise self._problem(f"a type that can be written, and not {word!r}")
        # The length of char(10) or varchar(10), the precision of time(6): Arrow knows neither.
        self._arguments()
        if word == "string" and self._take("collate"):
            collation = self._next()
            plain = collation.upper() == "UTF8_BINARY"
            return typed(name, NAMES[word], "" if plain else f"string collate {collation}")
        return pa.field(name, NAMES[word])

    def _decimal(self) -> pa.DataType:
        given = self._arguments()
        if len(given) > 2:
            raise self._problem("precision and scale, and no more")
        try:
            return decimal(*given)
        except ValueError as error:
            raise self._problem(str(error)) from None

    def _nested(self, word: str) -> pa.DataType:
        self._expect("<")
        if word == "struct":
            made = pa.struct(self.fields(">"))
        elif word == "array":
            made = pa.list_(self._typed("element"))
        else:
            key = self._typed("key").with_nullable(False)
            self._expect(",")
            made = pa.map_(key, self._typed("value"))
        self._expect(">")
        return made

    def _interval(self) -> str:
        first = self._next().lower()
        last = self._next().lower() if self._take("to") else first
        if first not in UNITS or last not in UNITS or UNITS.index(first) > UNITS.index(last):
            raise self._problem(f"an interval of days to seconds, and not of {first} to {last}")
        return f"interval {first}" if first == last else f"interval {first} to {last}"

    def _arguments(self) -> list[int]:
        found: list[int] = []
        while self._take("," if found else "("):
            if not re.fullmatch("[0-9]{1,9}", self._peek()):
                raise self._problem("a whole number")
            found.append(int(self._next()))
        if found:
            self._expect(")")
        return found

    def _peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        if match is None and self.text[self.at :].strip():
            raise self._problem(f"no {self.text[self.at :].strip()[0]!r}")
        return match[1] if match else ""

    def _next(self) -> str:
        found = self._peek()
        if not found:
            raise self._problem("more")
        match = _TOKEN.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return found

    def _take(self, sign: str) -> bool:
        taken = self._peek().lower() == sign
        if taken:
            self._next()
        return taken

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._problem(f"{sign!r}, and not {self._peek()!r}")

    def _problem(self, expected: str) -> OptionError:
        return OptionError(
            f"Schema {self.text!r} can't be read",
            why=f"at character {self.at + 1} it must have {expected}",
            todo='write names and types as Spark does, such as "id bigint, tags array<string>"',
        )
