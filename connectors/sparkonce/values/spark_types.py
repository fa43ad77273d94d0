"""The columns of a query: Spark's names for Arrow types, and the schema that Spark announced.

Arrow lacks some of Spark's types: a field of one has Spark's name in its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyarrow import types

from sparkonce.errors import OptionError, UnsupportedQuery

SPARK = b"spark"
"""The key of the metadata with a type's name in Spark, if Arrow's type does not determine it."""

NAMES: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "tinyint": pa.int8(),
    "short": pa.int16(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "char": pa.string(),
    "varchar": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "time": pa.time64("ns"),
    "void": pa.null(),
}
"""Types by their names in Spark."""

INTERVAL = "interval day to second"

SIMPLE = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "tinyint"),
    (types.is_int16, "smallint"),
    (types.is_int32, "int"),
    (types.is_int64, "bigint"),
    (types.is_float32, "float"),
    (types.is_float64, "double"),
    (types.is_string, "string"),
    (types.is_large_string, "string"),
    (types.is_binary, "binary"),
    (types.is_large_binary, "binary"),
    (types.is_date32, "date"),
    (types.is_null, "void"),
)
"""The types with a fixed name, regardless of a field's metadata."""
_SHOWN = (*SIMPLE, (types.is_time, "time(9)"), (types.is_duration, INTERVAL))


def spark_type(field: pa.Field) -> str:
    """The name of a field's type in Spark."""
    spark_name = (field.metadata or {}).get(SPARK)
    if spark_name:
        return str(spark_name.decode())
    kind = field.type
    if types.is_nested(kind):
        return _nested(kind)
    if types.is_decimal128(kind) and kind.scale >= 0:
        return f"decimal({kind.precision},{kind.scale})"
    if types.is_timestamp(kind) and kind.unit == "us":
        return "timestamp" if kind.tz else "timestamp_ntz"
    return next((name for accepts, name in _SHOWN if accepts(kind)), str(kind))


def _nested(kind: pa.DataType) -> str:
    if types.is_map(kind):
        return f"map<{spark_type(kind.key_field)},{spark_type(kind.item_field)}>"
    if types.is_struct(kind):
        members = [f"{quoted(child.name)}:{spark_type(child)}" for child in kind]
        return f"struct<{','.join(members)}>"
    if types.is_list(kind) or types.is_large_list(kind):
        return f"array<{spark_type(kind.value_field)}>"
    return str(kind)


def type_name(kind: pa.DataType) -> str:
    """The name of a type without metadata; Arrow's own name if Spark lacks the type."""
    return spark_type(pa.field("", kind))


def typed(name: str, kind: pa.DataType, spark_name: str = "", *, nullable: bool = True) -> pa.Field:
    """A field, with Spark's name of its type if Arrow lacks the type."""
    return pa.field(
        name, kind, nullable, metadata={SPARK: spark_name.encode()} if spark_name else None
    )


def decimal(precision: int = 10, scale: int = 0) -> pa.DataType:
    """A decimal type; Spark has fewer of them than Arrow.

    Raises:
        ValueError: Spark has none with that precision and scale.
    """
    if not (1 <= precision <= 38 and 0 <= scale <= precision):
        raise ValueError(
            f"a decimal of 1 to 38 digits, with none to all of them after the point, not"
            f" decimal({precision},{scale})"
        )
    return pa.decimal128(precision, scale)


def quoted(name: str) -> str:
    """A name as in DDL."""
    return name if re.fullmatch(r"[A-Za-z]\w*", name) else "`" + name.replace("`", "``") + "`"


UNITS = ("day", "hour", "minute", "second")
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|'(?:[^'\\]|\\.|'')*'|\w+|[<>(),:])")


def to_ddl(schema: pa.Schema) -> str:
    """The schema as DDL, which `parse` reads."""
    return ", ".join(f"{quoted(field.name)} {spark_type(field)}" for field in schema)


def parse(text: str) -> pa.Schema:
    """Parse a schema: names and types, such as ``id bigint, at timestamp, tags array<string>``.

    Raises:
        OptionError: the text is not a schema, or has an unsupported name or type.
    """
    schema = pa.schema(_Reader(text).fields(""))
    require_names(schema)
    return schema


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def fields(self, end: str) -> list[pa.Field]:
        """Fields separated by commas, up to the sign `end`."""
        found: list[pa.Field] = []
        while self._peek() != end:
            if found:
                self._expect(",")
            found.append(self._named())
        return found

    def _named(self) -> pa.Field:
        name = self._next()
        if not re.match(r"[\w`]", name):
            raise self._problem(f"a name, not {name!r}")
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
            spark_name = self._interval()
            return typed(name, pa.duration("us"), "" if spark_name == INTERVAL else spark_name)
        if word not in NAMES:
            raise self._problem(f"a supported type, not {word!r}")
        # The length of char(10) or varchar(10), the precision of time(6): Arrow has neither.
        self._arguments()
        if word == "string" and self._take("collate"):
            collation = self._next()
            plain = collation.upper() == "UTF8_BINARY"
            return typed(name, NAMES[word], "" if plain else f"string collate {collation}")
        return pa.field(name, NAMES[word])

    def _decimal(self) -> pa.DataType:
        given = self._arguments()
        if len(given) > 2:
            raise self._problem("only precision and scale")
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
            raise self._problem(f"an interval of days to seconds, not of {first} to {last}")
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
            raise self._problem(f"{sign!r}, not {self._peek()!r}")

    def _problem(self, expected: str) -> OptionError:
        return OptionError(
            f"Schema {self.text!r} can't be read",
            why=f"at character {self.at + 1} it must have {expected}",
            todo='write names and types as Spark does, such as "id bigint, tags array<string>"',
        )


CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""Unicode's category Cc: https://www.unicode.org/reports/tr44/#General_Category_Values"""


def require_names(schema: pa.Schema) -> None:
    """Reject names with which a store cannot keep rows.

    Raises:
        OptionError: two columns have the same name, or the name of a column or of a field inside it
            has a control character.
    """
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise OptionError(
                f"The query has column {name!r} twice",
                why="a store keeps rows by column name",
                todo="rename one of them before the sink",
            )
    for path in (path for field in schema for path in _paths(field, ())):
        if CONTROL.search(path[-1]):
            raise OptionError(
                f"Column {'.'.join(path)!r} has a control character in its name",
                why="Spark cuts a name at a NUL, and the values of such a field arrive as null;"
                " other control characters split lines of logs and of requests",
                todo="rename it before the sink (inside a struct: cast it to a struct with other"
                " names), or read without it",
            )


def as_announced(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches, each compared with the schema of the query.

    Raises:
        UnsupportedQuery: names or types differ, so that values would be confused.
    """
    announced = _fields(schema)
    for batch in batches:
        found = _fields(batch.schema)
        if found != announced:
            # If none is missing, but order or number differ, name the first one.
            wrong = [one for one in announced if one not in found] or announced
            raise UnsupportedQuery(
                f"Spark passes columns {batch.schema.names!r}, which differ from the announced"
                f" schema; the first difference is {wrong[0][0]!r}",
                why="its values would be lost or stored in another column",
                todo="rename that column and the fields inside it to plain letters, or cast it",
            )
        yield batch


def _paths(field: pa.Field, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The field and all inside it, each with the names that lead to it."""
    path = (*above, field.name)
    yield path
    for number in range(field.type.num_fields):
        yield from _paths(field.type.field(number), path)


def _fields(fields: Iterable[pa.Field]) -> list[tuple[str, object]]:
    return [(field.name, _form(field.type)) for field in fields]


def _form(kind: pa.DataType) -> object:
    """A type without the parts that vary between Spark sessions: sizes of texts, the time zone."""
    if types.is_struct(kind):
        return _fields(kind)
    if types.is_map(kind):
        return "map", _form(kind.key_type), _form(kind.item_type)
    if types.is_nested(kind):
        return "list", _form(kind.value_type)
    if types.is_timestamp(kind):
        return kind.unit, kind.tz is None
    alike = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    return alike.get(kind, kind)
