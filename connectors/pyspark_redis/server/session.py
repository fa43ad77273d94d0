"""Requests to the server, and the names of the connector's own keys.

All lie under one hash tag, so in one slot::

{sparkonce}:names            set of the names of all records, and of sinks with staged rows
{sparkonce}:record:<name>    a record, see journal/lua/record.lua
{sparkonce}:staged:<sink>    hash: attempt -> what is known of it, as JSON
{sparkonce}:log:<sink>:<attempt>   hash: seq -> chunk
{sparkonce}:letters:<name>   stream of dead letters
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import redis

from pyspark_redis.server.failures import Demoted, translated


class Session:
    """A client, and where the connector's keys lie.

    Args:
        client: sends each request once; its retries must be off.
        prefix: the hash tag of the connector's own keys.
    """

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self.client, self.prefix = client, prefix
        self._scripts: dict[str, Any] = {}

    @contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """See `translated`. After a failover the name may lead elsewhere; connections must, too."""
        try:
            with translated(doing):
                yield
        except Demoted:
            self.client.connection_pool.disconnect(inuse_connections=False)
            raise

    def run(self, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script."""
        if text not in self._scripts:
            self._scripts[text] = self.client.register_script(text)
        return self._scripts[text](keys=keys, args=args)

    def key(self, *parts: str) -> str:
        """A key of the connector's own."""
        return ":".join((f"{{{self.prefix}}}", *parts))

    def record(self, name: str) -> str:
        """Where a record lies."""
        return self.key("record", name)

    def log(self, sink: str, attempt: str) -> str:
        """Where the chunks of an attempt lie."""
        return self.key("log", sink, attempt)

    def of_sink(self, name: str) -> list[str]:
        """The record, the names of all, and the attempts of a sink."""
        return [self.record(name), self.key("names"), self.key("staged", name)]
