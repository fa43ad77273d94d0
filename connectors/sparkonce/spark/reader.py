"""Readers of batches: ``spark.read``. Spark makes one on the driver, and pickles it into tasks."""

from __future__ import annotations

import datetime
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
from pyarrow import types
from pyspark.sql.pandas.types import from_arrow_schema

from sparkonce import checks, errors, reading
from sparkonce.errors import OptionError, UnsupportedQuery, ValueUnreadable
from sparkonce.options import parse
from sparkonce.reading import STARTS, Filter, Operator, Readable, Rows, Scan, Source
from sparkonce.spark import features
from sparkonce.spark.features import InputPartition, Shipped, errors_first, require_arrow
from sparkonce.spark.features import Reader as SparkReader
from sparkonce.spark.types import arrow_schema
from sparkonce.store import Patience, load
from sparkonce.values.spark_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from sparkonce.options import Options

COMPARED: dict[str, Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
TEXTS: dict[str, Literal["begins", "ends", "contains"]] = {
    "StringStartsWith": "begins",
    "StringEndsWith": "ends",
    "StringContains": "contains",
}
VALUES = (bool, int, float, Decimal, str, bytes, datetime.date, datetime.datetime)


def understood(filters: Iterable[Any]) -> Iterator[Filter]:
    """Those that a store can be asked for: of a column, not of a field inside it.

    Each of Spark's filters narrows rows, so that one which is left out widens what is read.
    """
    return (found for one in filters if (found := _understood(one)) is not None)


def _understood(one: Any) -> Filter | None:
    kind = type(one).__name__
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if len(path) != 1:
        return None
    if kind in ("IsNull", "IsNotNull"):
        return reading.Null(path[0], inverted=kind == "IsNotNull")
    return _compared(kind, path[0], one.value)


def _compared(kind: str, column: str, value: Any) -> Filter | None:
    if kind == "EqualNullSafe" and value is None:
        return reading.Null(column)
    if kind == "In":
        values = tuple(each for each in value if each is not None)  # null is in no list
        return reading.OneOf(column, values) if values and all(map(_is_plain, values)) else None
    if kind in TEXTS:
        return reading.Like(column, TEXTS[kind], str(value))
    operator = COMPARED.get(kind)
    if operator is None or not _is_plain(value):
        return None
    ordered = isinstance(value, str | bytes) and operator != "="
    return None if ordered else reading.Compare(column, operator, value)


def _is_plain(value: Any) -> bool:
    # NaN is the largest of Spark's doubles, and equal to itself.
    return isinstance(value, VALUES) and not (isinstance(value, float) and math.isnan(value))


log = logging.getLogger("sparkonce")


class ReadPartition(InputPartition):
    """A split on its way to a task."""


class SplitReader(Shipped):
    """What readers of batches and of streams have in common: the rows of splits, in tasks."""

    filters: tuple[Filter, ...] = ()

    def _open(self) -> tuple[Callable[[Options, Scan], Any], Options]:
        """How the connector makes what is read, and its options."""
        raise NotImplementedError

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a split, with the fields that Spark expects."""
        if partition.value is None:
            return
        with errors_first():
            source, schema = self._source(), arrow_schema(self.schema)
            for batch in _begun(source, partition.value, self._patience):
                yield _as_announced(batch, schema)

    def _source(self) -> Any:
        make, options = self._opened
        schema = arrow_schema(self.schema)
        _require_same_columns(options, schema)
        return make(options, Scan(schema, self.filters))

    @cached_property
    def _opened(self) -> tuple[Callable[[Options, Scan], Any], Options]:
        errors.set_up_logging()
        require_arrow()
        return self._open()

    @property
    def _patience(self) -> Patience:
        return Patience(self._opened[1]["maxRetries"])


class BatchReader(SplitReader, SparkReader):
    """Adapts Spark's two calls to the splits of a source, and their rows."""

    def _open(self) -> tuple[Callable[[Options, Scan], Source], Options]:
        readable, options = opened(self.connector, self.options)
        return readable.source, options

    @errors_first()
    def partitions(self) -> Sequence[InputPartition]:
        """The splits; one that is empty where there are no rows."""
        splits = self._patience.run(self._source().splits)
        log.info("%s is read in %d splits", self.connector.rpartition(":")[2], len(splits))
        return [ReadPartition(split) for split in splits] or [ReadPartition(None)]


class FilteringReader(BatchReader):
    """The same, that is told the conditions of a query."""

    @errors_first()
    def pushFilters(self, filters: Sequence[Any]) -> Iterable[Any]:  # noqa: N802 (Spark's name)
        """Take conditions, by which the store may give fewer rows; Spark applies them all again."""
        self.filters = tuple(understood(filters))
        return filters


def inferred(connector: str, raw: dict[str, str]) -> StructType:
    """The schema of what is there, or of those columns that an option names."""
    readable, options = opened(connector, raw)
    return as_spark(lambda: readable.infer(options), options)


def as_spark(infer: Callable[[], pa.Schema], options: Options) -> StructType:
    """What a connector infers, in Spark's types, without columns that are not asked for."""
    errors.set_up_logging()
    schema = Patience(options["maxRetries"]).run(infer)
    if options["columns"]:
        names = [checks.column("columns", one, schema) for one in options["columns"]]
        schema = pa.schema([schema.field(name) for name in names])
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def reader(connector: str, raw: dict[str, str], schema: StructType) -> BatchReader:
    """What reads rows of a schema.

    Spark fails each read by one that takes filters, where ``filterPushdown`` is off.
    """
    _, options = opened(connector, raw)
    if options["pushFilters"] and features.keeps_filters_apart:
        return FilteringReader(connector, raw, schema)
    if options["pushFilters"]:
        log.warning(
            "Option pushFilters is not kept. Why: this Spark gives conditions of one query to"
            " whatever else is read of the same DataFrame, and rows would be missing there"
            " (SPARK-58551). What to do: leave it out; MySQL and Elasticsearch have option query"
        )
    return BatchReader(connector, raw, schema)


def opened(connector: str, raw: dict[str, str]) -> tuple[Readable, Options]:
    """The connector, and its options of reading.

    Raises:
        OptionError: an option is wrong.
        UnsupportedQuery: the connector reads nothing.
    """
    found = load(connector)
    if not isinstance(found, Readable):
        raise UnsupportedQuery(
            f'format("{found.name}") writes only',
            why="its connector has nothing that reads",
            todo="use df.writeStream or df.write; to read, another connector of the store",
        )
    _require_none_of_streams(found, raw)
    return found, parse(found.reads, raw)


def _require_none_of_streams(found: Readable, raw: Mapping[str, str]) -> None:
    """Refuse options that streams alone have: one of these tells a stream from a batch."""
    known = {one.name.lower() for one in found.reads}
    of_streams = {one.name.lower() for one in getattr(found, "follows", ())} - known
    for name in raw:
        if name.lower() in of_streams:
            raise OptionError(
                f"Option {name} is one of spark.readStream",
                why=f"spark.read has no such option, and by {STARTS} a stream is told from a batch",
                todo=f'to follow changes, use spark.readStream with .option("{STARTS}", ...); for'
                " spark.read leave it out",
            )


def _begun(source: Rows, split: Any, patience: Patience) -> Iterator[pa.RecordBatch]:
    """The batches of a split. Until the first has come, silence of the store is waited for."""

    def begin() -> tuple[Iterator[pa.RecordBatch], pa.RecordBatch | None]:
        batches = iter(source.read(split))
        return batches, next(batches, None)

    batches, first = patience.run(begin)
    if first is not None:
        yield first
    yield from batches


def _as_announced(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with the fields that Spark expects, as it compares them."""
    for column, field in zip(batch.columns, schema, strict=True):
        if _has_forbidden_null(column, field):
            raise ValueUnreadable(
                f"Column {field.name!r} has no value in a row that is read, or inside it",
                why=f"the schema says `not null` of it, or of what is in it: {spark_type(field)}",
                todo="leave `not null` out of the schema, or filter such rows in the store",
            )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _has_forbidden_null(column: pa.Array, field: pa.Field) -> bool:
    """Whether there is a null where the schema allows none; what lies in a null counts as none."""
    if not field.nullable and column.null_count:
        return True
    if not _forbids(field.type):
        return False
    there = column.drop_null()
    return any(
        _has_forbidden_null(inner, one)
        for inner, one in zip(_inside(there), _fields(field.type), strict=True)
    )


def _forbids(kind: pa.DataType) -> bool:
    return any(not one.nullable or _forbids(one.type) for one in _fields(kind))


def _fields(kind: pa.DataType) -> list[pa.Field]:
    """The fields of what is inside a type; keys of a map are never null."""
    if types.is_struct(kind):
        return [*kind]
    if types.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if types.is_list(kind) else []


def _inside(column: pa.Array) -> list[pa.Array]:
    """What is inside values, of which none is null."""
    if types.is_struct(column.type):
        return [*column.flatten()]
    if types.is_list(column.type):
        return [column.flatten()]
    first, last = (column.offsets[at].as_py() for at in (0, -1))
    return [column.items.slice(first, last - first)]


def _require_same_columns(options: Options, schema: pa.Schema) -> None:
    """Refuse a schema beside another choice of columns."""
    wanted = options["columns"]
    if wanted and [one.lower() for one in wanted] != [one.lower() for one in schema.names]:
        raise OptionError(
            "Option columns and .schema(...) name different columns",
            why="each says what is read",
            todo="leave option columns out",
        )
