"""What the demo keeps in Redis, read and dropped without the connector."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from demo.check import FIGURES, Figures

FLIGHT, AIRPORT = "sparkonce-demo:flight:", "sparkonce-demo:airport:"
MINE = (f"{FLIGHT}*", f"{AIRPORT}*", "{sparkonce-demo}:*")
STEP = 10_000


class Target:
    """See `demo.check.Stored`."""

    def __init__(self, url: str) -> None:
        self.client = redis.Redis.from_url(url, decode_responses=True)

    def flight_ids(self) -> set[str]:
        """See `Stored.flight_ids`."""
        return {key.removeprefix(FLIGHT) for key in self._keys(f"{FLIGHT}*")}

    def flights(self, ids: Sequence[str], fields: Sequence[str]) -> list[list[str | None]]:
        """See `Stored.flights`."""
        with self.client.pipeline(transaction=False) as pipe:
            for number in ids:
                pipe.hmget(FLIGHT + number, fields)
            return pipe.execute()

    def airports(self) -> dict[str, Figures]:
        """See `Stored.airports`."""
        return {
            key.removeprefix(AIRPORT): tuple(int(n or 0) for n in self.client.hmget(key, FIGURES))
            for key in self._keys(f"{AIRPORT}*")
        }

    def counted(self, airports: Sequence[str]) -> dict[str, int]:
        """The flights that these airports have counted; a look at all keys would take longer."""
        with self.client.pipeline(transaction=False) as pipe:
            for name in airports:
                pipe.hget(AIRPORT + name, FIGURES[0])
            return {name: int(n or 0) for name, n in zip(airports, pipe.execute(), strict=True)}

    def clear(self) -> None:
        """Drop every key of the demo, and no other."""
        for pattern in MINE:
            keys = self._keys(pattern)
            for start in range(0, len(keys), STEP):
                self.client.unlink(*keys[start : start + STEP])

    def _keys(self, pattern: str) -> list[str]:
        return list(set(self.client.scan_iter(pattern, count=STEP)))
