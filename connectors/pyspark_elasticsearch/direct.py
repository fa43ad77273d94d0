"""Option ``write=direct``: tasks send their rows themselves.

The version of a row is the fence of its epoch, and its place in the epoch: partition and block. It
follows from the rows of the epoch alone, so whoever sends a row, and however often and late, a
document ends with the last row of its key.
"""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch.client import Cluster
from pyspark_elasticsearch.dead_letters import Addressed, DeadLetters, Verdict, of_lines, of_refusal
from pyspark_elasticsearch.encoder import OWN_VERSION, ChunkEncoder
from pyspark_elasticsearch.errand import Errand
from pyspark_elasticsearch.failures import advice
from pyspark_elasticsearch.keys import numbers
from pyspark_elasticsearch.records import Aim, Records
from pyspark_elasticsearch.sending import ORDINAL_BITS, Refusal, Sender, Superseded
from sparkonce.errors import BadRow, StoreRefused
from sparkonce.ledger import from_record
from sparkonce.protocol import BLOCK, Plan, Task
from sparkonce.rows import Bad, all_bytes, naming, sorted_out

PARTITION_BITS, BLOCK_BITS = 13, 15
FENCES = 1 << PARTITION_BITS + BLOCK_BITS - ORDINAL_BITS
"""Fences that an epoch takes, for all its partitions and blocks."""

OUTCOME = "nothing of the epoch is decided; a restarted query writes its rows again"


class ElasticsearchOutlet:
    """See `sparkonce.protocol.Outlet`.

    Args:
        cluster: where.
        records: holds the ledger.
        task: whose rows they are.
        plan: of the sink.
        aim: of the task's epoch.
        on_conflict: what to do about a version that is not ours: ``fail`` or ``ignore``.
        aside: takes the rows that can't be stored; None if one of them fails the task.
    """

    def __init__(
        self,
        cluster: Cluster,
        records: Records,
        task: Task,
        plan: Plan,
        aim: Aim,
        on_conflict: str,
        aside: DeadLetters | None,
    ) -> None:
        if task.partition >> PARTITION_BITS:
            raise _too_many(f"partition {task.partition:,}", "use fewer partitions")
        self.width = cluster.parallelism
        self.records, self.task, self.aside = records, task, aside
        self.index = aim.index or plan.detail["index"]
        self.encode = ChunkEncoder(plan.detail)
        self._lines = naming(self.encode.lines, plan.key)
        self.lowest = (aim.fence << ORDINAL_BITS) + (task.partition << BLOCK_BITS)
        errand = Errand(
            task.epoch, plan.detail, aim, aim.index or plan.target, OUTCOME, self._is_overtaken
        )
        self.sender = Sender(cluster, records, errand, on_conflict)

    def put(self, first: int, rows: pa.RecordBatch) -> None:
        """See `Outlet.put`."""
        if (first + len(rows) - 1) // BLOCK >> BLOCK_BITS:
            most = BLOCK << BLOCK_BITS
            raise _too_many(f"more than {most:,} rows in a partition", "use more partitions")
        bad: list[Bad] = []
        if self.aside is not None:
            _, bad = sorted_out(rows, self.encode.lines, first)
        texts = self._lines(self._with_versions(first, rows, bad)).texts
        lines = bytes(all_bytes(texts))
        refused = self._sent(lines, len(texts))
        for one in refused:
            if self.aside is None or one.is_conflict:
                raise self._refusal(one)
        self._put_aside(bad, refused)

    def _with_versions(self, first: int, rows: pa.RecordBatch, bad: list[Bad]) -> pa.RecordBatch:
        at = pc.add(numbers(len(rows)), first)
        versions = pc.add(pc.divide(at, BLOCK), self.lowest).cast(pa.string())
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        numbered = pa.record_batch({**columns, OWN_VERSION: versions})
        if not bad:
            return numbered
        wrong = pc.is_in(at, value_set=pa.array([one.number for one in bad], pa.int64()))
        return numbered.filter(pc.invert(wrong))

    def _sent(self, lines: bytes, count: int) -> list[Refusal]:
        try:
            return self.sender.send(lines, count)
        except Superseded:
            raise StoreRefused(
                f"Epoch {self.task.epoch} was decided while a task still wrote it",
                why="another driver runs the same checkpoint, or this task was given up",
                todo="nothing, if the query goes on; else stop one of the drivers",
            ) from None

    def _is_overtaken(self) -> bool:
        ledger, task = from_record(self.records.read(self.task.sink)), self.task
        return ledger is not None and (
            ledger.has_decided(task.query_id, task.epoch) or ledger.retires(task.query_id)
        )

    # -- rows that can't be stored

    def _put_aside(self, bad: list[Bad], refused: list[Refusal]) -> None:
        """Name letters by what they are about, so that another attempt writes none anew."""
        task = self.task
        of_rows = {
            self._named(f"{task.epoch}/{task.partition}/{one.number}"): Addressed(
                Verdict(self.index, "", one.reason), self.encode.letter(one)
            )
            for one in bad
        }
        of_operations = {
            self._named(f"{task.epoch}\n{one.operation.lines.decode()}"): self._letter(one)
            for one in refused
        }
        named = of_rows | of_operations
        if named and self.aside is not None:
            self.aside.write(task.sink, task.epoch, task.partition, named)

    def _letter(self, one: Refusal) -> Addressed:
        verdict = of_refusal(one, self.index).cut(1)
        lines = one.operation.lines
        return Addressed(verdict, of_lines(verdict.reason, lines, self.encode.detail))

    def _named(self, row: str) -> str:
        about = "\n".join([self.task.sink, self.task.query_id, row])
        return hashlib.sha256(about.encode()).hexdigest()[:40]

    def _refusal(self, one: Refusal) -> BadRow:
        letter = of_refusal(one, self.index)
        why, todo = advice(one.item.status, one.item.error)
        return BadRow(
            f"Elasticsearch refused the row with id {letter.id!r} of index {letter.place}:"
            f" {letter.reason}. Epoch {self.task.epoch} is not decided; other rows of it may have"
            " taken effect",
            why,
            f"{todo}; then restart the query, which writes the epoch again",
        )


def _too_many(what: str, instead: str) -> StoreRefused:
    return StoreRefused(
        f"An epoch has {what}",
        why="with write=direct a document's version has no room for that",
        todo=f"{instead} before the sink, limit what a trigger reads, or set option write=logged",
    )
