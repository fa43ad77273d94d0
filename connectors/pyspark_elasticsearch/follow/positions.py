"""How far indices were read, and what is gone before it was.

A position has by shard its history and the highest number that was read:
``{"logs-1": {"read": [["VWc8wwMg", 12], ["zF_S5D2_", 7]], "over": false}}``, of an index of two
shards that is still written. Of one that is over, nothing is lost if it is gone later. Where the
alias of a sink shows its decisions alone, ``"sink"`` says whose. ``"away": true`` is said of an
index that is there, and that the names which are followed do not stand for at the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark_elasticsearch.follow.shards import Indices, Shard
from sparkonce.errors import UnreadLost
from sparkonce.reading import Position

NOTHING = -1  # the number before a shard's first one
WITHOUT_FAILING = "failOnDataLoss=false goes on"


@dataclass(frozen=True)
class SequenceRange:
    """Changes of one shard."""

    index: str
    shard: int
    history: str  # of which the numbers are
    after: int  # the number that they are behind
    end: int  # the last number
    sink: str = ""  # whose documents alone are read, as filters have it; empty for all

    @property
    def rows(self) -> int:
        """The most there can be: a change that another one came over is no row any more."""
        return self.end - self.after

    def cut(self, size: int) -> Iterator[SequenceRange]:
        """The same in pieces of so many numbers."""
        for at in range(self.after, self.end, size):
            yield replace(self, after=at, end=min(self.end, at + size))


def of(there: Indices) -> Position:
    """The position behind all that can be read now."""
    return {
        name: {
            "read": [[one.history, one.final] for one in index.shards],
            "over": index.is_over,
            **({"sink": index.sink} if index.sink else {}),
        }
        for name, index in there.items()
    }


def between(after: Position, end: Position) -> Iterator[SequenceRange]:
    """What each shard has; that of one with a history that was not read begins at its beginning."""
    for name, index in end.items():
        known = after[name]["read"] if name in after else []
        for number, (history, upto) in enumerate(index["read"]):
            begin = dict(known[number : number + 1]).get(history, NOTHING)
            sink = index.get("sink", "")
            yield SequenceRange(name, number, history, begin, max(begin, upto), sink)


def towards(goal: Position, after: Position, most: int | None) -> Position:
    """Where an epoch ends that begins behind a position: each shard has its share of the limit.

    No shard goes back, whatever a node tells that is cut off from the others.
    """
    ranges = [*between(after, goal)]
    total = sum(one.rows for one in ranges)
    read: dict[str, list[list[str | int]]] = {}
    for one in ranges:
        share = one.rows if most is None or total <= most else -(-most * one.rows // total)
        read.setdefault(one.index, []).append([one.history, one.after + share])
    return {
        name: {
            **goal[name],
            "read": shards,
            "over": goal[name]["over"] and shards == goal[name]["read"],
        }
        for name, shards in read.items()
    }


def require_same(of: SequenceRange, there: Indices) -> Shard:
    """The shard whose numbers a range has; `UnreadLost` if it is not there any more."""
    what = f"Changes {of.after + 1} to {of.end} of shard {of.shard} of index {of.index}"
    if of.index not in there:
        raise UnreadLost(
            f"{what} are gone before they were read",
            why="the index was deleted, or the name in option index does not stand for it any more",
            todo="restore it from a snapshot under another name, and read that;"
            f" {WITHOUT_FAILING} without them",
        )
    shards = there[of.index].shards
    if of.shard >= len(shards) or shards[of.shard].history != of.history:
        raise _made_anew(
            f"{what} are others than those that were to be read",
            "and reads what is there now from its beginning",
        )
    return shards[of.shard]


def losses(after: Position, end: Position) -> Iterator[UnreadLost]:
    """An error for each index of which nobody knows any more whether all was read.

    One that was over when all of it was read may go.
    """
    for name, known in after.items():
        if name not in end or "away" in end[name]:
            if not known["over"] and "away" not in known:
                yield UnreadLost(
                    f"Index {name} is gone, and may have had changes that were not read",
                    why="it took writes when it was read last, and was deleted since, or the name"
                    " in option index does not stand for it any more",
                    todo=f"{WITHOUT_FAILING} without it, and where it was when it is named again;"
                    " before an index is deleted, set index.blocks.write (action readonly of a"
                    " lifecycle policy), and let the query see that",
                )
        elif not known["over"] and _histories(known["read"]) != _histories(end[name]["read"]):
            yield _made_anew(
                f"Index {name} is not the one that was read, or not all of its shards are",
                "and reads those shards from their beginning",
            )
        elif "sink" in known and known["sink"] != end[name].get("sink"):
            yield UnreadLost(
                f"Index {name} is not shown as it was, and hid documents that were not read",
                why="by its alias in option index the decisions of one sink were read, and now it"
                " shows other documents, or option index names another alias",
                todo=f"begin with a new checkpointLocation; {WITHOUT_FAILING} with what is shown"
                " from now on",
            )


def _made_anew(what: str, reads: str) -> UnreadLost:
    return UnreadLost(
        what,
        why="the index was made anew under its name or restored, or a stale copy of a shard was"
        " made its primary",
        todo=f"look at what was written since; {WITHOUT_FAILING}, {reads}",
    )


def _histories(read: Sequence[Sequence[str | int]]) -> list[str | int]:
    return [history for history, _ in read]
