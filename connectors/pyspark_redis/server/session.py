"""Requests to the server: how safe they must be, and the names of the connector's own keys.

All lie under one hash tag, so in one slot::

{sparkonce}:names            set of the names of all records, and of sinks with staged rows
{sparkonce}:decided          hash: sink -> number of its last decision; '' -> the highest number
{sparkonce}:open             set of the sinks whose last decision is not wholly applied
{sparkonce}:record:<name>    a record, see journal/lua/record.lua
{sparkonce}:staged:<sink>    hash: attempt -> what is known of it, as JSON
{sparkonce}:log:<sink>:<attempt>   hash: seq -> chunk
{sparkonce}:letters:<name>   stream of dead letters
{sparkonce}:lanes:<sink>     of a cluster: what its slots have seen, see cluster/lanes.py
{sparkonce}:lettered:<sink>  of a cluster: which rows are letters, see cluster/delivery.py
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
"""The lists of all sinks, and their types."""

PROBE = "redis.call('HSET', KEYS[1], 'a', 1) redis.call('UNLINK', KEYS[1])"
"""A write that leaves nothing behind."""


@dataclass(frozen=True)
class Durability:
    """How safe a write must be before it counts, by options ``waitReplicas`` and ``waitAof``.

    https://redis.io/docs/latest/commands/wait, https://redis.io/docs/latest/commands/waitaof
    """

    replicas: int = 0  # that must have a write
    # Of replicas that must have it beside the server's own; None if no disk must.
    disks: int | None = None
    millis: int = 0  # how long the server waits

    @classmethod
    def of(cls, options: Options) -> Durability:
        """As options say; the server answers before the client's patience is over."""
        millis = int(options["timeout"] * 500)
        return cls(options["waitReplicas"], options["waitAof"], millis)

    def commands(self) -> list[tuple[str | int, ...]]:
        """Commands that wait."""
        found: list[tuple[str | int, ...]] = []
        if self.replicas:
            found.append(("WAIT", self.replicas, self.millis))
        if self.disks is not None:
            found.append(("WAITAOF", 1, self.disks, self.millis))
        return found

    def require(self, reached: Sequence[Any]) -> None:
        """See by the answers to the commands that a write is as safe as was asked."""
        answers = list(reached)
        if self.replicas and (got := int(answers.pop(0))) < self.replicas:
            raise _not_safe(f"{got} of {self.replicas} replicas have it", "waitReplicas")
        if self.disks is not None:
            own, others = map(int, answers.pop(0))
            if own < 1 or others < self.disks:
                raise _not_safe(f"it is on {own + others} of {1 + self.disks} disks", "waitAof")


def _not_safe(reached: str, option: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"A write to the ledger was not as safe in time as option {option} asks: {reached}",
        why="replicas or a disk are away or slow; a failover could take the epoch back",
        todo="look at the replicas; the query goes on once they are back, and loses or doubles"
        " nothing",
    )


class RedisSession:
    """A client, and where the connector's keys lie.

    Args:
        find: gives the client, which sends each request once; its retries must be off.
        prefix: the hash tag of the connector's own keys.
        durability: what a write of a record waits for.
    """

    def __init__(
        self, find: Callable[[], redis.Redis], prefix: str, durability: Durability
    ) -> None:
        self.find, self.prefix, self.durability = find, prefix, durability
        self.limit = RequestLimit(find)
        self.owes = False  # whether a write has not been seen to be as safe as was asked
        self._scripts: dict[str, Any] = {}

    @property
    def client(self) -> redis.Redis:
        """Of the server where ledger and staged rows lie."""
        return self.find()

    @contextmanager
    def asking(self, doing: str) -> Iterator[None]:
        """See `translated`. After a failover the name may lead elsewhere; connections must, too."""
        try:
            with translated(doing):
                yield
        except Demoted:
            self.client.connection_pool.disconnect(inuse_connections=False)
            raise
        except OtherType as error:
            raise self._wrong_list() or StoreRefused(*error.args) from None

    def _wrong_list(self) -> StoreRefused | None:
        """The error for a list of the connector's own that holds another type; None if none is."""
        with suppress(redis.RedisError):
            for name, kind in LISTS.items():
                key = self.key(name)
                if self.client.type(key) not in (b"none", kind.encode()):
                    todo = f"move it away (RENAME {key} another-name), {RESTART}"
                    return other_type(key, kind, todo)
        return None

    def run(self, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script."""
        return self.run_on(self.client, text, keys, args)

    def run_on(self, client: redis.Redis, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script on a server."""
        return self._script(text)(keys=keys, args=args, client=client)

    def run_durably(self, text: str, keys: list[str], args: list[Any]) -> Any:
        """Run a script, and wait until what it and others before it wrote is as safe as was asked.

        StoreUnreachable means that it took effect, perhaps, and is not as safe.
        """
        self.owes = bool(self.durability.commands())  # also if no answer comes
        answer = self.run_durably_on(self.client, text, keys, args)
        self.owes = False
        return answer

    def run_durably_on(
        self, client: redis.Redis, text: str, keys: list[str], args: list[Any]
    ) -> Any:
        """The same on a server."""
        waits = self.durability.commands()
        if not waits:
            return self.run_on(client, text, keys, args)
        # Over one connection: the server waits for what came over the same one.
        with client.pipeline(transaction=False) as pipe:
            self._script(text)(keys=keys, args=args, client=pipe)
            for command in waits:
                pipe.execute_command(*command)  # type: ignore[no-untyped-call]
            answer, *reached = pipe.execute()
        self.durability.require(reached)
        return answer

    def settle(self) -> None:
        """See that all writes so far are as safe as was asked, if that is not known."""
        if self.owes:
            self.run_durably(PROBE, [self.key("probe")], [])

    def _script(self, text: str) -> Any:
        if text not in self._scripts:
            self._scripts[text] = Script(self.client, text)
        return self._scripts[text]

    def key(self, *parts: str) -> str:
        """A key of the connector's own."""
        return ":".join((f"{{{self.prefix}}}", *parts))

    def record(self, name: str) -> str:
        """Where a record lies."""
        return self.key("record", name)

    def log(self, sink: str, attempt: str) -> str:
        """Where the chunks of an attempt lie."""
        return self.key("log", sink, attempt)

    def of_attempt(self, sink: str, attempt: str) -> list[str]:
        """The record of a sink, and the chunks of an attempt."""
        return [self.record(sink), self.log(sink, attempt)]

    def of_sink(self, name: str) -> list[str]:
        """The record and the attempts of a sink, and what lists all."""
        return self.of_record(name, self.key("staged", name))

    def of_record(self, name: str, beside: str) -> list[str]:
        """What a script is given that writes a record: what lies beside it comes third."""
        lists = self.key("decided"), self.key("open")
        return [self.record(name), self.key("names"), beside, *lists]
