"""Sources that each break a rule: `LogReader` with one thing wrong."""

from __future__ import annotations

import base64
import pickle
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tests.kit.log_source import LogReader, Offset, Range

MUTANTS = {
    "OpenAtNoEnd": ("F01", "0 lost, 4 doubled"),
    "OffByOne": ("F01", "[1-9] lost, 0 doubled"),
    "SplitByTheClock": ("F01", r"\d+ lost, 0 doubled"),
    "SeeingNoMore": ("F01", "after a restart of the query, and not while it ran"),
    "UpToNow": ("F02", r"0 lost, \d+ doubled; 3 epochs replayed"),
    "FromMemory": ("F03", "80 lost, 0 doubled"),
    "BegunInMemory": ("F04", r"[1-9]\d* lost, 0 doubled; the first epoch failed"),
    "IgnoringLimits": ("F05", "an epoch had 26 rows"),
    "OneTooMany": ("F05", "an epoch had 5 rows"),
    "TheNewestFirst": ("F05", "older than earlier ones"),
    "WithoutEnd": ("F06", "it had not ended"),
    "OneEpoch": ("F06", "it ended without"),
    "SkippingWhatIsGone": ("F07", "before the query read them, and the query did not fail"),
    "SkippingInReplays": ("F07", "vanished before a replay read them"),
    "StartingOver": ("F07", "0 lost, 40 doubled"),
    "NeverTolerant": ("F07", "the query failed: .*10 rows are gone"),
    "ByOrderOfKeys": ("F08", "rewrote the offsets"),
    "Pickled": ("F08", "a pickle"),
    "OfThisMachine": ("F08", "a path of this machine"),
    "WithTime": ("F09", "epochs in 3 s, and nothing was new"),
    "WithRestarts": ("F09", "epochs in 4 s, and nothing was new"),
    "TakingRows": ("F10", r"\d+ lost, 0 doubled"),
    "PlannedIsDone": ("F11", "300 lost, 0 doubled"),
    "TellingNothing": ("F12", "no latestOffset"),
    "TellingTheBeginning": ("F12", "did not move"),
    "TakenForANewOne": ("F13", r"0 lost, \d+ doubled"),
    "PassingOverAsMany": ("F13", r"[1-9]\d* lost, 0 doubled"),
    "FromItsBeginning": ("F14", r"0 lost, \d+ doubled"),
    "FromItsEnd": ("F14", r"20 lost, 0 doubled"),
}
"""The rule that each breaks, some more than that, and what is said of it."""
TAKE = "UPDATE log SET taken = 1 WHERE id = ? AND taken = 0 RETURNING n"


class OpenAtNoEnd(LogReader):
    """A range begins with the row with which the one before it ended."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        found = super().partitions(start, end)
        return [replace(one, after=max(0, one.after - 1)) for one in found[:1]] + [*found[1:]]


class OffByOne(LogReader):
    """A range begins behind its first row."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        found = super().partitions(start, end)
        return [replace(one, after=one.after + 1) for one in found[:1]] + [*found[1:]]


class SplitByTheClock(LogReader):
    """Each task decides anew which rows are its own."""

    def read(self, partition: Range) -> Iterator[tuple[str]]:
        rows, now = [*super().read(partition)], time.time_ns()
        yield from (row for row in rows if hash((row, now)) % 4)


class SeeingNoMore(LogReader):
    """A process takes what was there when it began for all there is."""

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        self.goal = self.log.end()
        return super().initialOffset()


class UpToNow(LogReader):
    """The last split has what is there when it is read."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        found = super().partitions(start, end)
        return [*found[:-1], *(replace(one, end=self.log.end()) for one in found[-1:])]


class FromMemory(LogReader):
    """Where a query goes on is what its process knows: at first, the end."""

    def following(self, start: Offset | None, limit: Any) -> Offset:
        if start and "after" not in self.__dict__:
            self.after = self.log.end()
        found = super().following(start, limit)
        if found != start:
            found["after"] = self.__dict__.get("after", 0)
            self.after = found["at"]
        return found

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:  # noqa: ARG002
        return super().partitions({"at": end["after"]}, end)


class BegunInMemory(LogReader):
    """Where a query begins is known to its process alone."""

    def initialOffset(self) -> Offset:  # noqa: N802 (Spark's name)
        if "begins" not in self.__dict__:
            super().initialOffset()
            self.begins = {"at": self.begun}
        return self.begins


class IgnoringLimits(LogReader):
    """All that is there is an epoch."""

    def limited(self, after: int, goal: int, limit: Any) -> int:  # noqa: ARG002
        return goal


class OneTooMany(LogReader):
    """An epoch has a row more than its limit."""

    def limited(self, after: int, goal: int, limit: Any) -> int:
        return min(goal, super().limited(after, goal, limit) + 1)


class TheNewestFirst(LogReader):
    """An epoch has the rows of the next one, and that those before them."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        by = {8: 4, 12: -4}.get(end["at"], 0)
        return [Range(one.after + by, one.end + by) for one in super().partitions(start, end)]


class WithoutEnd(LogReader):
    """What is available now is what comes, too."""

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        pass


class OneEpoch(LogReader):
    """What is available now is one epoch."""

    def following(self, start: Offset | None, limit: Any) -> Offset:
        found = super().following(start, limit)
        if self.goal is not None:
            self.goal = found["at"]
        return found


class SkippingWhatIsGone(LogReader):
    """A range has what is left of it."""

    def read(self, partition: Range) -> Iterator[tuple[str]]:
        return super().read(replace(partition, tolerant=True))


class SkippingInReplays(LogReader):
    """A range that was planned once has what is left of it."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        again = bool(self.log.ask("SELECT n FROM planned WHERE n = ?", end["at"]))
        self.log.ask("INSERT INTO planned VALUES (?)", end["at"])
        found = super().partitions(start, end)
        return [replace(one, tolerant=one.tolerant or again) for one in found]


class StartingOver(LogReader):
    """A loss that is tolerated leads back to the beginning."""

    def read(self, partition: Range) -> Iterator[tuple[str]]:
        rows = [*super().read(partition)]
        lost = len(rows) < partition.end - partition.after
        yield from super().read(replace(partition, after=0)) if lost else rows


class NeverTolerant(LogReader):
    """A loss stops the query even where it is tolerated."""

    def read(self, partition: Range) -> Iterator[tuple[str]]:
        return super().read(replace(partition, tolerant=False))


class ByOrderOfKeys(LogReader):
    """An offset is read by the places of its values."""

    def offset(self, at: int, start: Offset, after: int) -> Offset:
        return {**super().offset(at, start, after), "age": 0}

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        def at(offset: Offset) -> Offset:
            return {**offset, "at": next(iter(offset.values()))} if offset else offset

        return super().partitions(at(start), at(end))


class Pickled(LogReader):
    """An offset holds an object of Python's."""

    def offset(self, at: int, start: Offset, after: int) -> Offset:
        packed = base64.b64encode(pickle.dumps(Range(after, at))).decode()
        return {**super().offset(at, start, after), "range": packed}


class OfThisMachine(LogReader):
    """An offset names a file."""

    def offset(self, at: int, start: Offset, after: int) -> Offset:
        return {**super().offset(at, start, after), "of": {"file": [self.log.path]}}


class WithTime(LogReader):
    """An offset says when it was made."""

    def following(self, start: Offset | None, limit: Any) -> Offset:
        return {**super().following(start, limit), "seen": time.time()}


class WithRestarts(LogReader):
    """What a process says first is new, if it is not the first process."""

    ahead: int | None = None

    def following(self, start: Offset | None, limit: Any) -> Offset:
        found = super().following(start, limit)
        self.ahead = (3 if start else 0) if self.ahead is None else max(0, self.ahead - 1)
        return {**found, "ahead": self.ahead}


class TakingRows(LogReader):
    """Rows that were read are taken, as from a queue."""

    def read(self, partition: Range) -> Iterator[tuple[str]]:
        for row in super().read(partition):
            if self.log.ask(TAKE, *row):
                yield row


class PlannedIsDone(LogReader):
    """What was planned once is not planned again."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        ((done,),) = self.log.ask("SELECT COALESCE(MAX(n), 0) FROM planned")
        self.log.ask("INSERT INTO planned VALUES (?)", end["at"])
        found = super().partitions(start, end)
        return [Range(max(one.after, done), one.end) for one in found if one.end > done]


class TellingNothing(LogReader):
    """Nothing is told of what there is."""

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        return None


class TellingTheBeginning(LogReader):
    """What is told of what there is stays as it was."""

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 (Spark's name)
        return {"at": 0}


class TakenForANewOne(LogReader):
    """A store that lacks rows which were read is read from its beginning."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        lacks = start and len(self.log.between(0, start["at"])) < start["at"]
        return super().partitions({**start, "at": 0} if lacks else start, end)


class PassingOverAsMany(LogReader):
    """Of a store that lacks rows which were read as many new ones are taken for read."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[Range]:
        lacks = start["at"] - len(self.log.between(0, start["at"])) if start else 0
        return [replace(one, after=one.after + lacks) for one in super().partitions(start, end)]


class FromItsBeginning(LogReader):
    """What was left out begins anew."""

    def left(self, start: Offset, after: int) -> int:  # noqa: ARG002
        return 0


class FromItsEnd(LogReader):
    """What was left out goes on with what comes next."""

    def left(self, start: Offset, after: int) -> int:  # noqa: ARG002
        return after
