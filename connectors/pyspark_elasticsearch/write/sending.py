"""Sends the operations of one decision until each is done or rejected."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence

from pyspark_elasticsearch.journal.records import Destination, LedgerRecords
from pyspark_elasticsearch.server import bulk, failures
from pyspark_elasticsearch.server.bulk import Operation, numbered
from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.failures import classify, message
from pyspark_elasticsearch.target.placement import PlacementCheck, StreamResender
from pyspark_elasticsearch.write.documents import Documents, RowGuard
from pyspark_elasticsearch.write.proof import RefusedDocument, RowProof
from sparkonce.delivery import DecisionOver
from sparkonce.errors import RESTART, FailureKind, StoreRefused, StoreUnsafe
from sparkonce.protocol import Manifest
from sparkonce.store import Patience

log = logging.getLogger("sparkonce")

ORDINAL_BITS = 20
"""Low bits of a version, above them the fence: later decisions and chunks have higher versions."""

PAUSE = 5.0  # seconds after which a driver reads the ledger again: another may have taken over
WAITS = 5  # temporary rejections (429) of a whole request before it is halved
SKEW = 60_000  # milliseconds by which clocks of drivers with different counters may differ

LARGEST_REQUEST = 32 * 1024 * 1024
_CURRENT, _PROVIDED = re.compile(r"current version \[(\d+)\]"), re.compile(r"provided \[(\d+)\]")
FENCES = 1 << 60
"""From here on, versions are fences, or values of a column in nanoseconds since 1970."""


class Sender:
    """Sends the rows of one epoch by bulk requests, also from several threads.

    Args:
        fresh_until: until then, by `time.monotonic()`, no other driver has sent any of its rows.
        has_pipelines: whether rows pass through known ingest pipelines.
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
        self.proof = RowProof(cluster, self.target, to.index, {**self.params})
        # If each row names its index, the pipelines are unknown.
        ids = has_pipelines or not (to.index or documents.mode.verb == "delete")
        self.check = PlacementCheck(cluster, to.index, ids=ids) if ids or to.since else None
        if self.check:
            self.params |= self.check.asked
        # In other targets a repeated row finds its first copy by id and version.
        self.resender = (
            StreamResender(cluster, to.index, to.since, self.proof.drops_fields)
            if to.since
            else None
        )
        self.waits = Patience(first=0.05, longest=2.0)
        self._looked = time.monotonic()

    @property
    def fresh(self) -> bool:
        """Whether none of its rows can have been sent: no other driver can have taken over."""
        return time.monotonic() < self.fresh_until

    def send(self, lines: bytes, count: int) -> list[RefusedDocument]:
        """Send all lines in one request, and unsettled ones again.

        Raises `DecisionOver` once the ledger has another decision.
        """
        if not count:
            return []
        answer = None
        # Rows of a data stream that may be stored already go to `settle`, which looks them up.
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
        """Send operations until each is done or rejected.

        Args:
            pending: the operations.
            answer: the answer to all of them, if they were sent.
            tried: the number of failed tries.
            until: when to give up, by `time.monotonic()`; by default after the timeout.
        """
        refused: list[RefusedDocument] = []
        deadline = until or time.monotonic() + self.cluster.timeout
        while pending:
            if answer is None:
                answer = self._try(pending, again=tried > 0 or not self.fresh)
            if len(pending) > 1 and any(item.status == 413 for item in answer):
                return refused + self._halves(pending, tried)
            busy, bad, shown = self._sorted(pending, answer)
            busy += self._unproven(shown)
            refused += bad
            if busy and time.monotonic() > deadline:
                raise self._still_busy(busy)
            if busy:
                tried += 1
                time.sleep(self.waits.wait(tried))
            # A circuit breaker, or a limit of indexing, always rejects a request that exceeds its
            # limit, with the same answer as when it is only full.
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
        """Send each half by itself; after the first one, the other has the full timeout again."""
        middle = len(pending) // 2
        refused = self.settle(pending[:middle], tried=tried, until=until)
        return refused + self.settle(pending[middle:], tried=tried)

    def _sorted(
        self, pending: Sequence[Operation], answer: list[bulk.Item]
    ) -> tuple[list[RefusedDocument], list[RefusedDocument], list[RefusedDocument]]:
        """The operations to send again, the rejected ones, and those that an earlier try wrote."""
        busy, bad, shown, elsewhere = [], [], [], 0
        conflicts = any(item.status == 409 for item in answer)
        # Read after the answer: a fence is drawn before any document has it.
        counter = self.to.index or self.manifest.target
        drawn = self.records.last_drawn(counter) if conflicts else 0
        for operation, item in zip(pending, answer, strict=True):
            done = item.done or self._is_nowhere(operation, item)
            kind = None if done else classify(item.status, item.error).kind
            if kind is FailureKind.CONFLICT:
                kind = self._of_conflict(item, drawn)
                elsewhere += kind is None and _fence_of(item) > drawn and self.documents.is_fenced
                shown += [RefusedDocument(operation, item)] if kind is None else []
            if kind is FailureKind.INDEX and self.documents.parts:
                kind = FailureKind.ROW  # its row has named the index; other rows continue
            if kind in (FailureKind.PASSING, FailureKind.LOST):
                busy.append(RefusedDocument(operation, item))
            elif kind in (FailureKind.ROW, FailureKind.CONFLICT, FailureKind.TOO_LARGE):
                bad.append(RefusedDocument(operation, item))
            elif kind is not None:
                raise self._stop(kind, item)
        if elsewhere:
            log.warning(
                "%s: %d documents have versions of another counter (indexPrefix, or a template),"
                " and count as written later",
                self._doing,
                elsewhere,
            )
        return busy, bad, shown

    def _unproven(self, shown: list[RefusedDocument]) -> list[RefusedDocument]:
        """Conflicts of which it is open whether all copies have the row."""
        if self.documents.order:
            return self.proof.of_versions(
                [one for one in shown if _version(_CURRENT, one.item) == _provided(one.item)]
            )
        if self.documents.mode.guard is RowGuard.ID:
            return self.proof.of_creations(shown)
        return []  # a later chunk wrote the document, and proves its own rows

    def _is_nowhere(self, operation: Operation, item: bulk.Item) -> bool:
        """Whether it deletes from a missing index that its row names."""
        if not self.documents.parts or not operation.lines.startswith(b'{"delete"'):
            return False
        return item.status == 404 and item.error.get("type") == "index_not_found_exception"

    def _of_conflict(self, item: bulk.Item, drawn: int) -> FailureKind | None:
        """Classify a conflict; None if nothing is left to do.

        A document of `create` has an id from its chunk, so it is this very row. With versions of a
        column the higher one wins, unless it is a fence: then a query wrote the document without
        that column. A fence is the time, or slightly more if draws are faster. So a version up to
        the last fence drawn, or up to the time, belongs to a later chunk or decision. A higher one
        belongs to another writer.
        """
        if self.documents.mode.guard is RowGuard.SCRIPT:
            # The document changed between the script's read and write; its guard permits a retry.
            return FailureKind.PASSING
        if not self.documents.is_fenced:
            of_fences = _version(_CURRENT, item) >= FENCES > _provided(item)
            return FailureKind.CONFLICT if self.documents.order and of_fences else None
        latest = max(drawn, time.time_ns() // 1_000_000 + SKEW)
        return None if self.to.fence <= _fence_of(item) <= latest else FailureKind.CONFLICT

    def _look(self) -> None:
        """Raise `DecisionOver` if another driver took over while this one slept."""
        if time.monotonic() - self._looked < PAUSE:
            return
        if self.records.is_over(self.manifest):
            raise DecisionOver
        self._looked = time.monotonic()

    @property
    def _doing(self) -> str:
        return f"writing epoch {self.manifest.epoch} to {self.documents.index}"

    def _stop(self, kind: FailureKind, item: bulk.Item) -> Exception:
        """The error that ends the sending. The ledger knows a later decision, if there is one."""
        if kind is not FailureKind.LATE:
            return self.cluster.error_of(item.status, item.error, self._doing)
        if self.records.is_over(self.manifest):
            return DecisionOver()
        return StoreUnsafe(
            f"The cluster has later changes than fence {self.to.fence} of this sink,"
            f" while {self._doing}, and the ledger has none: {message(item.error)}",
            failures.LATE.why,
            f"{failures.LATE.todo}, remove the later guards (docs/elasticsearch.md,"
            f' "The guard"), {RESTART}',
        )

    def _still_busy(self, busy: list[RefusedDocument]) -> StoreRefused:
        # Conflicts of scripts settle themselves; prefer another reason.
        item = min((one.item for one in busy), key=lambda one: one.status == 409)
        known = classify(item.status, item.error)
        return StoreRefused(
            f"The cluster did not accept {len(busy):,} rows of epoch {self.manifest.epoch} within"
            f" {self.cluster.timeout:g} s: {item.status} {message(item.error)}",
            known.why or failures.BY_STATUS[429].why,
            f"{known.todo}, or raise option timeout; the epoch stays decided, and a restarted query"
            " resumes where it stopped",
        )


def _fence_of(item: bulk.Item) -> int:
    """The fence in a document's version, from a conflict; -1 if the conflict has none."""
    return _version(_CURRENT, item) >> ORDINAL_BITS


def _provided(item: bulk.Item) -> int:
    return _version(_PROVIDED, item)


def _version(which: re.Pattern[str], item: bulk.Item) -> int:
    found = which.search(str(item.error.get("reason", "")))
    return int(found[1]) if found else -1
