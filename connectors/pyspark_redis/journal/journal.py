"""Ledger records and staged chunks in Redis: the steps that a server and a cluster share.

`pyspark_redis.server.session` lists the keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from pyspark_redis.journal import scripts
from pyspark_redis.server.session import RedisSession
from sparkonce.codec import DELETE, reading, require_kinds
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.protocol import Chunk, Part, Record, Staged


class Journal:
    """The steps of `sparkonce.store.Store` that touch no target."""

    def __init__(self, session: RedisSession) -> None:
        self.session = session

    # -- records

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        with self.session.asking("reading the ledger"):
            self.session.settle()  # a record that was read must be durable
            key = self.session.record(name)
            values = self.session.client.hmget(key, "revision", "stamp", "token", "body")
        return to_record(name, values)

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        given = [name, over, *record_values(new), applied]
        with self.session.asking("writing the ledger"):
            values = self.session.run_durably(scripts.swap(), self.session.of_sink(name), given)
        return to_record(name, values)

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. One script, which frees memory before it writes."""
        given = [name, over, *record_values(new), *attempts]
        with self.session.asking("dooming staged rows"):
            values = self.session.run(scripts.doom(), self._keys(name, attempts), given)
        return to_record(name, values)

    def names(self) -> list[str]:
        """See `Store.names`."""
        return self._sinks("names", "listing the ledgers")

    def unfinished(self, kin: str) -> list[str]:
        """See `Store.unfinished`."""
        found = self._sinks("open", "listing unfinished epochs")
        return [name for name in found if name.endswith(kin)]

    def _sinks(self, which: str, doing: str) -> list[str]:
        key = self.session.key(which)
        with self.session.asking(doing), reading(key):
            return sorted(map(text, self.session.client.smembers(key)))

    def decided_after(self, name: str) -> list[str]:
        """See `Store.decided_after`."""
        key = self.session.key("decided")
        with self.session.asking("listing later decisions"), reading(key):
            found = {text(one): int(at) for one, at in self.session.client.hgetall(key).items()}
        own, kin = found.get(name, 0), kin_of(name)
        return sorted(one for one, at in found.items() if at > own and one.endswith(kin))

    # -- staged chunks

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`. The same step lists the attempt, so that a clean-up can find it."""
        session, task = self.session, chunk.task
        about = json.dumps({"query": task.query_id, "epoch": task.epoch}).removesuffix("}")
        with session.asking("asking the server for its settings"):
            doing = session.limit.staging(len(chunk.payload))
        with session.asking(doing), session.client.pipeline(transaction=True) as pipe:
            pipe.sadd(session.key("names"), task.sink)
            # As text: a server that restarted does not know the script's hash.
            pipe.eval(scripts.stage(), 1, session.key("staged", task.sink), task.attempt, about)
            pipe.hset(session.log(task.sink, task.attempt), str(chunk.seq), chunk.payload)
            pipe.execute()

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """See `Store.staged`. Reads the sizes only if `fresh`, which commits do not set."""
        session, key = self.session, self.session.key("staged", sink)
        with session.asking("listing staged rows"), reading(key, DELETE):
            found = session.client.hgetall(key)
            if not found:
                return []
            with session.client.pipeline(transaction=False) as pipe:
                pipe.time()  # the server's clock, as at staging: hosts may differ
                for attempt in found:
                    pipe.hlen(session.log(sink, text(attempt)))
                (seconds, micros), *counts = pipe.execute()
            sizes = self._sizes(sink, dict(zip(found, counts, strict=True))) if fresh else {}
        now = seconds + micros / 1e6
        with reading(key, DELETE):
            return [
                _to_staged(text(attempt), json.loads(about), count, now, sizes.get(attempt, 0))
                for (attempt, about), count in zip(found.items(), counts, strict=True)
            ]

    def _sizes(self, sink: str, chunks: Mapping[Any, int]) -> dict[Any, int]:
        """The bytes of each attempt; `chunks` has the number of its chunks."""
        with self.session.client.pipeline(transaction=False) as pipe:
            for attempt, count in chunks.items():
                for seq in range(count):
                    pipe.hstrlen(self.session.log(sink, text(attempt)), str(seq))
            answers = iter(pipe.execute())
        return {attempt: sum(islice(answers, count)) for attempt, count in chunks.items()}

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),  # noqa: ARG002
    ) -> None:
        """See `Store.discard`. A script, because a full Redis rejects transactions."""
        if attempts:
            given = [sink, "*" if over is None else over, *attempts]
            with self.session.asking("dropping staged rows"):
                self.session.run(scripts.discard(), self._keys(sink, attempts), given)

    def _keys(self, sink: str, attempts: Iterable[str]) -> list[str]:
        return [*self.session.of_sink(sink), *(self.session.log(sink, one) for one in attempts)]


def _to_staged(attempt: str, about: dict[str, Any], chunks: int, now: float, size: int) -> Staged:
    require_kinds(about, {"query": str, "epoch": int, "at": float})
    age = max(0.0, now - about["at"])
    return Staged(attempt, about["query"], about["epoch"], chunks, age, size)


def record_values(record: Record) -> list[Any]:
    """A record as arguments of a script."""
    return [record.revision, record.stamp, record.token, record.body]


def to_record(name: str, values: Sequence[Any]) -> Record:
    """The record of this name, from the reply of a script."""
    with reading(name):
        revision, stamp, token, body = (text(value or b"") for value in values)
        return Record(int(revision or 0), stamp, token, body)


def text(value: Any) -> str:
    """The text of a value from the server, which is bytes."""
    return str(value, "utf-8")
