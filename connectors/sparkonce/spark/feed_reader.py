"""Readers of streams: ``spark.readStream``. Spark keeps one on the driver while the query runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sparkonce.errors import OptionError, UnsupportedQuery
from sparkonce.options import parse
from sparkonce.reading import STARTS, Feed, Followable, Follower, Offset, Scan
from sparkonce.spark import features
from sparkonce.spark.features import AvailableNow, InputPartition, StreamReader, errors_first
from sparkonce.spark.reader import ReadPartition, SplitReader, as_spark
from sparkonce.store import load

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from sparkonce.options import Options

log = logging.getLogger("sparkonce")

MOST = "maxRowsPerBatch"


class FeedReader(SplitReader, StreamReader):
    """Adapts Spark's calls to a `Follower`, on the driver, and to a feed's rows, in tasks."""

    def _open(self) -> tuple[Callable[[Options, Scan], Feed], Options]:
        followable, options = opened(self.connector, self.options)
        return followable.feed, options

    @errors_first()
    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """See pyspark, and `Follower.beginning`."""
        return self._patience.run(self._follower.beginning)

    @errors_first()
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """The splits of an epoch."""
        splits = self._patience.run(lambda: self._follower.between(start, end))
        log.debug("from %s to %s: %d splits", start, end, len(splits))
        return [ReadPartition(split) for split in splits]

    @cached_property
    def _follower(self) -> Follower:
        return Follower(self._source())


class _LimitedFeedReader(FeedReader, AvailableNow):
    """A `FeedReader` for a Spark that passes the start of an epoch and its limit of rows."""

    @errors_first()
    def latestOffset(self, start: Offset, limit: Any) -> Offset:  # noqa: N802 (Spark's name)
        """See pyspark, and `Follower.end`."""
        most = getattr(limit, "max_rows", None)
        return self._patience.run(lambda: self._follower.end(start, most))

    @errors_first()
    def getDefaultReadLimit(self) -> Any:  # noqa: N802 (Spark's name)
        """See pyspark. The limit that option ``maxRowsPerBatch`` sets."""
        most = self._opened[1][MOST]
        limits = features.limits
        return limits.ReadAllAvailable() if most is None else limits.ReadMaxRows(most)

    @errors_first()
    def reportLatestOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        """See pyspark, and `Follower.report`: Spark shows it in the progress of the query."""
        return self._patience.run(self._follower.report)

    @errors_first()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """See pyspark, and `Follower.stop_at_what_is_there`."""
        self._patience.run(self._follower.stop_at_what_is_there)


class _WholeFeedReader(FeedReader):
    """A `FeedReader` for Spark before 4.2: each epoch reads everything available."""

    @errors_first()
    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802 (Spark's name)
        """See pyspark, and `Follower.end_of_all`."""
        return self._patience.run(self._follower.end_of_all)

    @cached_property
    def _follower(self) -> Follower:
        if self._opened[1][MOST] is not None:
            log.warning(
                "Ignoring option %s. Why: this Spark sets no limits for a Python source; Spark 4.2"
                " and newer do. What to do: use a newer Spark, or omit the option",
                MOST,
            )
        return Follower(self._source())


def reader(connector: str, raw: dict[str, str], schema: StructType) -> FeedReader:
    """The reader of a stream, for the interface of this Spark."""
    kind = _LimitedFeedReader if features.limits else _WholeFeedReader
    return kind(connector, raw, schema)


def is_stream(raw: Mapping[str, str]) -> bool:
    """Whether options belong to a stream: Spark asks for a schema and does not say what for."""
    return STARTS.lower() in map(str.lower, raw)


def inferred(connector: str, raw: dict[str, str]) -> StructType:
    """The schema of the changes, or of the columns that option ``columns`` names."""
    followable, options = opened(connector, raw)
    return as_spark(lambda: followable.infer_feed(options), options)


def opened(connector: str, raw: dict[str, str]) -> tuple[Followable, Options]:
    """The connector and its options of a stream.

    Raises:
        OptionError: an option is wrong, or option ``startingPosition`` is missing.
        UnsupportedQuery: the connector cannot follow changes.
    """
    found = load(connector)
    if not isinstance(found, Followable):
        raise UnsupportedQuery(
            f'format("{found.name}") is not a streaming source',
            why="its connector cannot follow the changes of a store",
            todo="use spark.read if the format supports it, df.writeStream or df.write",
        )
    if not is_stream(raw):
        starts = next(one for one in found.follows if one.name == STARTS)
        raise OptionError(
            f"Option {STARTS} is missing",
            why="spark.readStream needs it: the start of a stream can't change later",
            todo=f'add .option("{STARTS}", ...). Meaning: {starts.meaning}',
        )
    return found, parse(found.follows, raw)
