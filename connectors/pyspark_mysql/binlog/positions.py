"""MariaDB's GTID positions: how far a server, or a reader, is in each domain."""

from __future__ import annotations

from pyspark_mysql.binlog.transactions import Domained, Gtid

NONE = "0-0-0"


class GtidPosition:
    """The last transaction of each domain, ``domain-server-number``.

    See https://mariadb.com/docs/server/ha-and-performance/standard-replication/gtid.
    """

    def __init__(self, text: str = "") -> None:
        parts = (one.strip() for one in text.split(","))
        self.last = {int(one.split("-")[0]): one for one in parts if one}

    def __str__(self) -> str:
        return ",".join(one for _, one in sorted(self.last.items()))

    def lacks(self, other: str) -> str:
        """See `Gtids.lacks`. Where in a domain the other is further on."""
        found = GtidPosition()
        found.last = {
            domain: one
            for domain, one in GtidPosition(other).last.items()
            if _number(self.last.get(domain, NONE)) < _number(one)
        }
        return str(found)

    def joined(self, other: str) -> str:
        """See `Gtids.joined`."""
        both = GtidPosition(str(self))
        both.last |= GtidPosition(self.lacks(other)).last
        return str(both)

    def many(self, end: str) -> int:
        """See `Gtids.many`."""
        last = GtidPosition(end).last
        return sum(
            max(0, _number(one) - _number(self.last.get(domain, NONE)))
            for domain, one in last.items()
        )

    def to(self, end: str) -> PositionStretch:
        """See `Gtids.to`."""
        return PositionStretch(self, GtidPosition(end))


def lacking(state: str, position: str) -> str:
    """Where a position is further on than a server has ever been, by the number of each server.

    Args:
        state: the server's ``gtid_binlog_state``: the last transaction of each domain and server.
        position: what was read.
    """
    had, found = _last_of_each(state), GtidPosition()
    found.last = {
        domain: one
        for domain, one in GtidPosition(position).last.items()
        if _number(had.get(_giver(one), NONE)) < _number(one)
    }
    return str(found)


def shared(state: str, position: str) -> str | None:
    """How far a server has what was read; None where that can't be told.

    The last of each domain that was read was given by one server. Up to the last number of that one
    which the server has, all of the domain was read, and what other servers gave behind it was not.
    Numbers alone tell nothing: a server that took over gives those again that were lost.
    """
    had, found = _last_of_each(state), GtidPosition(position)
    domains = {domain for domain, _ in had}
    for domain in GtidPosition(lacking(state, position)).last:
        last = had.get(_giver(found.last.pop(domain)))
        if last:
            found.last[domain] = last
        elif str(domain) in domains:
            return None
    return str(found)


def _last_of_each(state: str) -> dict[tuple[str, str], str]:
    return {_giver(one): one for one in state.split(",") if one}


def _giver(gtid: str) -> tuple[str, str]:
    """The domain and the server of a transaction."""
    domain, server, _ = gtid.strip().split("-")
    return domain, server


class PositionStretch:
    """See `Stretch`. The server sends what lies behind a position; a domain ends with its last one.

    That one is looked for as it is: without ``gtid_strict_mode`` numbers may come in any order.
    """

    def __init__(self, before: GtidPosition, end: GtidPosition) -> None:
        self._at = GtidPosition(str(before))
        self._left = {
            domain: one for domain, one in end.last.items() if before.last.get(domain) != one
        }

    @property
    def done(self) -> bool:
        """See `Stretch.done`."""
        return not self._left

    def wants(self, gtid: Gtid) -> bool:
        """See `Stretch.wants`."""
        return isinstance(gtid, Domained) and gtid.domain in self._left

    def take(self, gtid: Gtid) -> None:
        """See `Stretch.take`."""
        if isinstance(gtid, Domained):
            self._at.last[gtid.domain] = str(gtid)
            if self._left[gtid.domain] == str(gtid):
                del self._left[gtid.domain]

    def missing(self) -> str:
        """See `Stretch.missing`."""
        left = GtidPosition()
        left.last = self._left
        return str(left)

    def reached(self) -> str:
        """See `Stretch.reached`."""
        return str(self._at)


def _number(gtid: str) -> int:
    return int(gtid.split("-")[2])
