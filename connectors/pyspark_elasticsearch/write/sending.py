"""Sends the operations of one decision until each is done or refused."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from typing import NamedTuple

from pyspark_elasticsearch.journal.records import Destination, LedgerRecords
from pyspark_elasticsearch.server import bulk, failures
from pyspark_elasticsearch.server.bulk import Operation, numbered
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import classify, message, of_answer
from pyspark_elasticsearch.target.placement import PlacementCheck, StreamResender
from pyspark_elasticsearch.write.documents import Documents, RowGuard
from sparkonce.delivery import DecisionOver
from sparkonce.errors import RESTART, FailureKind, StoreRefused, StoreUnsafe
from sparkonce.protocol import Manifest
from sparkonce.store import Patience

log = logging.getLogger("sparkonce")

ORDINAL_BITS = 20
"""Of a version: the others are the fence. So a later decision's, and a later chunk's, is higher."""

PAUSE = 5.0  # seconds after which a driver may have been overtaken: it looks at the ledger again
WAITS = 5  # refusals for now (429) of a whole request after which it is cut in two
SKEW = 60_000  # milliseconds by which clocks of drivers with different counters may differ

LARGEST_REQUEST = 32 * 1024 * 1024
_CURRENT, _PROVIDED = re.compile(r"current version \[(\d+)\]"), re.compile(r"provided \[(\d+)\]")
FENCES = 1 << 60
"""Versions from here on are fences, or a column's that counts nanoseconds since 1970."""


class RefusedDocument(NamedTuple):
    """An operation that can't be done, and the answer that says so."""

    operation: Operation
    item: bulk.Item

    @property
    def is_conflict(self) -> bool:
        """Whether it is no fault of the row: the document has a version of another writer."""
        return self.item.status == 409

    @property
    def reason(self) -> str:
        """What a dead letter says of it."""
        return f"{self.item.status} {message(self.item.error)}"


class Sender:
    """Sends the rows of one epoch by bulk requests; it may be used by several threads.

    Args:
        fresh_until: by `time.monotonic()`, until when nothing of it was sent by others.
        has_pipelines: whether rows go through ingest pipelines, as far as it is known.
    """

    def __init__(
        self,
        cluster: Cluster,
        records: LedgerRecords,
        manifest: Manifest,
        documents: Documents,
        to: Destination,
        fresh_until: float = 0.0,
        *,
        has_pipelines: bool = False,
    ) -> None:
        self.cluster, self.records, self.manifest = cluster, records, manifest
        self.documents, self.to, self.fresh_until = documents, to, fresh_until
        self.target = path(to.index, "_bulk") if to.index else "/_bulk"
        self.params = {"pipeline": documents.pipeline} if documents.pipeline else {}
        # Of indices that each row names nobody knows their pipelines.
        ids = has_pipelines or not (to.index or documents.mode.verb == "delete")
        self.check = PlacementCheck(cluster, to.index, ids=ids) if ids or to.since else None
        if self.check:
            self.params |= self.check.asked
        # Elsewhere a row that is sent again finds itself there, by its id and version.
        self.resender = StreamResender(cluster, to.index, to.since) if to.since else None
        self.waits = Patience(first=0.05, longest=2.0)
        self._looked = time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether nothing of it can have been sent before: nobody has taken it over by now."""
        return time.monotonic() < self.fresh_until

    def send(self, lines: bytes, count: int) -> list[RefusedDocument]:
        """Send all lines at once, and what is not settled then by itself.

        Raises `DecisionOver` once the decision is no longer the ledger's.
        """
        if not count:
            return []
        answer = None
        # Rows of a data stream that may be there already go by `settle`, which looks them up.
        if len(lines) <= LARGEST_REQUEST and (self.fresh or not self.resender):
            self._look()
            answer = self._posted(lines, count)
            if bulk.all_done(answer):
                return []
        return self.settle(numbered(lines), answer)

    def settle(
        self,
        pending: list[Operation],
        answer: list[bulk.Item] | None = None,
        tried: int = 0,
        until: float = 0.0,
    ) -> list[RefusedDocument]:
        """Send operations until each is done or refused.

        The `answer` is to all of them, if they were sent; they were `tried` so often in vain. By
        `time.monotonic()` it gives up after `until`; by default after the timeout.
        """
        refused: list[RefusedDocument] = []
        deadline = until or time.monotonic() + self.cluster.timeout
        while pending:
            if answer is None:
                answer = self._try(pending, again=tried > 0 or not self.fresh)
            if len(pending) > 1 and any(item.status == 413 for item in answer):
                return refused + self._halves(pending, tried)
            busy, bad = self._sorted(pending, answer)
            refused += bad
            if busy and time.monotonic() > deadline:
                raise self._still_busy(busy)
            if busy:
                tried += 1
                time.sleep(self.waits.wait(tried))
            # A circuit breaker, or a limit on what is being indexed, refuses a request that is
            # larger than all of its room each time, in words that mean "later" where it is full.
            full = len(pending) == len(busy) > 1 and all(one.item.status == 429 for one in busy)
            if full and tried > WAITS:
                return refused + self._halves(pending, tried, deadline)
            pending, answer = [one.operation for one in busy], None
        return refused

    def _try(self, pending: Sequence[Operation], *, again: bool) -> list[bulk.Item]:
        lines = [one.lines for one in pending]
        if len(lines) > 1 and sum(map(len, lines)) > LARGEST_REQUEST:
            return [bulk.Item(413, None)] * len(lines)
        self._look()
        if again and self.resender is not None:
            return self.resender.send(lines, self._post)
        return self._post(lines)

    def _post(self, lines: Sequence[bytes]) -> list[bulk.Item]:
        return self._posted(b"".join(lines), len(lines))

    def _posted(self, lines: bytes, count: int) -> list[bulk.Item]:
        answer = bulk.send(self.cluster, "writing rows", self.target, lines, count, self.params)
        if self.check is not None:
            self.check.require_kept(lines, answer)
        return answer

    def _halves(
        self, pending: list[Operation], tried: int, until: float = 0.0
    ) -> list[RefusedDocument]:
        """Send each half by itself; once the first was taken, the other has all its time anew."""
        middle = len(pending) // 2
        refused = self.settle(pending[:middle], tried=tried, until=until)
        return refused + self.settle(pending[middle:], tried=tried)

    def _sorted(
        self, pending: Sequence[Operation], answer: list[bulk.Item]
    ) -> tuple[list[RefusedDocument], list[RefusedDocument]]:
        """Those to be sent again, and those that are refused."""
        busy, bad, elsewhere = [], [], 0
        conflicts = any(item.status == 409 for item in answer)
        # Read behind the answer: a fence is drawn before any document has it.
        counter = self.to.index or self.manifest.target
        drawn = self.records.last_drawn(counter) if conflicts else 0
        for operation, item in zip(pending, answer, strict=True):
            done = item.done or self._is_nowhere(operation, item)
            kind = None if done else classify(item.status, item.error).kind
            if kind is FailureKind.CONFLICT:
                kind = self._of_conflict(item, drawn)
                elsewhere += kind is None and _fence_of(item) > drawn and self.documents.is_fenced
            if kind is FailureKind.INDEX and self.documents.parts:
                kind = FailureKind.ROW  # its row has named it; the others go on
            if kind in (FailureKind.PASSING, FailureKind.LOST):
                busy.append(RefusedDocument(operation, item))
            elif kind in (FailureKind.ROW, FailureKind.CONFLICT, FailureKind.TOO_LARGE):
                bad.append(RefusedDocument(operation, item))
            elif kind is not None:
                raise self._stop(kind, item)
        if elsewhere:
            log.warning(
                "%s: %d documents have versions of another counter (indexPrefix, or a template),"
                " and are taken for written later",
                self._doing,
                elsewhere,
            )
        return busy, bad

    def _is_nowhere(self, operation: Operation, item: bulk.Item) -> bool:
        """Whether it deletes from an index that its row names, and that is not there."""
        if not self.documents.parts or not operation.lines.startswith(b'{"delete"'):
            return False
        return item.status == 404 and item.error.get("type") == "index_not_found_exception"

    def _of_conflict(self, item: bulk.Item, drawn: int) -> FailureKind | None:
        """What a conflict asks for; None if it says that there is nothing to do.

        A document made by `create` has an id made from its chunk, so it was this very row. With
        versions of a column a higher one has won, unless it is a fence: the document was written
        without that column. Fences are the time, or a little more where they are drawn faster: a
        version up to the last one drawn, or up to the time, is a later chunk's or a later
        decision's, and one beyond is somebody else's.
        """
        if self.documents.mode.guard is RowGuard.SCRIPT:
            # The document changed between the script's read and write; its guard bears another try.
            return FailureKind.PASSING
        if not self.documents.is_fenced:
            of_fences = _version(_CURRENT, item) >= FENCES > _version(_PROVIDED, item)
            return FailureKind.CONFLICT if self.documents.order and of_fences else None
        latest = max(drawn, time.time_ns() // 1_000_000 + SKEW)
        return None if self.to.fence <= _fence_of(item) <= latest else FailureKind.CONFLICT

    def _look(self) -> None:
        """See that no other has overtaken this one while it slept."""
        if time.monotonic() - self._looked < PAUSE:
            return
        if self.records.is_over(self.manifest):
            raise DecisionOver
        self._looked = time.monotonic()

    @property
    def _doing(self) -> str:
        return f"writing epoch {self.manifest.epoch} to {self.documents.index}"

    def _stop(self, kind: FailureKind, item: bulk.Item) -> Exception:
        """What ends the sending. Of a later decision that a document has seen the ledger knows."""
        if kind is not FailureKind.LATE:
            return of_answer(item.status, item.error, self._doing)
        if self.records.is_over(self.manifest):
            return DecisionOver()
        return StoreUnsafe(
            f"Elasticsearch holds later changes than fence {self.to.fence} of this sink,"
            f" while {self._doing}, and the ledger knows of none: {message(item.error)}",
            failures.LATE.why,
            f"{failures.LATE.todo}, take the later guards off (docs/elasticsearch.md,"
            f' "The guard"), {RESTART}',
        )

    def _still_busy(self, busy: list[RefusedDocument]) -> StoreRefused:
        # A conflict of scripts settles itself; what else there is keeps the others waiting.
        item = min((one.item for one in busy), key=lambda one: one.status == 409)
        known = classify(item.status, item.error)
        return StoreRefused(
            f"Elasticsearch took {len(busy):,} rows of epoch {self.manifest.epoch} not within"
            f" {self.cluster.timeout:g} s: {item.status} {message(item.error)}",
            known.why or failures.BY_STATUS[429].why,
            f"{known.todo}, or raise option timeout; the epoch stays decided, and a restarted query"
            " goes on where it stopped",
        )


def _fence_of(item: bulk.Item) -> int:
    """Of the version that a document has, as a conflict tells it; -1 if it does not."""
    return _version(_CURRENT, item) >> ORDINAL_BITS


def _version(which: re.Pattern[str], item: bulk.Item) -> int:
    found = which.search(str(item.error.get("reason", "")))
    return int(found[1]) if found else -1
