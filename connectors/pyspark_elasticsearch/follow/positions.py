"""How far indices were read: by shard, its history and the highest number that was read.

``{"logs-1": {"read": [["VWc8wwMg", 12], ["zF_S5D2_", 7]], "over": false}}``, of an index of two
shards that is still written. Of one that is over, nothing is lost if it is gone later. Where the
alias of a sink shows its decisions alone, ``"sink"`` says whose. ``"away": true`` is said of an
index that is there, and that the names which are followed do not stand for at the moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pyspark_elasticsearch.follow.shards import Index
from sparkonce.feeds import Position

NOTHING = -1
"""The number before a shard's first one."""


@dataclass(frozen=True)
class Stretch:
    """Changes of one shard.

    Attributes:
        history: of which the numbers are.
        after: the number that they are behind.
        end: the last number.
        sink: whose documents alone are read, as filters have it; empty for all.
    """

    index: str
    shard: int
    history: str
    after: int
    end: int
    sink: str = ""

    @property
    def rows(self) -> int:
        """The most there can be: a change that another one came over is no row any more."""
        return self.end - self.after

    def cut(self, size: int) -> Iterator[Stretch]:
        """The same in pieces of so many numbers."""
        for at in range(self.after, self.end, size):
            yield replace(self, after=at, end=min(self.end, at + size))


def of(there: Mapping[str, Index]) -> Position:
    """The position behind all that can be read now."""
    return {
        name: {
            "read": [[one.history, one.final] for one in about.shards],
            "over": about.is_over,
            **({"sink": about.sink} if about.sink else {}),
        }
        for name, about in there.items()
    }


def between(after: Position, end: Position) -> Iterator[Stretch]:
    """What each shard has; that of one with a history that was not read begins at its beginning."""
    for name, about in end.items():
        known = after[name]["read"] if name in after else []
        for number, (history, upto) in enumerate(about["read"]):
            begin = dict(known[number : number + 1]).get(history, NOTHING)
            sink = about.get("sink", "")
            yield Stretch(name, number, history, begin, max(begin, upto), sink)


def towards(goal: Position, after: Position, most: int | None) -> Position:
    """Where an epoch ends that begins behind a position: each shard has its share of the limit.

    No shard goes back, whatever a node tells that is cut off from the others.
    """
    stretches = [*between(after, goal)]
    total = sum(one.rows for one in stretches)
    read: dict[str, list[list[str | int]]] = {}
    for one in stretches:
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
