"""The protocol's steps in Redis. All own keys lie under one hash tag, so in one slot::

{sparkonce}:names            set of the names of all records, and of sinks with staged rows
{sparkonce}:record:<name>    a record, see lua/record.lua
{sparkonce}:staged:<sink>    hash: attempt -> what is known of it, as JSON
{sparkonce}:log:<sink>:<attempt>   hash: seq -> chunk
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import redis

from pyspark_redis import health, preflight
from pyspark_redis.journal import scripts
from pyspark_redis.models.model import Values
from pyspark_redis.server.failures import Demoted, refusal, translated
from pyspark_redis.target import emptying
from sparkonce.errors import (
    RowRefused,
    StagedDataMissing,
    StoreLostData,
    StoreUnreachable,
)
from sparkonce.exactly_once import losses
from sparkonce.health import Finding
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Chunk,
    Decision,
    Finish,
    Manifest,
    P,
    Part,
    Record,
    Staged,
    ignore,
)

SMALL_BYTES = 2 * 1024 * 1024


class RedisStore:
    """See `sparkonce.store.Store`.

    Args:
        client: sends each request once; its retries must be off.
        prefix: the hash tag of the connector's own keys.

    Attributes:
        small_cost: up to this (`Values.cost`) one script publishes: < 20 ms of a blocked server.
    """

    small_cost = 48_000

    def __init__(self, client: redis.Redis, prefix: str) -> None:
        self.client, self.prefix = client, prefix
        self._room = preflight.Room(client)
        self._scripts: dict[str, Any] = {}

    def check(self, plan: P) -> P:
        """Refuse a server that could lose the ledger, or rows that expire."""
        expiring = plan is not None and plan.detail.ttl is not None
        with self._asking("asking the server for its settings"):
            preflight.require_fit(self.client, expiring=expiring)
        return plan

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        with self._asking("asking the server for its settings"):
            yield from health.examine(self.client)

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        with self._asking("reading the ledger"):
            values = self.client.hmget(self._record(name), "revision", "stamp", "token", "body")
        return _to_record(values)

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        with self._asking("writing the ledger"):
            values = self._run(
                scripts.swap(),
                self._of_sink(name),
                [name, over, *_from_record(new), applied],
            )
        return _to_record(values)

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. One script, that makes room before it writes."""
        with self._asking("dooming staged rows"):
            values = self._run(
                scripts.doom(),
                [*self._of_sink(name), *(self._log(name, attempt) for attempt in attempts)],
                [name, over, *_from_record(new), *attempts],
            )
        return _to_record(values)

    def names(self) -> list[str]:
        """See `Store.names`."""
        with self._asking("listing the ledgers"):
            return sorted(_text(name) for name in self.client.smembers(self._key("names")))

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`. The attempt is listed in the same step, so that it can be cleaned."""
        task = chunk.task
        about = json.dumps({"query": task.query_id, "epoch": task.epoch}).removesuffix("}")
        with self._asking("asking the server for its settings"):
            doing = self._room.staging(len(chunk.payload))
        with self._asking(doing), self.client.pipeline(transaction=True) as pipe:
            pipe.sadd(self._key("names"), task.sink)
            # As text: a server that has lost its scripts would refuse it by name.
            pipe.eval(scripts.note(), 1, self._key("staged", task.sink), task.attempt, about)
            pipe.hset(self._log(task.sink, task.attempt), str(chunk.seq), chunk.payload)
            pipe.execute()

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """See `Store.staged`; no commit asks for what is `fresh`, and for the sizes."""
        with self._asking("listing staged rows"):
            found = self.client.hgetall(self._key("staged", sink))
            if not found:
                return []
            with self.client.pipeline(transaction=False) as pipe:
                pipe.time()  # the clock by which `note` noted them: hosts have their own
                for attempt in found:
                    pipe.hlen(self._log(sink, _text(attempt)))
                (seconds, micros), *counts = pipe.execute()
            sizes = self._sizes(sink, dict(zip(found, counts, strict=True))) if fresh else {}
        now = seconds + micros / 1e6
        return [
            _to_staged(_text(attempt), json.loads(about), count, now, sizes.get(attempt, 0))
            for (attempt, about), count in zip(found.items(), counts, strict=True)
        ]

    def _sizes(self, sink: str, chunks: Mapping[Any, int]) -> dict[Any, int]:
        """The bytes of attempts, by how many chunks each has."""
        with self.client.pipeline(transaction=False) as pipe:
            for attempt, count in chunks.items():
                for seq in range(count):
                    pipe.hstrlen(self._log(sink, _text(attempt)), str(seq))
            answers = iter(pipe.execute())
        return {attempt: sum(islice(answers, count)) for attempt, count in chunks.items()}

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Nothing is needed."""
        return manifest

    def publish(self, decision: Decision, finish: Finish) -> Record | None:
        """See `Store.publish`. One script, if the epoch is small."""
        manifest = decision.manifest
        size = sum(sum(part.sizes) for part in manifest.parts)
        values = Values.load(manifest.detail)
        large = manifest.rows * values.cost > self.small_cost or size > SMALL_BYTES
        if large or values.overwrites:  # a target is emptied in many steps
            return None
        script = scripts.publish(values.library)
        records = [*_from_record(decision.record), *_from_record(finish(ALL_STORED))]
        with self._asking(f"publishing epoch {manifest.epoch}"):
            return self._decided(script, decision, json.dumps(manifest.detail), *records)

    def decide(self, decision: Decision) -> Record:
        """See `Store.decide`."""
        with self._asking(f"deciding epoch {decision.manifest.epoch}"):
            return self._decided(scripts.decide(), decision, *_from_record(decision.record))

    def _decided(self, script: str, decision: Decision, *args: Any) -> Record:
        """Run a script that decides, over all chunks of a manifest."""
        manifest, (name, text) = decision.manifest, decision.beside or ("", "")
        logs = [self._log(manifest.sink, part.attempt) for part in manifest.parts]
        chunks = [
            value
            for index, part in enumerate(manifest.parts)
            for seq, size in enumerate(part.sizes)
            for value in (index + 4, seq, size)  # KEYS count from 1; three stand before the logs
        ]
        status, first, second, *values = self._run(
            script,
            [self._record(manifest.sink), self._key("names"), self._record(name), *logs],
            [manifest.sink, decision.over, *args, name, text, *chunks],
        )
        if status == b"missing":
            raise _missing(manifest, _text(first).rpartition(":")[2], int(second))
        if status == b"refused":
            raise _refused(manifest, first, second)
        return _to_record(values)

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = ignore,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`. One script a chunk."""
        values = Values.load(manifest.detail)
        if values.overwrites:
            self._clear(manifest, values)
        script = scripts.apply(values.library)
        plan = json.dumps(manifest.detail)  # as it was decided, whatever today's options say
        for ordinal, (part, seq) in enumerate(manifest.chunks):
            with self._asking(f"applying epoch {manifest.epoch}"):
                status, *detail = self._run(
                    script,
                    [self._record(manifest.sink), self._log(manifest.sink, part.attempt)],
                    [manifest.token, ordinal, seq, part.rows[seq], plan],
                )
            if status == b"superseded":  # another decision came: these rows may be old
                break
            if status == b"refused":
                raise _refused(manifest, *detail)
            if status == b"early":  # tried again, from the first chunk that is not applied
                raise StoreUnreachable(f"Redis lost progress of epoch {manifest.epoch} (failover)")
            if status != b"applied":
                raise _lost(manifest, part.attempt, seq)
            advance(part.rows[seq])
        return ALL_STORED

    def _clear(self, manifest: Manifest, values: Values) -> None:
        """Delete what the rows of an overwrite replace, unless that is done."""
        with self._asking(f"emptying the target in epoch {manifest.epoch}"):
            for keys, last in emptying.found(self.client, values.key.pattern, self._key("")):
                given = [self._record(manifest.sink), *keys]
                if not self._run(scripts.clear(), given, [manifest.token, int(last)]):
                    return

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),  # noqa: ARG002
    ) -> None:
        """See `Store.discard`. A script, since Redis takes no transaction when it is full."""
        if attempts:
            logs = [self._log(sink, attempt) for attempt in attempts]
            with self._asking("dropping staged rows"):
                guard = "*" if over is None else over
                keys = [*self._of_sink(sink), *logs]
                self._run(scripts.discard(), keys, [sink, guard, *attempts])

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """See `translated`. After a failover the name may lead elsewhere; connections must, too."""
        try:
            with translated(doing):
                yield
        except Demoted:
            self.client.connection_pool.disconnect(inuse_connections=False)
            raise

    def _run(self, text: str, keys: list[str], args: list[Any]) -> Any:
        if text not in self._scripts:
            self._scripts[text] = self.client.register_script(text)
        return self._scripts[text](keys=keys, args=args)

    def _key(self, *parts: str) -> str:
        return ":".join((f"{{{self.prefix}}}", *parts))

    def _of_sink(self, name: str) -> list[str]:
        return [self._record(name), self._key("names"), self._key("staged", name)]

    def _record(self, name: str) -> str:
        return self._key("record", name)

    def _log(self, sink: str, attempt: str) -> str:
        return self._key("log", sink, attempt)


def _text(value: Any) -> str:
    return str(value, "utf-8")


def _from_record(record: Record) -> list[Any]:
    return [record.revision, record.stamp, record.token, record.body]


def _to_record(values: Sequence[Any]) -> Record:
    revision, stamp, token, body = (value or b"" for value in values)
    return Record(int(revision or 0), _text(stamp), _text(token), _text(body))


def _to_staged(attempt: str, about: dict[str, Any], chunks: int, now: float, size: int) -> Staged:
    age = max(0.0, now - about["at"])
    return Staged(attempt, about["query"], about["epoch"], chunks, age, size)


def _missing(manifest: Manifest, attempt: str, seq: int) -> StagedDataMissing:
    why = "the server was emptied or restarted without persistence while the epoch was staged"
    return losses.missing(manifest, attempt, seq, why)


def _lost(manifest: Manifest, attempt: str, seq: int) -> StoreLostData:
    return losses.lost(
        manifest,
        attempt,
        seq,
        why="the server lost data, or someone deleted the connector's keys",
        todo="restore the server from a backup and restart the query; without one, the rows of"
        " this epoch must be written by hand, see docs/redis.md",
    )


def _refused(manifest: Manifest, key: bytes, reason: bytes) -> RowRefused:
    text = reason.decode(errors="replace")
    known = refusal(text)
    return RowRefused(
        f"Redis refused key {key.decode(errors='replace')!r} in epoch {manifest.epoch}: {text}."
        " The epoch stays decided; the rows before this one have taken effect",
        why=known.why,
        todo=known.todo,
    )
