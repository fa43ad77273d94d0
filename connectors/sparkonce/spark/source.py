"""The data source behind every format: what Spark asks it for, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NoReturn

from sparkonce.errors import UnsupportedQuery
from sparkonce.spark.features import DataSource, InputPartition, StreamReader, require_arrow
from sparkonce.spark.tracebacks import errors_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from sparkonce.spark.batch import BatchWriter
    from sparkonce.spark.reader import Reader
    from sparkonce.spark.stream import StreamWriter


class NoStream(StreamReader):
    """Says that a format is no source of streams; here Spark shows an error, and not before."""

    def __init__(self, form: str) -> None:
        self.form = form

    @errors_first()
    def initialOffset(self) -> NoReturn:  # noqa: N802 (Spark's name)
        """See pyspark.

        Raises:
            UnsupportedQuery: always.
        """
        raise UnsupportedQuery(
            f'format("{self.form}") is no source of streams',
            why="nothing of this package follows the changes of a store",
            todo="use spark.read where the format has it, df.writeStream or df.write",
        )

    def read(self, partition: InputPartition) -> NoReturn:  # noqa: ARG002 (there is none)
        """See pyspark.

        Raises:
            UnsupportedQuery: always.
        """
        self.initialOffset()


class SinkSource(DataSource):
    """The base of every connector's ``DefaultSource``.

    Attributes:
        connector: ``module:Class`` of the connector, imported when a query first uses it.
    """

    connector: ClassVar[str]

    @errors_first()
    def streamWriter(  # noqa: N802 (Spark's name)
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter:
        """See pyspark. Checks options, schema and server before any row is read.

        Raises:
            UnsupportedQuery: complete output mode.
            SparkonceError: whatever else can be known now.
        """
        require_arrow()
        if overwrite:
            raise UnsupportedQuery(
                "Output mode complete can't be written",
                why="it replaces the whole target at every epoch, which this sink does not do",
                todo="use outputMode('append'), for an aggregate with a watermark",
            )
        # Not at the top: Spark imports this module to look formats up, with or without PyArrow.
        from sparkonce.spark.stream import StreamWriter
        from sparkonce.spark.types import arrow_schema

        return StreamWriter(self.connector, dict(self.options), arrow_schema(schema))

    @errors_first()
    def schema(self) -> StructType:
        """See pyspark. Spark asks for it to read, where a user gives none.

        Raises:
            SparkonceError: the store can't be read, or options don't fit.
        """
        require_arrow()
        from sparkonce.spark.reader import inferred

        return inferred(self.connector, dict(self.options))

    @errors_first()
    def reader(self, schema: StructType) -> Reader:
        """See pyspark."""
        require_arrow()
        from sparkonce.spark.reader import reader

        return reader(self.connector, dict(self.options), schema)

    def streamReader(self, schema: StructType) -> NoStream:  # noqa: ARG002, N802 (Spark's name)
        """See pyspark."""
        return NoStream(self.name())

    @errors_first()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """See pyspark. Checks options, schema and server before any row is read.

        Raises:
            SparkonceError: whatever can be known now.
        """
        require_arrow()
        from sparkonce.spark.batch import BatchWriter
        from sparkonce.spark.types import arrow_schema

        columns = arrow_schema(schema)
        return BatchWriter(self.connector, dict(self.options), columns, overwrite=overwrite)
