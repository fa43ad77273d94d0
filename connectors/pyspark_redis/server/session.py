"""Requests to the server, their durability, and the names of the connector's keys.

All keys have one hash tag, so they share one slot::

    {sparkonce}:names            set: names of all records, and of sinks with staged rows

    {sparkonce}:decided          hash: sink -> number of its last decision; '' -> highest number

    {sparkonce}:open             set: sinks whose last decision is not completely applied

    {sparkonce}:record:<name>    a record, see journal/lua/record.lua

    {sparkonce}:staged:<sink>    hash: attempt -> its query, epoch and time, as JSON

    {sparkonce}:log:<sink>:<attempt>   hash: seq -> chunk

    {sparkonce}:letters:<name>   stream of dead letters

    {sparkonce}:lanes:<sink>     in a cluster: progress of the lanes, see cluster/lanes.py

    {sparkonce}:lettered:<sink>  in a cluster: rows that are letters, see cluster/delivery.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import redis
from redis.commands.core import Script

from pyspark_redis.server.failures import Demoted, OtherType, other_type, translated
from pyspark_redis.server.preflight import RequestLimit
from sparkonce.errors import RESTART, StoreRefused, StoreUnreachable
from sparkonce.options import Options

LISTS = {"names": "set", "decided": "hash", "open": "set"}
"""The keys that list all sinks, and their Redis types."""

PROBE = "redis.call('HSET', KEYS[1], 'a', 1) redis.call('UNLINK', KEYS[1])"
"""A write that leaves nothing behind."""


@dataclass(frozen=True)
class Durability:
    """How durable a write must be before it counts: options ``waitReplicas`` and ``waitAof``.

    https://redis.io/docs/latest/commands/wait, https://redis.io/docs/latest/commands/waitaof
    """

    replicas: int = 0  # replicas that must have the write
    # Replicas that must have it on disk, besides the server; None if no disk must have it.
    disks: int | None = None
    millis: int = 0  # how long the server waits, in milliseconds

    @classmethod
    def of(cls, options: Options) -> Durability:
        """The durability that options ask for; the server stops waiting before `timeout` ends."""
        millis = int(options["timeout"] * 500)
        return cls(options["waitReplicas"], options["waitAof"], millis)

    def commands(self) -> list[tuple[str | int, ...]]:
        """The commands that wait for this durability."""
        found: list[tuple[str | int, ...]] = []
        if self.replicas:
            found.append(("WAIT", self.replicas, self.millis))
        if self.disks is not None:
            found.append(("WAITAOF", 1, self.disks, self.millis))
        return found

    def require(self, reached: Sequence[Any]) -> None:
        """Check, by the replies to `commands`, that a write is as durable as required."""
        answers = list(reached)
        if self.replicas and (got := int(answers.pop(0))) < self.replicas:
            raise _not_safe(f"{got} of {self.replicas} replicas have it", "waitReplicas")
        if self.disks is not None:
            own, others = map(int, answers.pop(0))
            if own < 1 or others < self.disks:
                raise _not_safe(f"it is on {own + others} of {1 + self.disks} disks", "waitAof")


def _not_safe(reached: str, option: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"A write to the ledger was not as durable in time as option {option} requires: {reached}",
        why="replicas or a disk are unreachable or slow; a failover could lose the epoch",
        todo="check the replicas; the query continues once they are reachable, and loses or"
        " duplicates nothing",
    )


class RedisSession:
    """A client, and the names of the connector's keys.

    Args:
        find: returns the client, which sends each request once; its retries must be off.
        prefix: the hash tag of the connector's keys.
        durability: how durable a write of a record must be.
    """

    def __init__(
        self, find: Callable[[], redis.Redis], prefix: str, durability: Durability
    ) -> None:
        self.find, self.prefix, self.durability = find, prefix, durability
        self.limit = RequestLimit(find)
        self.owes = False  # whether the durability of an earlier write is unconfirmed
        self._scripts: dict[str, Any] = {}

    @property
    def client(self) -> redis.Redis:
        """The client of the server that holds the ledger and the staged rows."""
        return self.find()

    @contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """See `translated`. If the server is a replica now, close the idle connections to it."""
        try:
            with translated(doing):
                yield
        except Demoted:
            self.client.connection_pool.disconnect(inuse_connections=False)
            raise
        except OtherType as error:
            raise self._wrong_list() or StoreRefused(*error.args) from None

    def _wrong_list(self) -> StoreRefused | None:
        """The error for the key of `LISTS` that holds another Redis type; None if all are right."""
        with suppress(redis.RedisError):
            for name, kind in LISTS.items():
                key = self.key(name)
                if self.client.type(key) not in (b"none", kind.encode()):
                    todo = f"rename it (RENAME {key} another-name), {RESTART}"
                    return other_type(key, kind, todo)
        return None

    def run(self, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script."""
        return self.run_on(self.client, text, keys, args)

    def run_on(self, client: redis.Redis, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script on the server of `client`."""
        return self._script(text)(keys=keys, args=args, client=client)

    def run_durably(self, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script, and wait until its writes and earlier ones are as durable as required.

        Raises:
            StoreUnreachable: the script may have taken effect, and may be less durable.
        """
        self.owes = bool(self.durability.commands())  # set first, in case no reply arrives
        answer = self.run_durably_on(self.client, text, keys, args)
        self.owes = False
        return answer

    def run_durably_on(
        self, client: redis.Redis, text: str, keys: list[str], args: list[Any]
    ) -> Any:
        """Like `run_durably`, on the server of `client`."""
        waits = self.durability.commands()
        if not waits:
            return self.run_on(client, text, keys, args)
        # Over one connection: the server waits for the writes of that connection.
        with client.pipeline(transaction=False) as pipe:
            self._script(text)(keys=keys, args=args, client=pipe)
            for command in waits:
                pipe.execute_command(*command)  # type: ignore[no-untyped-call]
            answer, *reached = pipe.execute()
        self.durability.require(reached)
        return answer

    def settle(self) -> None:
        """Confirm that all writes so far are as durable as required, unless confirmed already."""
        if self.owes:
            self.run_durably(PROBE, [self.key("probe")], [])

    def _script(self, text: str) -> Any:
        if text not in self._scripts:
            self._scripts[text] = Script(self.client, text)
        return self._scripts[text]

    def key(self, *parts: str) -> str:
        """The name of a key of the connector."""
        return ":".join((f"{{{self.prefix}}}", *parts))

    def record(self, name: str) -> str:
        """The key of a record."""
        return self.key("record", name)

    def log(self, sink: str, attempt: str) -> str:
        """The key of the chunks of an attempt."""
        return self.key("log", sink, attempt)

    def of_attempt(self, sink: str, attempt: str) -> list[str]:
        """The keys of a sink's record and of an attempt's chunks."""
        return [self.record(sink), self.log(sink, attempt)]

    def of_sink(self, name: str) -> list[str]:
        """The keys of a sink's record, of its attempts, and of `LISTS`."""
        return self.of_record(name, self.key("staged", name))

    def of_record(self, name: str, beside: str) -> list[str]:
        """The KEYS of a script that writes a record; `beside` is the third."""
        lists = self.key("decided"), self.key("open")
        return [self.record(name), self.key("names"), beside, *lists]
