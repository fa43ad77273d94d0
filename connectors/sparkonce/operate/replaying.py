"""Dead letters written again into a sink, each once, without Spark.

A batch of letters is an epoch of a writer that is named by their box. What it has read, and the
ledger keeps beside the decision, are their ids: who comes back after a crash deletes those first.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import pyarrow as pa

from sparkonce.errors import BadRow, CheckpointDiverged, ConcurrentDriver
from sparkonce.exactly_once.guards import Driver
from sparkonce.exactly_once.ledger import Ledger, new_token, sink_name
from sparkonce.exactly_once.offsets import Offsets
from sparkonce.letterbox import Letterbox, StoredLetter
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.origin import Follows
from sparkonce.protocol import Advance, Task, attempt_of, digest
from sparkonce.sink import Sink
from sparkonce.values import restored

MOST = 500
"""Letters of a batch."""


class Replay:
    """Writes the letters of one sink again.

    Args:
        box: in which they are.
        whose: name of the sink.
        into: where their rows go.
        schema: of the query that wrote them.
        lacking: see `restored.batch`.
        without: see `restored.batch`.
    """

    def __init__(
        self,
        box: Letterbox,
        whose: str,
        into: Sink,
        schema: pa.Schema,
        lacking: Collection[str] = (),
        without: Collection[str] = (),
    ) -> None:
        self.box, self.whose, self.into = box, whose, into.check()
        self.schema, self.lacking, self.without = schema, lacking, without
        self.writer = f"letters-{digest(json.dumps([box.name, whose]))}"
        target = self.into.plan.target
        self.name = sink_name(self.into.sink_id or self.writer, target)
        self.admin = Admin(self.into.store)

    def run(self, advance: Advance) -> None:
        """Write all letters that are there, and delete them.

        Args:
            advance: told how many letters were written.

        Raises:
            BadRow: one can't be read, or can't be stored yet; nothing of its batch took effect.
            ConcurrentDriver: somebody else replays these letters.
        """
        for sink in self.admin.sinks():  # into whichever target
            if sink.ledger is not None and sink.ledger.query_id == self.writer:
                self._finish(sink)
        left = sum(kind.letters for kind in self.box.kinds() if kind.sink == self.whose)
        # Not more than there were: some may come back as new letters.
        while left > 0:
            # Before letters are read: what somebody else decides later has this number, too, so
            # that one of both commits is refused, or skips the same letters.
            number = self._finish(self.admin.sink(self.name))
            letters = self.box.read(self.whose, min(MOST, left))
            if not letters:
                break
            self._write(number, letters)
            left -= len(letters)
            advance(len(letters))

    def _finish(self, sink: SinkStatus) -> int:
        """Apply and delete what was decided; the number of the next batch."""
        ledger = self.admin.recover(sink)
        if ledger is None:
            return 0
        read = self.admin.offsets(ledger).get(ledger.epoch)
        if read is not None:
            self.box.drop({(id_, at) for id_, at in json.loads(read.text)})
        return ledger.epoch + 1

    def _write(self, number: int, letters: Sequence[StoredLetter]) -> None:
        named = sorted((one.id, one.at) for one in letters)
        try:
            self._commit(number, self._rows(letters), Offsets(json.dumps(named).encode()))
        except CheckpointDiverged:
            raise _rival(self.whose) from None
        self.box.drop(named)

    def _rows(self, letters: Sequence[StoredLetter]) -> pa.RecordBatch:
        try:
            rows = [(one.row, one.base64) for one in letters]
            return restored.batch(rows, self.schema, self.lacking, self.without)
        except ValueError as error:
            raise BadRow(
                f"A letter of {self.whose} can't be read: {error}",
                why="its row would not be what the query had",
                todo="give the schema of the query that wrote it; name a column that its write mode"
                " does not store by --lacking, and one to be left out by --without",
            ) from None

    def _commit(self, number: int, rows: pa.RecordBatch, read: Offsets) -> Ledger:
        follows, target = Follows.GROWS, self.into.plan.target
        attempt = attempt_of(self.writer, new_token())
        task = Task(self.writer, "", number, self.name, 0, attempt, follows=follows, named=True)
        receipt = self.into.write(task, [rows])
        driver = Driver(
            self.writer,
            "",
            number,
            self.name,
            target,
            offsets=read,
            follows=follows,
            named=True,
        )
        return self.into.committer().commit(driver, [receipt])


def _rival(whose: str) -> ConcurrentDriver:
    return ConcurrentDriver(
        f"Somebody else replays the letters of {whose}",
        why="a letter could be written twice",
        todo="wait until that has ended, then run this again",
    )
