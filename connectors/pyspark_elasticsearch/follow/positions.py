"""Positions in indices, and changes lost before a query read them.

A position has for each shard its history and the highest number read. For an index of two shards
that accepts writes: ``{"logs-1": {"read": [["VWc8wwMg", 12], ["zF_S5D2_", 7]], "over": false}}``.
If ``"over"`` is true, a later deletion of the index loses nothing. If an alias shows only the
decisions of one sink, ``"sink"`` names it. ``"away": true`` marks an index that exists, but that
the followed names do not match now.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark_elasticsearch.follow.shards import Indices, Shard
from sparkonce.errors import UnreadLost
from sparkonce.reading import Position

NOTHING = -1  # the number before a shard's first one
WITHOUT_FAILING = "failOnDataLoss=false continues"


@dataclass(frozen=True)
class SequenceRange:
    """A range of changes of one shard."""

    index: str
    shard: int
    history: str  # the history of the numbers
    after: int  # the number before the first one
    end: int  # the last number
    sink: str = ""  # reads only documents of this sink, by its digest; empty for all

    @property
    def rows(self) -> int:
        """The largest number of rows: a change that a later one replaced is not a row."""
        return self.end - self.after

    def cut(self, size: int) -> Iterator[SequenceRange]:
        """The range in pieces of `size` numbers."""
        for at in range(self.after, self.end, size):
            yield replace(self, after=at, end=min(self.end, at + size))


def of(found: Indices) -> Position:
    """The position after everything readable now."""
    return {
        name: {
            "read": [[one.history, one.final] for one in index.shards],
            "over": index.is_over,
            **({"sink": index.sink} if index.sink else {}),
        }
        for name, index in found.items()
    }


def between(after: Position, end: Position) -> Iterator[SequenceRange]:
    """The range of each shard; a new history is read from its beginning."""
    for name, index in end.items():
        known = after[name]["read"] if name in after else []
        for number, (history, upto) in enumerate(index["read"]):
            begin = dict(known[number : number + 1]).get(history, NOTHING)
            sink = index.get("sink", "")
            yield SequenceRange(name, number, history, begin, max(begin, upto), sink)


def towards(goal: Position, after: Position, most: int | None) -> Position:
    """The end of an epoch that begins after a position; each shard has a share of the limit.

    No shard goes back, even if a node that is cut off from the others reports less.
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


def require_same(of: SequenceRange, current: Indices) -> Shard:
    """The shard of a range; `UnreadLost` if it no longer exists."""
    what = f"Changes {of.after + 1} to {of.end} of shard {of.shard} of index {of.index}"
    if of.index not in current:
        raise UnreadLost(
            f"{what} were lost before the query read them",
            why="somebody deleted the index, or option index no longer matches it",
            todo="restore the index from a snapshot under another name, and read that;"
            f" {WITHOUT_FAILING} without them",
        )
    shards = current[of.index].shards
    if of.shard >= len(shards) or shards[of.shard].history != of.history:
        raise _made_anew(
            f"{what} differ from those to be read",
            "and reads the current changes from their beginning",
        )
    return shards[of.shard]


def losses(after: Position, end: Position) -> Iterator[UnreadLost]:
    """An error for each index that may have lost unread changes.

    An index that was over when it was read completely loses none.
    """
    for name, known in after.items():
        if name not in end or "away" in end[name]:
            if not known["over"] and "away" not in known:
                yield UnreadLost(
                    f"Index {name} was removed, and may have had unread changes",
                    why="it accepted writes at the last read. Since then somebody deleted it, or"
                    " option index no longer matches it",
                    todo=f"{WITHOUT_FAILING} without it, and resumes it if it matches again."
                    " Before you delete an index, set index.blocks.write (action readonly of a"
                    " lifecycle policy), and let the query see that",
                )
        elif not known["over"] and _histories(known["read"]) != _histories(end[name]["read"]):
            yield _made_anew(
                f"Index {name} is not the one that was read, or some of its shards are not",
                "and reads those shards from their beginning",
            )
        elif "sink" in known and known["sink"] != end[name].get("sink"):
            yield UnreadLost(
                f"Index {name} shows other documents than before, and hid unread ones",
                why="its alias in option index showed the decisions of one sink, and now shows"
                " other documents, or option index names another alias",
                todo=f"begin with a new checkpointLocation; {WITHOUT_FAILING} with the documents"
                " shown from now on",
            )


def _made_anew(what: str, reads: str) -> UnreadLost:
    return UnreadLost(
        what,
        why="somebody recreated the index under its name, or restored it, or a stale copy of a"
        " shard became the primary",
        todo=f"check the writes since then; {WITHOUT_FAILING}, {reads}",
    )


def _histories(read: Sequence[Sequence[str | int]]) -> list[str | int]:
    return [history for history, _ in read]
