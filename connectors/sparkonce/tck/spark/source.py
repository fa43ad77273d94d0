"""What a third party says of its source of streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sparkonce.tck.spark.described import Described

NEEDED = {"F04": "latest", "F05": "limit", "F07": "lose", "F13": "fall_back", "F14": "fewer"}
"""What a subject must give for a rule to be checked."""


@dataclass(frozen=True, kw_only=True)
class StreamingSource(Described):
    """A source to be checked, as ``readStream`` has it: how rows get into its store, and are named.

    The store must be new for each check, and empty. Functions are called in the process of the
    suite, one at a time, and not always by the same thread. The function ``attach`` takes the
    SparkSession and the options, and returns the rows.

    Attributes:
        append: writes a row for each id, by a plain client; they can be read when it returns.
        options: with these, a query begins with all that is there.
        column: the SQL expression that gives the id of a row.
        schema: for sources that must be told it.
        latest: more options, for a query that begins with what comes next.
        limit: the option that says how much an epoch has at most.
        limits: see `Described`.
        limits_appends: whether the limit counts calls of ``append``, as of files, and not rows.
        at_most: how many of those an epoch may have for a limit, where that is more.
        ordered: whether rows come in the order in which they were appended, by epochs.
        newest: whether a row that is changed moves to a later epoch, and so is missing where an
            earlier one is replayed.
        change: writes these rows again, which are there.
        lose: lets these rows vanish, all of them older than the others that were not read.
        tolerant: more options, with which a loss is only warned of.
        fall_back: takes these rows away, the newest of all, as a failover does to a replica that
            had not got them; rows that are appended later are others, and newer.
        fewer: more options, with which some of the rows are left out that ``append`` writes.
        jvm: whether it is no Python, so that each release of Spark has set it limits.
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
        """Why a rule is not checked: the subject says so, or gives nothing to check it by."""
        needed = NEEDED.get(number)
        if needed and not getattr(self, needed):
            return self.limits.get(number, f"the subject gives no `{needed}`")
        return super().left_out(number)
