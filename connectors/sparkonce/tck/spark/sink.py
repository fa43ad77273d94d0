"""A third party's description of its sink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkonce.tck.spark.described import Described

IN_FOREACH_BATCH = "sparkonce.tck.spark.batches:attach"


@dataclass(frozen=True)
class Sink(Described):
    """A sink to check: how rows reach it, and how to read its target.

    The rows have two columns: ``id``, a string that no other row has, and ``n``, a bigint that is
    always 1. No other process may write to the target while the suite runs.

    Attributes:
        read: how often each id has taken effect in the target: a multiset, never a set.
        columns: SQL expressions that compute the sink's columns from ``id`` and ``n``.
    """

    read: Callable[[], Counter[str]]
    columns: Sequence[str] = ("id", "n")


@dataclass(frozen=True)
class StreamingSink(Sink):
    """A sink of streaming queries, for ``writeStream``.

    Each check is a query with its own checkpoint: if a target takes the rows of one query only, the
    fixture must return a new target each time. The function ``attach`` takes a `DataStreamWriter`
    and the options, and returns the writer.
    """


@dataclass(frozen=True)
class BatchSink(Sink):
    """A batch sink, for ``df.write``, alone and inside ``foreachBatch``.

    The function ``attach`` takes a DataFrame, the mode (``append`` or ``overwrite``) and the
    options, and writes the rows.

    Attributes:
        named: more options, by which the sink recognizes a repeated batch outside a stream. The kit
            replaces ``{job}`` and ``{version}``, a number that grows, in their values. Without
            these options jobs still run again, as under an orchestrator.
        overwriting: options in place of ``options`` for a batch that overwrites; none if they are
            the same.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    overwriting: Mapping[str, str] = field(default_factory=dict)

    def in_foreach_batch(self) -> StreamingSink:
        """The same sink, as the function of a ``foreachBatch`` writes to it."""
        content = {"format": self.format, "attach": self.attach, "options": dict(self.options)}
        return StreamingSink(
            self.read,
            name=f"{self.title} in foreachBatch",
            attach=IN_FOREACH_BATCH,
            options={"batch": json.dumps(content)},
            columns=self.columns,
            settings=self.settings,
            env=self.env,
        )
