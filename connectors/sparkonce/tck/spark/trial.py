"""One running check: its files, its checkpoint, the rows it has sent, and the target."""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sparkonce.tck.spark.query import DescribedQuery, FollowedQuery, Shape, Status
from sparkonce.tck.spark.remote import RemoteDriver
from sparkonce.tck.spark.sink import BatchSink, Sink

PATIENCE = 300.0
ROWS = 120


class QueryFailed(Exception):
    """The query failed, and a restart would too."""


class NotReached(Exception):
    """The fault did not occur: this check proves nothing about the sink."""


class NotGiven(Exception):
    """This release of Spark lacks what the rule needs: no sink can keep the rule."""


class ReadFailed(Exception):
    """The target could not be read: nobody knows what took effect."""


class WrongDoing(Exception):
    """The subject did something that its rule forbids, whatever rows took effect."""


class Repeated(ABC):
    """A query that runs again and again over its checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = checkpoint

    @abstractmethod
    def query(self, shape: Shape | None = None) -> DescribedQuery | FollowedQuery:
        """The query, which ends with its input."""

    def run(self, driver: RemoteDriver, shape: Shape | None = None) -> None:
        """Run until the input ends."""
        driver.start(self.query(shape))
        self.finish(driver)

    def finish(self, driver: RemoteDriver) -> None:
        """Wait until the input ends.

        Raises:
            QueryFailed: the query ended before.
        """
        self.ended(driver.wait(PATIENCE))

    def ended(self, status: Status) -> Status:
        """The status, if it is that of a query which ended without an error.

        Raises:
            QueryFailed: it is not.
        """
        if status.error:
            raise QueryFailed(status.error)
        if status.running:
            raise QueryFailed(f"it had not ended after {PATIENCE:.0f} s")
        return status

    # -- the checkpoint

    @property
    def next_epoch(self) -> int:
        """The number of the epoch with the last added rows, if earlier epochs are done."""
        return self.noted("commits")

    def uncommit(self, epoch: int) -> None:
        """Make Spark replay an epoch, as after a crash before it recorded the commit."""
        (self.checkpoint / "commits" / str(epoch)).unlink()
        (self.checkpoint / "commits" / f".{epoch}.crc").unlink(missing_ok=True)

    def replay(self, driver: RemoteDriver, epoch: int, shape: Shape | None = None) -> None:
        """Run the query again, starting with that epoch.

        Raises:
            NotReached: Spark did not run it again.
        """
        self.uncommit(epoch)
        self.run(driver, shape)
        if not (self.checkpoint / "commits" / str(epoch)).exists():
            raise NotReached(f"Spark did not replay epoch {epoch}")

    def noted(self, log: str) -> int:
        """The number of epochs in a log of the checkpoint: ``offsets`` or ``commits``."""
        return len(list((self.checkpoint / log).glob("[0-9]*")))

    @property
    def in_mid_epoch(self) -> bool:
        """Whether an epoch has begun, and Spark has not recorded its end."""
        return self.noted("offsets") > self.noted("commits")


class Trial(Repeated):
    """A streaming query over files, and the sink that it writes to."""

    def __init__(self, sink: Sink, home: Path, tag: str) -> None:
        super().__init__(home / "checkpoint")
        self.sink, self.tag, self.input = sink, tag, home / "input"
        self.input.mkdir(parents=True)
        self.sent: list[str] = []
        self.files = 0
        self._before = self._read()

    def put(self, files: int = 1, rows: int = ROWS) -> None:
        """Add input files, and so epochs, each with this number of new rows."""
        for _ in range(files):
            ids = [f"{self.tag}-{self.files}-{n}" for n in range(rows)]
            self.sent += ids
            self._write("".join(json.dumps({"id": one, "n": 1}) + "\n" for one in ids))

    def _write(self, text: str) -> None:
        hidden = self.input / f".{self.files:05d}"
        hidden.write_text(text)
        # Spark takes files in the order of their times.
        os.utime(hidden, (1e9 + self.files, 1e9 + self.files))
        hidden.rename(self.input / f"{self.files:05d}.json")
        self.files += 1

    def query(self, shape: Shape | None = None) -> DescribedQuery:
        """The query that writes the rows to the sink."""
        sink = self.sink
        return DescribedQuery(
            input=str(self.input),
            checkpoint=str(self.checkpoint),
            format=sink.format,
            options=dict(sink.options),
            attach=sink.attach,
            columns=list(sink.columns),
            shape=shape or Shape(),
        )

    # -- the target

    def found(self) -> Counter[str]:
        """How often each id took effect since the trial began; negative for vanished rows.

        Raises:
            ReadFailed: the target can't be read.
        """
        found = self._read()
        found.subtract(self._before)
        return found

    def _read(self) -> Counter[str]:
        try:
            return Counter(self.sink.read())
        except Exception as error:
            raise ReadFailed(f"read() raised {type(error).__name__}: {error}") from error


class BatchTrial(Trial):
    """A job that writes the rows of the last added file, each time it runs."""

    sink: BatchSink

    def __init__(self, sink: BatchSink, home: Path, tag: str) -> None:
        super().__init__(sink, home, tag)
        self.mode = "append"

    @property
    def next_epoch(self) -> int:
        """A batch has no number that its tasks see."""
        return -1

    def query(self, shape: Shape | None = None) -> DescribedQuery:
        """The job; its name stays the same until the check adds rows."""
        sink, filled = self.sink, {"job": self.tag, "version": self.files}
        options = (sink.overwriting if self.mode == "overwrite" else None) or sink.options
        named = {name: value.format(**filled) for name, value in sink.named.items()}
        last = self.input / f"{self.files - 1:05d}.json"
        query = super().query(shape)
        return replace(query, input=str(last), mode=self.mode, options={**options, **named})

    def forget(self) -> None:
        """Expect a replaced target: only rows added from now on may remain."""
        self.sent, self._before = [], Counter()

    def take_back(self, rows: int) -> None:
        """Expect no effect of the last added rows."""
        del self.sent[-rows:]


def until(
    reached: Callable[[], bool], what: str, driver: RemoteDriver, patience: float = 180.0
) -> None:
    """Wait for an event of the query.

    Raises:
        NotReached: it does not occur.
    """
    deadline = time.monotonic() + patience
    while not reached():
        if time.monotonic() > deadline:
            raise NotReached(f"{what}: not within {patience:.0f} s")
        if not driver.session.alive:
            raise NotReached(f"{what}: the driver ended. {driver.session.last_words()}")
        time.sleep(0.01)
