"""One running check of a source: the appended rows, the query, and its deliveries."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

from sparkonce.spark import features
from sparkonce.tck.spark.query import FollowedQuery, Shape
from sparkonce.tck.spark.records import Records, views
from sparkonce.tck.spark.remote import RemoteDriver
from sparkonce.tck.spark.source import StreamingSource
from sparkonce.tck.spark.trial import QueryFailed, Repeated, WrongDoing

SOME = 40
SOON, QUIET = 20.0, 5.0
"""Seconds within which a query must act: one that starts, and one that runs."""
AT_LAST = 90.0
"""Seconds after which a query that should end never will, on any busy machine."""


class SourceTrial(Repeated):
    """A query over a source, run again and again."""

    def __init__(self, source: StreamingSource, home: Path, tag: str) -> None:
        self.source, self.home, self.tag = source, home, tag
        self.options = dict(source.options)
        self.sent: list[str] = []
        self._changed = Counter[str]()
        self._made = self._begun = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Let the next run be that of a new query."""
        self._begun += 1
        home = self.home / str(self._begun)
        self.records = Records(home / "records")
        super().__init__(home / "checkpoint")

    # -- the store

    def append(self, rows: int = SOME) -> list[str]:
        """Append this number of new rows, each of which the query must deliver once."""
        ids = self.new(rows)
        self.sent += ids
        self.source.append(ids)
        return ids

    def change(self, ids: Sequence[str]) -> None:
        """Write rows again, if the subject can; the query must deliver each once more."""
        if self.source.change is not None:
            self._changed.update(ids)
            self.source.change(ids)

    def lose(self, ids: Sequence[str]) -> None:
        """Make rows vanish."""
        assert self.source.lose is not None  # noqa: S101
        self.source.lose(ids)

    def fall_back(self, ids: Sequence[str]) -> None:
        """Make the newest rows vanish."""
        assert self.source.fall_back is not None  # noqa: S101
        self.source.fall_back(ids)

    def new(self, rows: int) -> list[str]:
        """Ids that no other row has."""
        self._made += rows
        return [f"{self.tag}-{one:06d}" for one in range(self._made - rows, self._made)]

    @contextmanager
    def trickle(self, pause: float = 0.0) -> Iterator[list[str]]:
        """Append row after row in this block; yields the ids of the stored rows."""
        done, ended = list[str](), Event()

        def append() -> None:
            while not ended.wait(pause):
                ids = self.new(1)
                self.source.append(ids)
                done.extend(ids)

        with ThreadPoolExecutor(1) as pool:
            appending = pool.submit(append)
            try:
                yield done
            finally:
                ended.set()
            appending.result()

    # -- the query

    def query(self, shape: Shape | None = None) -> FollowedQuery:  # noqa: ARG002 (of sinks alone)
        """The query that ends after the rows that exist at its start."""
        return self._query(ends=True)

    def endless(self) -> FollowedQuery:
        """The query that runs until it is stopped."""
        return self._query(ends=False)

    def _query(self, *, ends: bool) -> FollowedQuery:
        source = self.source
        return FollowedQuery(
            checkpoint=str(self.checkpoint),
            records=str(self.records.home),
            format=source.format,
            options=self.options,
            attach=source.attach,
            schema=source.schema,
            column=source.column,
            ends=ends,
        )

    def run(self, driver: RemoteDriver, shape: Shape | None = None) -> None:
        """See `Repeated.run`. Before 4.2 it is one epoch of a source in Python, or a replay."""
        replays = self.in_mid_epoch
        super().run(driver, shape)
        if replays and features.limits is None and not self.source.jvm:
            super().run(driver, shape)

    def await_rows(self, driver: RemoteDriver) -> bool:
        """Wait for all rows; False if some are missing and no epoch is running.

        Raises:
            QueryFailed: the query ended instead.
        """
        wanted, begun, deadline = set(self.sent), self.noted("offsets"), time.monotonic() + SOON
        while not wanted <= self.records.ids() or self.in_mid_epoch:
            status = driver.wait()
            if not status.running:
                raise QueryFailed(status.error or "it ended by itself")
            if self.in_mid_epoch or self.noted("offsets") > begun:
                begun, deadline = self.noted("offsets"), time.monotonic() + QUIET
            if time.monotonic() > deadline:
                return False
        return True

    def await_epoch(self, driver: RemoteDriver) -> None:
        """Wait until the query has committed an epoch, or has ended."""
        while not self.noted("commits") and driver.wait().running:
            pass

    def stop(self, driver: RemoteDriver) -> None:
        """Stop the query.

        Raises:
            WrongDoing: that takes too long.
            QueryFailed: it had failed.
        """
        began = time.monotonic()
        self.ended(driver.stop())
        if (took := time.monotonic() - began) > SOON:
            raise WrongDoing(f"it took {took:.0f} s to stop the query")

    def found(self) -> Counter[str]:
        """How often each row took effect, without its changes; the worse of two sinks."""
        both = views(self.records.deliveries())
        rows = both[0] | both[1]
        return Counter(
            {
                row: max((self._but_for_changes(row, one) for one in both), key=_wrong)
                for row in rows
            }
        )

    def _but_for_changes(self, row: str, view: Counter[str]) -> int:
        """Count a changed row once if the store keeps only its newest change."""
        times, changes = view[row], self._changed[row]
        return max(min(times, 1), times - changes) if self.source.newest else times - changes


def _wrong(times: int) -> int:
    return abs(times - 1)
