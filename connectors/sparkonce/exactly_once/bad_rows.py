"""How many rows of an epoch may go into dead letters: one rule for all connectors.

No server says whether a row is bad or the table that it goes to: a partition that is lacking, a
full mapping, a broken trigger refuse good rows one by one. What can be told is how many there are.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from sparkonce.errors import BadRow, SparkonceError, error_text
from sparkonce.protocol import Applied, Manifest, Reasons, Receipt

if TYPE_CHECKING:
    from sparkonce.values.rows import RejectedRow

log = logging.getLogger("sparkonce")

ALWAYS = 10
"""Rows that may go aside whatever the share: a small epoch may have that many by chance."""

KINDS = 8
"""Reasons that are told apart."""

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
        """How many of so many rows may go aside."""
        return max(ALWAYS, int(self.share * rows)) if self.number is None else self.number

    def __str__(self) -> str:
        return self.text


NONE = MaxBadRows("0", 0)
ALL = MaxBadRows("100%", share=Fraction(1))


def max_bad_rows(text: str) -> MaxBadRows:
    """The option as it is written: ``100``, or ``10%``.

    Raises:
        ValueError: it is neither.
    """
    share = re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text)
    if share and Fraction(share[1]) <= 100:
        return MaxBadRows(text, share=Fraction(share[1]) / 100)
    if not re.fullmatch(r"\d+", text):
        raise ValueError("a number of rows such as 100, or a share of an epoch's such as 10%")
    return MaxBadRows(text, int(text))


@dataclass
class Count:
    """Counts rows that can't be stored, by the kind of the reason."""

    kinds: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(rows for rows, _ in self.kinds.values())

    def add(self, kind: str, example: str, rows: int = 1) -> None:
        """Count rows; only the first kinds are told apart."""
        if kind not in self.kinds and len(self.kinds) >= KINDS:
            kind, example = OTHERS, ""
        known, first = self.kinds.get(kind, (0, example[:LONGEST_EXAMPLE]))
        self.kinds[kind] = known + rows, first

    def merge(self, kinds: Reasons) -> None:
        """Count those of others."""
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
    """Why these rows can't be stored."""
    count = Count()
    for one in bad:
        count.add(one.kind, one.reason)
    return count.kinds


class TooManyBadRows(SparkonceError):
    """More rows can't be stored than option ``maxBadRows`` lets go aside."""


class BadRowCounter:
    """The rows of one epoch that can't be stored.

    Args:
        most: how many may go aside.
        manifest: of the epoch.

    Attributes:
        stored: whether the store took any row.
    """

    def __init__(self, most: MaxBadRows, manifest: Manifest) -> None:
        self.most, self.manifest, self.reasons = most, manifest, Count()
        self.stored = False

    def add(self, kind: str, example: str, rows: int = 1) -> None:
        """Count rows that are about to go aside.

        Raises:
            TooManyBadRows: they must not.
        """
        self.reasons.add(kind, example, rows)
        self.require_few()

    def resume(self, rows: int, aside: int) -> None:
        """Count what others did, too: of so many rows that are applied, so many went aside."""
        # Some of them this process has counted itself, with their reasons.
        if aside > self.reasons.rows:
            self.reasons.add(BEFORE, "", aside - self.reasons.rows)
        self.stored = self.stored or rows > aside

    def require_few(self) -> None:
        """Let no more rows go aside than may.

        Raises:
            TooManyBadRows: there are more.
        """
        rows = self.manifest.rows
        if self.reasons.rows > self.most.of(rows):
            raise self._too_many(f"of {rows:,} of epoch {self.manifest.epoch}", rows)

    def end(self) -> None:
        """See that an epoch of which no row is stored is not one of many.

        Raises:
            TooManyBadRows: it is: no row has been stored for long.
        """
        aside, before = self.reasons.rows, self.manifest.unstored
        if self.in_doubt:
            about = f"of epoch {self.manifest.epoch}, behind {before:,} in epochs before it,"
            raise self._too_many(f"{about} of which none was stored,", before + aside)

    @property
    def in_doubt(self) -> bool:
        """Whether no row has been stored for so long that the table may be at fault."""
        aside = self.reasons.rows
        since = self.manifest.unstored + aside
        return aside > 0 and not self.stored and since > self.most.of(since)

    @property
    def applied(self) -> Applied:
        """What became of the rows."""
        return Applied(self.reasons.rows, self.stored or not self.reasons.rows)

    def warn(self, where: str) -> None:
        """Say once an epoch what has gone aside.

        `where` is, in words, the table or the index of dead letters.
        """
        if self.reasons.rows:
            manifest = self.manifest
            log.warning(
                error_text(
                    f"{self.reasons.rows:,} of {manifest.rows:,} rows of epoch {manifest.epoch} of"
                    f" {manifest.sink} can't be stored, and go to {where}",
                    why=str(self.reasons),
                    todo="mend them and write them again, as docs/dead-letters.md shows",
                )
            )

    def _too_many(self, about: str, rows: int) -> TooManyBadRows:
        return TooManyBadRows(
            f"{self.reasons.rows:,} rows {about} can't be stored, and maxBadRows={self.most} lets"
            f" {self.most.of(rows):,} go into dead letters: {self.reasons}",
            why="if the table, a mapping, a trigger or a pipeline is at fault, they are good rows",
            todo="mend what the reasons name, then restart the query; if the rows are bad, restart"
            " it with a higher maxBadRows, such as 100%",
        )


def require_few(most: MaxBadRows, manifest: Manifest, receipts: Iterable[Receipt]) -> None:
    """Refuse an epoch of which tasks found too many bad rows, before it is decided.

    Raises:
        BadRow: they did.
    """
    tally = BadRowCounter(most, manifest)
    for receipt in receipts:
        tally.reasons.merge(receipt.bad)
    # Nothing is sent yet: rows that no task refused are taken for rows that will be stored.
    tally.stored = tally.reasons.rows < manifest.rows
    try:
        tally.require_few()
        tally.end()
    except TooManyBadRows as error:
        what = f"{error.what}. Nothing of the epoch took effect"
        raise BadRow(what, error.why, error.todo) from None
