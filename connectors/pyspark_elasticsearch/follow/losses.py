"""What is gone before it was read, and what may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyspark_elasticsearch.follow.positions import Stretch
from pyspark_elasticsearch.follow.shards import Index, Shard
from sparkonce.errors import UnreadLost
from sparkonce.feeds import Position

GOES_ON = "failOnDataLoss=false goes on"


def require_same(of: Stretch, there: Mapping[str, Index]) -> Shard:
    """The shard whose numbers a stretch has.

    Raises:
        UnreadLost: it is not there any more.
    """
    what = f"Changes {of.after + 1} to {of.end} of shard {of.shard} of index {of.index}"
    if of.index not in there:
        raise UnreadLost(
            f"{what} are gone before they were read",
            why="the index was deleted, or the name in option index does not stand for it any more",
            todo=f"restore it from a snapshot under another name, and read that; {GOES_ON} without"
            " them",
        )
    shards = there[of.index].shards
    if of.shard >= len(shards) or shards[of.shard].history != of.history:
        raise UnreadLost(
            f"{what} are others than those that were to be read",
            why="the index was made anew under its name or restored, or a stale copy of the shard"
            " was made its primary",
            todo=f"look at what was written since; {GOES_ON}, and reads what is there now from its"
            " beginning",
        )
    return shards[of.shard]


def unknown(after: Position, end: Position) -> Iterator[UnreadLost]:
    """An error for each index of which nobody knows any more whether all was read.

    One that was over when all of it was read may go.
    """
    for name, known in after.items():
        if name not in end or "away" in end[name]:
            yield from [] if known["over"] or "away" in known else [_gone(name)]
        elif not known["over"] and _histories(known["read"]) != _histories(end[name]["read"]):
            yield _made_anew(name)
        elif "sink" in known and known["sink"] != end[name].get("sink"):
            yield _shown_otherwise(name)


def _gone(index: str) -> UnreadLost:
    return UnreadLost(
        f"Index {index} is gone, and may have had changes that were not read",
        why="it took writes when it was read last, and was deleted since, or the name in option"
        " index does not stand for it any more",
        todo=f"{GOES_ON} without it, and where it was when it is named again; before an index is"
        " deleted, set index.blocks.write (action"
        " readonly of a lifecycle policy), and let the query see that",
    )


def _made_anew(index: str) -> UnreadLost:
    return UnreadLost(
        f"Index {index} is not the one that was read, or not all of its shards are",
        why="it was made anew under its name or restored, or a stale copy of a shard was made its"
        " primary",
        todo=f"look at what was written since; {GOES_ON}, and reads those shards from their"
        " beginning",
    )


def _shown_otherwise(index: str) -> UnreadLost:
    return UnreadLost(
        f"Index {index} is not shown as it was, and hid documents that were not read",
        why="by its alias in option index the decisions of one sink were read, and now it shows"
        " other documents, or option index names another alias",
        todo=f"begin with a new checkpointLocation; {GOES_ON} with what is shown from now on",
    )


def _histories(read: Sequence[Sequence[str | int]]) -> list[str | int]:
    return [history for history, _ in read]
