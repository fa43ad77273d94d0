"""Settings of a server, and what one request to it may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import redis

from sparkonce.errors import ChunkTooLarge

LEAST = 1024 * 1024
"""The least value that the server takes for each of `BOUNDS`, in bytes."""

OVERHEAD = 64 * 1024
"""Bytes of a request that are left for all that is not payload."""

BOUNDS = ("proto-max-bulk-len", "client-query-buffer-limit")
"""Settings that bound what one request may hold. Beyond them the server hangs up."""


class Room:
    """What one request may hold; beyond that the server hangs up, and says nothing."""

    def __init__(self, client: Callable[[], redis.Redis]) -> None:
        self.client = client
        self._most: int | None = None

    def of_letter(self, size: int, most: int) -> int:
        """How many bytes of a row of so many bytes a dead letter may hold, `most` at most."""
        if size <= LEAST - OVERHEAD:
            return most
        known = self._known()
        return most if known is None else min(most, known - OVERHEAD)

    def staging(self, size: int) -> str:
        """What is done with a chunk of so many bytes, in words; with a hint if nothing is known.

        Raises:
            ChunkTooLarge: the server takes only smaller ones.
        """
        if size <= LEAST - OVERHEAD:  # every server takes that, and CONFIG needs a right of its own
            return "staging rows"
        named, known = " or ".join(BOUNDS), self._known()
        if known is None:
            return (
                f"staging a chunk of {size:,} bytes (if its {named} is smaller, grant the user"
                " +config|get, by which that is known before)"
            )
        if size > known - OVERHEAD:
            raise ChunkTooLarge(
                f"Redis takes no row of {size:,} bytes",
                why=f"its {named} is {known:,} bytes",
                todo="raise that setting, or drop or cut the row's large columns before the sink",
            )
        return "staging rows"

    def _known(self) -> int | None:
        if self._most is None:
            bounds = [_configured(self.client(), name) for name in BOUNDS]
            self._most = min(map(int, filter(None, bounds))) if all(bounds) else None
        return self._most


def setting(client: redis.Redis, info: Mapping[str, Any], name: str) -> str | None:
    """A setting, which INFO may leave out, as that of some managed servers does; None if unknown.

    Args:
        client: of the server.
        info: what it tells by INFO.
        name: as CONFIG has it.
    """
    value = info.get(name.replace("-", "_"))
    return _configured(client, name) if value is None else str(value)


def _configured(client: redis.Redis, name: str) -> str | None:
    try:
        value = client.config_get(name).get(name)
    except redis.ResponseError:
        # An ACL may forbid CONFIG: then nothing is known, and nobody may guess.
        return None
    return None if value is None else str(value)
