"""The limit of dead letters in an epoch: one rule for all connectors.

No server says whether a row is bad or its table. A missing partition, a full mapping, or a broken
trigger rejects good rows one by one. Only the number of rejected rows shows the difference.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from sparkonce.errors import BadRow, SparkonceError, error_text
from sparkonce.options import Option
from sparkonce.protocol import Applied, Manifest, Reasons, Receipt

if TYPE_CHECKING:
    from sparkonce.values.rows import RejectedRow

log = logging.getLogger("sparkonce")

ALWAYS = 10
"""Allowed dead letters regardless of the share: a small epoch may have that many by chance."""

KINDS = 8
"""Most kinds of reasons that are counted separately."""

OTHERS, BEFORE = "other reasons", "refused before a restart"
OF_TASK = "a task can't write it"
LONGEST_EXAMPLE = 300


@dataclass(frozen=True)
class MaxBadRows:
    """Option ``maxBadRows``: a number of rows, or a share of an epoch's."""

    text: str
    number: int | None = None
    share: Fraction = Fraction(0)

    def of(self, rows: int) -> int:
        """How many of `rows` may become dead letters."""
        return max(ALWAYS, int(self.share * rows)) if self.number is None else self.number

    def __str__(self) -> str:
        return self.text


NONE = MaxBadRows("0", 0)
ALL = MaxBadRows("100%", share=Fraction(1))


def max_bad_rows(text: str) -> MaxBadRows:
    """Parse the option: ``100``, or ``10%``.

    Raises:
        ValueError: the text is neither.
    """
    share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    if share and Fraction(share[1]) <= 100:
        return MaxBadRows(text, share=Fraction(share[1]) / 100)
    if not re.fullmatch(r"\d+", text):
        raise ValueError("a number of rows such as 100, or a percentage of an epoch's such as 10%")
    return MaxBadRows(text, int(text))


MAX_BAD_ROWS = Option(
    "maxBadRows",
    "The maximum number of bad rows of an epoch with `onBadRow=deadLetter`: a count, or a"
    " percentage (at least 10 rows are always allowed). With more the query stops, because the"
    " target may be the cause. Epochs without a stored row count together.",
    max_bad_rows,
    max_bad_rows("10%"),
)


@dataclass
class Count:
    """A count of bad rows by the kind of reason."""

    kinds: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """The number of bad rows."""
        return sum(rows for rows, _ in self.kinds.values())

    def add(self, kind: str, example: str, rows: int = 1) -> None:
        """Count rows; after the first kinds, all others count together."""
        if kind not in self.kinds and len(self.kinds) >= KINDS:
            kind, example = OTHERS, ""
        known, first = self.kinds.get(kind, (0, example[:LONGEST_EXAMPLE]))
        self.kinds[kind] = known + rows, first

    def merge(self, kinds: Reasons) -> None:
        """Add the counts of a task."""
        for kind, (rows, example) in kinds.items():
            self.add(kind, example, rows)

    def __str__(self) -> str:
        """The most frequent first."""
        ordered = sorted(self.kinds.items(), key=lambda item: -item[1][0])
        return "; ".join(
            f"{rows:,} x {kind}" + (f", such as: {example}" if example not in ("", kind) else "")
            for kind, (rows, example) in ordered
        )


def reasons(bad: Iterable[RejectedRow]) -> Reasons:
    """The reasons why these rows can't be stored."""
    count = Count()
    for one in bad:
        count.add(one.kind, one.reason)
    return count.kinds


class TooManyBadRows(SparkonceError):
    """More rows are bad than option ``maxBadRows`` allows."""


class BadRowCounter:
    """The bad rows of one epoch.

    Args:
        most: how many may become dead letters.
        manifest: of the epoch.

    Attributes:
        stored: whether the store has stored any row.
    """

    def __init__(self, most: MaxBadRows, manifest: Manifest) -> None:
        self.most, self.manifest, self.reasons = most, manifest, Count()
        self.stored = False

    def add(self, kind: str, example: str, rows: int = 1) -> None:
        """Count rows before they become dead letters.

        Raises:
            TooManyBadRows: they exceed the limit.
        """
        self.reasons.add(kind, example, rows)
        self.require_few()

    def resume(self, rows: int, aside: int) -> None:
        """Add the progress of others: `aside` of the `rows` applied so far are dead letters."""
        # This process has counted some of them itself, with their reasons.
        if aside > self.reasons.rows:
            self.reasons.add(BEFORE, "", aside - self.reasons.rows)
        self.stored = self.stored or rows > aside

    def require_few(self) -> None:
        """Check the limit of dead letters.

        Raises:
            TooManyBadRows: the epoch has more.
        """
        rows = self.manifest.rows
        if self.reasons.rows > self.most.of(rows):
            raise self._too_many(f"of the {rows:,} rows of epoch {self.manifest.epoch}", rows)

    def end(self) -> None:
        """Check that an epoch without a stored row is not one of many.

        Raises:
            TooManyBadRows: it is one of many: the store has rejected all rows for long.
        """
        aside, before = self.reasons.rows, self.manifest.unstored
        if self.in_doubt:
            about = f"rows of epoch {self.manifest.epoch} and the last {before:,} of earlier epochs"
            raise self._too_many(about, before + aside)

    @property
    def in_doubt(self) -> bool:
        """Whether the store has rejected all rows for so long that the table may be at fault."""
        aside = self.reasons.rows
        since = self.manifest.unstored + aside
        return aside > 0 and not self.stored and since > self.most.of(since)

    @property
    def applied(self) -> Applied:
        """The outcome of the rows."""
        return Applied(self.reasons.rows, self.stored or not self.reasons.rows)

    def warn(self, where: str) -> None:
        """Warn once an epoch of its dead letters.

        `where` names the table or the index of dead letters.
        """
        if self.reasons.rows:
            manifest = self.manifest
            log.warning(
                error_text(
                    f"{self.reasons.rows:,} of {manifest.rows:,} rows of epoch {manifest.epoch} of"
                    f" {manifest.sink} can't be stored, and go to {where}",
                    why=str(self.reasons),
                    todo="correct them and write them again, as docs/dead-letters.md shows",
                )
            )

    def _too_many(self, about: str, rows: int) -> TooManyBadRows:
        return TooManyBadRows(
            f"{self.reasons.rows:,} {about} can't be stored; maxBadRows={self.most} allows"
            f" {self.most.of(rows):,}: {self.reasons}",
            why="if the table, a mapping, a trigger or a pipeline is at fault, the rows are good",
            todo="correct what the reasons name, then restart the query; if the rows are bad,"
            " restart it with a higher maxBadRows, such as 100%",
        )


def require_few(most: MaxBadRows, manifest: Manifest, receipts: Iterable[Receipt]) -> None:
    """Reject an epoch in which tasks found too many bad rows, before the decision.

    Raises:
        BadRow: the bad rows exceed the limit.
    """
    tally = BadRowCounter(most, manifest)
    for receipt in receipts:
        tally.reasons.merge(receipt.bad)
    # Nothing is sent yet: a row that no task rejected counts as stored.
    tally.stored = tally.reasons.rows < manifest.rows
    try:
        tally.require_few()
        tally.end()
    except TooManyBadRows as error:
        what = f"{error.what}. Nothing of the epoch took effect"
        raise BadRow(what, error.why, error.todo) from None
