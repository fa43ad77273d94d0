"""A third party's description of its streaming source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparkonce.tck.spark.described import Described

NEEDED = {"F04": "latest", "F05": "limit", "F07": "lose", "F13": "fall_back", "F14": "fewer"}
"""The attributes that a subject must set for the check of a rule."""


@dataclass(frozen=True, kw_only=True)
class StreamingSource(Described):
    """A source to check, for ``readStream``: how to write to its store, and its properties.

    The store must be new for each check, and empty. The suite calls functions in its own process,
    one at a time, and from several threads. The function ``attach`` takes the SparkSession and the
    options, and returns the rows.

    Attributes:
        append: writes a row for each id, with a plain client; they are readable when it returns.
        options: with these, a query begins with all existing rows.
        column: the SQL expression that returns the id of a row.
        schema: for sources that need one.
        latest: more options, for a query that begins with the next row.
        limit: the option that limits the size of an epoch.
        limits: see `Described`.
        limits_appends: whether the limit counts calls of ``append``, as of files, and not rows.
        at_most: the maximum size of an epoch for a limit, if it exceeds the limit.
        ordered: whether epochs deliver rows in the order of their appends.
        newest: whether a changed row moves to a later epoch, and so is missing in the replay of an
            earlier one.
        change: writes these existing rows again.
        lose: removes these rows, all of them older than the other unread rows.
        tolerant: more options, with which a loss only causes a warning.
        fall_back: removes these rows, the newest of all, like a failover to a replica that lacked
            them; rows appended later are other, newer ones.
        fewer: more options, with which the query leaves out some of the rows that ``append``
            writes.
        jvm: whether the source is written for the JVM; each release of Spark limits those.
    """

    append: Callable[[Sequence[str]], object]
    column: str = "id"
    schema: str = ""
    latest: Mapping[str, str] | None = None
    limit: str = ""
    limits_appends: bool = False
    at_most: Callable[[int], int] = int
    ordered: bool = False
    newest: bool = False
    change: Callable[[Sequence[str]], object] | None = None
    lose: Callable[[Sequence[str]], object] | None = None
    tolerant: Mapping[str, str] | None = None
    fall_back: Callable[[Sequence[str]], object] | None = None
    fewer: Mapping[str, str] | None = None
    jvm: bool = False

    def left_out(self, number: str) -> str:
        """The reason why a rule is not checked: a limit of the subject, or a missing attribute."""
        needed = NEEDED.get(number)
        if needed and not getattr(self, needed):
            return self.limits.get(number, f"the subject has no `{needed}`")
        return super().left_out(number)
