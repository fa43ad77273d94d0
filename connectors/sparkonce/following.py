"""How one query goes along a feed: the offsets that Spark keeps, limits, and where an epoch ends.

An offset is ``{"version": 1, "of": "shop.orders", "at": position}``; of what it is, it says where
the position does not. Spark keeps where each epoch ends and asks anew, after a restart, where the
first one began: a query that begins at the latest position would lose what came in between. So the
first epoch's end says that, too, as ``"from"``, and an offset that is empty stands for the
beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from sparkonce.errors import UnsupportedQuery
from sparkonce.feeds import Feed, Position
from sparkonce.reading import Split

Offset: TypeAlias = dict[str, Any]

BEGINNING: Offset = {}
VERSION = 1


class Follower:
    """One query and its feed, for as long as the query runs."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self._begun: Position | None = None
        self._goal: Position | None = None
        self._last: Offset = BEGINNING

    def beginning(self) -> Offset:
        """What stands for the beginning; where that is, the end of the first epoch will say."""
        self._begin()
        return BEGINNING

    def stop_at_what_is_there(self) -> None:
        """Go no further than the feed does now."""
        self._begin()
        self._goal = self.feed.latest()

    def end(self, start: Offset, most: int | None) -> Offset:
        """Where the epoch ends that begins at `start`; `start` itself if there is nothing new.

        Args:
            start: an offset that Spark has kept, or the beginning.
            most: rows that the epoch may have, roughly.

        Raises:
            UnsupportedQuery: the offset is not of this package.
            StoreError: the store does not tell, or rows are gone.
        """
        after = self._position(start) if start else self._begin()
        goal = self.feed.latest() if self._goal is None else self._goal
        at = goal if goal == after else self.feed.advance(after, goal, most)
        if self._goal is not None and at == after:
            at = self.feed.passed(after, goal)  # the next query need not look there again
        self._last = start if start and at == after else self._offset(at, None if start else after)
        return self._last

    def end_of_all(self) -> Offset:
        """The same for a Spark that neither tells where an epoch begins nor sets limits.

        It asks for this before it asks where the query begins, and for that of a query that has
        begun, too.
        """
        begun, at = self._begin(), self.feed.latest()
        after = self._position(self._last) if self._last else at
        at = at if at == after else self.feed.advance(after, at, None)
        if not self._last or after != at:
            self._last = self._offset(at, None if self._last else begun)
        return self._last

    def between(self, start: Offset, end: Offset) -> Sequence[Split]:
        """The splits of an epoch.

        Raises:
            UnsupportedQuery: an offset is not of this package.
            StoreError: the store can't be read, or rows are gone.
        """
        after, at = self._position(start or {**end, "at": end.get("from")}), self._position(end)
        return [] if after == at else self.feed.between(after, at)

    def report(self) -> Offset:
        """The newest offset there is, and how far this query is behind it, if the store tells."""
        latest = self.feed.latest()
        found = self.feed.behind(self._position(self._last), latest) if self._last else None
        told = {} if found is None else {f"{self.feed.unit}Behind": found}
        return {**self._offset(latest, None), **told}

    def _begin(self) -> Position:
        if self._begun is None:
            self._begun = self.feed.begin()
        return self._begun

    def _offset(self, at: Position, begun: Position | None) -> Offset:
        of = {"of": self.feed.of} if self.feed.of else {}
        return {"version": VERSION, **of, "at": at, **({} if begun is None else {"from": begun})}

    def _position(self, offset: Offset) -> Position:
        found, of = offset.get("at"), offset.get("of", self.feed.of)
        if offset.get("version") != VERSION or not isinstance(found, dict):
            raise UnsupportedQuery(
                f"The checkpoint has an offset that this release can't read: {offset!r}",
                why="another source wrote it, or a later release of sparkonce",
                todo="go on with what wrote it, or begin with a new checkpointLocation",
            )
        if of != self.feed.of:
            raise UnsupportedQuery(
                f"The checkpoint is of {of}, and the query follows {self.feed.of}",
                why="its place in the one is none in the other: changes would be missed",
                todo="follow what was followed, or begin with a new checkpointLocation",
            )
        return found
