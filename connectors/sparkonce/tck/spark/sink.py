"""What a third party says of its sink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkonce.tck.spark.described import Described

IN_FOREACH_BATCH = "sparkonce.tck.spark.batches:attach"


@dataclass(frozen=True)
class Sink(Described):
    """A sink to be checked: how rows get there, and how to read them back.

    The rows have two columns: ``id``, a string that no other row has, and ``n``, a bigint
    that is always 1. The target must be the suite's own while it runs.

    Attributes:
        read: how often each id has taken effect in the target: a multiset, never a set.
        columns: SQL expressions that make the sink's columns out of ``id`` and ``n``.
    """

    read: Callable[[], Counter[str]]
    columns: Sequence[str] = ("id", "n")


@dataclass(frozen=True)
class StreamingSink(Sink):
    """A sink of streaming queries, as ``writeStream`` has them.

    Each check is a query with a checkpoint of its own: where a target takes the rows of one query
    only, the fixture gives a new one each time. The function ``attach`` takes a
    `DataStreamWriter` and the options, and returns the writer.
    """


@dataclass(frozen=True)
class BatchSink(Sink):
    """A sink of batches, as ``df.write`` has them, alone and inside ``foreachBatch``.

    The function ``attach`` takes a DataFrame, the mode (``append`` or ``overwrite``) and the
    options, and writes the rows.

    Attributes:
        named: more options, for a batch outside a stream, by which the sink knows it when it comes
            again; in their values ``{job}`` and ``{version}``, a number that grows, are filled in.
            Without any, jobs are run again all the same, as an orchestrator does.
        overwriting: options in place of ``options`` where a batch overwrites; none if they are the
            same.
    """

    named: Mapping[str, str] = field(default_factory=dict)
    overwriting: Mapping[str, str] = field(default_factory=dict)

    def in_foreach_batch(self) -> StreamingSink:
        """The same sink, written to by the function of a ``foreachBatch``."""
        told = {"format": self.format, "attach": self.attach, "options": dict(self.options)}
        return StreamingSink(
            self.read,
            name=f"{self.title} in foreachBatch",
            attach=IN_FOREACH_BATCH,
            options={"batch": json.dumps(told)},
            columns=self.columns,
            settings=self.settings,
            env=self.env,
        )
