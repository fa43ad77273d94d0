"""Readers of batches: ``spark.read``. Spark creates one on the driver, and pickles it to tasks."""

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
    """The filters that a store can apply: those on a column, not on a field inside it.

    Each of Spark's filters narrows the rows, so without one the read returns more rows.
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
    # In Spark, NaN is the largest double, and equal to itself.
    return isinstance(value, VALUES) and not (isinstance(value, float) and math.isnan(value))


log = logging.getLogger("sparkonce")


class ReadPartition(InputPartition):
    """A split that Spark sends to a task."""


class SplitReader(Shipped):
    """The common base of readers of batches and of streams: reads splits in tasks."""

    filters: tuple[Filter, ...] = ()

    def _open(self) -> tuple[Callable[[Options, Scan], Any], Options]:
        """The connector's function that opens a read, and the options."""
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
    """Adapts Spark's two calls to the splits of a source and their rows."""

    def _open(self) -> tuple[Callable[[Options, Scan], Source], Options]:
        readable, options = opened(self.connector, self.options)
        return readable.source, options

    @errors_first()
    def partitions(self) -> Sequence[InputPartition]:
        """The splits; a single empty one without rows."""
        splits = self._patience.run(self._source().splits)
        log.info("%s: reading %d splits", self.connector.rpartition(":")[2], len(splits))
        return [ReadPartition(split) for split in splits] or [ReadPartition(None)]


class FilteringReader(BatchReader):
    """A `BatchReader` that receives the conditions of a query."""

    @errors_first()
    def pushFilters(self, filters: Sequence[Any]) -> Iterable[Any]:  # noqa: N802 (Spark's name)
        """Accept conditions, so that the store returns fewer rows; Spark applies all again."""
        self.filters = tuple(understood(filters))
        return filters


def inferred(connector: str, raw: dict[str, str]) -> StructType:
    """The schema of the stored rows, or of the columns that option ``columns`` names."""
    readable, options = opened(connector, raw)
    return as_spark(lambda: readable.infer(options), options)


def as_spark(infer: Callable[[], pa.Schema], options: Options) -> StructType:
    """The inferred schema in Spark's types, with the columns that option ``columns`` names."""
    errors.set_up_logging()
    schema = Patience(options["maxRetries"]).run(infer)
    if options["columns"]:
        names = [checks.column("columns", one, schema) for one in options["columns"]]
        schema = pa.schema([schema.field(name) for name in names])
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def reader(connector: str, raw: dict[str, str], schema: StructType) -> BatchReader:
    """The reader for rows of a schema.

    Where ``filterPushdown`` is off, Spark fails each read by a reader that accepts filters.
    """
    _, options = opened(connector, raw)
    if options["pushFilters"] and features.keeps_filters_apart:
        return FilteringReader(connector, raw, schema)
    if options["pushFilters"]:
        log.warning(
            "Ignoring option pushFilters. Why: this Spark applies conditions of a query to other"
            " reads of the same DataFrame, which would lack rows"
            " (SPARK-58551). What to do: omit it; MySQL and Elasticsearch have option query"
        )
    return BatchReader(connector, raw, schema)


def opened(connector: str, raw: dict[str, str]) -> tuple[Readable, Options]:
    """The connector and its read options.

    Raises:
        OptionError: an option is wrong.
        UnsupportedQuery: the connector cannot read.
    """
    found = load(connector)
    if not isinstance(found, Readable):
        raise UnsupportedQuery(
            f'format("{found.name}") only writes',
            why="its connector cannot read",
            todo="use df.writeStream or df.write; to read, use another connector of the store",
        )
    _require_none_of_streams(found, raw)
    return found, parse(found.reads, raw)


def _require_none_of_streams(found: Readable, raw: Mapping[str, str]) -> None:
    """Reject options of streams: one of them distinguishes a stream from a batch."""
    known = {one.name.lower() for one in found.reads}
    of_streams = {one.name.lower() for one in getattr(found, "follows", ())} - known
    for name in raw:
        if name.lower() in of_streams:
            raise OptionError(
                f"Option {name} belongs to spark.readStream",
                why=f"spark.read lacks it, and {STARTS} distinguishes a stream from a batch",
                todo=f'to follow changes, use spark.readStream with .option("{STARTS}", ...); for'
                " spark.read omit it",
            )


def _begun(source: Rows, split: Any, patience: Patience) -> Iterator[pa.RecordBatch]:
    """The batches of a split; retries an unreachable store until the first one arrives."""

    def begin() -> tuple[Iterator[pa.RecordBatch], pa.RecordBatch | None]:
        batches = iter(source.read(split))
        return batches, next(batches, None)

    batches, first = patience.run(begin)
    if first is not None:
        yield first
    yield from batches


def _as_announced(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the fields that Spark expects and compares."""
    for column, field in zip(batch.columns, schema, strict=True):
        if _has_forbidden_null(column, field):
            raise ValueUnreadable(
                f"Column {field.name!r} is null, or contains a null, in a row of the store",
                why=f"the schema says `not null` for it or for a part of it: {spark_type(field)}",
                todo="remove `not null` from the schema, or filter these rows in the store",
            )
    return pa.RecordBatch.from_arrays(batch.columns, schema=schema)


def _has_forbidden_null(column: pa.Array, field: pa.Field) -> bool:
    """Whether a value is null where the schema forbids it; parts of a null do not count."""
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
    """The fields inside a type, without the keys of a map, which are never null."""
    if types.is_struct(kind):
        return [*kind]
    if types.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if types.is_list(kind) else []


def _inside(column: pa.Array) -> list[pa.Array]:
    """The parts of values, none of which is null."""
    if types.is_struct(column.type):
        return [*column.flatten()]
    if types.is_list(column.type):
        return [column.flatten()]
    first, last = (column.offsets[at].as_py() for at in (0, -1))
    return [column.items.slice(first, last - first)]


def _require_same_columns(options: Options, schema: pa.Schema) -> None:
    """Reject a schema that contradicts option ``columns``."""
    wanted = options["columns"]
    if wanted and [one.lower() for one in wanted] != [one.lower() for one in schema.names]:
        raise OptionError(
            "Option columns and .schema(...) name different columns",
            why="both define the columns of the read",
            todo="omit option columns",
        )
