"""The protocol's steps in Redis; `pyspark_redis.server.session` says where they keep what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import redis

from pyspark_redis import health
from pyspark_redis.journal import letterbox, records, scripts
from pyspark_redis.journal.dead_letters import DeadLetters
from pyspark_redis.journal.records import text
from pyspark_redis.server.session import Session
from pyspark_redis.server.settings import Room
from pyspark_redis.write import preflight
from pyspark_redis.write.delivery import Delivery, RedisDelivery
from sparkonce.codec import DELETE, reading, require_kinds
from sparkonce.exactly_once.bad_rows import NONE, MaxBadRows
from sparkonce.exactly_once.ledger import kin_of
from sparkonce.health import Finding
from sparkonce.protocol import (
    ALL_STORED,
    Advance,
    Applied,
    Chunk,
    Finish,
    Manifest,
    P,
    Part,
    Proposal,
    Record,
    Staged,
    no_progress,
)


class RedisStore:
    """See `sparkonce.store.Store`.

    Args:
        session: of the server.
        dead_letters: takes rows that can't be stored; None if one of them stops the epoch. Epochs
            that are decided keep to what was said then.
        most: how many rows of an epoch it takes.

    Attributes:
        small_cost: up to this (`Values.cost`) one script publishes: < 20 ms of a blocked server.
    """

    small_cost = 48_000

    def __init__(
        self,
        session: Session,
        dead_letters: DeadLetters | None = None,
        most: MaxBadRows = NONE,
    ) -> None:
        self.session, self.dead_letters, self.most = session, dead_letters, most
        self._room = Room(lambda: self.client)

    @property
    def client(self) -> redis.Redis:
        """Of the server where ledger and staged rows lie."""
        return self.session.client

    def check(self, plan: P) -> P:
        """Refuse a server that could lose the ledger, or rows that expire."""
        expiring = plan is not None and plan.detail.expires
        with self.session.asking("asking the server for its settings"):
            preflight.require_fit(self.client, expiring=expiring)
            if self.dead_letters:
                self.dead_letters.require_fit()
        return plan

    def examine(self) -> Iterator[Finding]:
        """See `sparkonce.health`."""
        with self.session.asking("asking the server for its settings"):
            yield from health.examine(self.client, self.session.key("probe"))

    def read(self, name: str) -> Record:
        """See `Store.read`."""
        with self.session.asking("reading the ledger"):
            self.session.settle()  # what is read counts as written
            key = self.session.record(name)
            values = self.client.hmget(key, "revision", "stamp", "token", "body")
        return records.record(name, values)

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """See `Store.swap`."""
        with self.session.asking("writing the ledger"):
            values = self.session.run_durably(
                scripts.swap(),
                self.session.of_sink(name),
                [name, over, *records.values(new), applied],
            )
        return records.record(name, values)

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """See `Store.doom`. One script, that makes room before it writes."""
        with self.session.asking("dooming staged rows"):
            values = self.session.run(
                scripts.doom(),
                [
                    *self.session.of_sink(name),
                    *(self.session.log(name, attempt) for attempt in attempts),
                ],
                [name, over, *records.values(new), *attempts],
            )
        return records.record(name, values)

    def names(self) -> list[str]:
        """See `Store.names`."""
        key = self.session.key("names")
        with self.session.asking("listing the ledgers"):
            return records.named(key, self.client.smembers(key))

    def unfinished(self, kin: str) -> list[str]:
        """See `Store.unfinished`."""
        key = self.session.key("open")
        with self.session.asking("listing unfinished epochs"):
            found = records.named(key, self.client.smembers(key))
        return [name for name in found if name.endswith(kin)]

    def decided_after(self, name: str) -> list[str]:
        """See `Store.decided_after`."""
        key = self.session.key("decided")
        with self.session.asking("looking who has decided since"), reading(key):
            found = {text(one): int(at) for one, at in self.client.hgetall(key).items()}
        own, kin = found.get(name, 0), kin_of(name)
        return sorted(one for one, at in found.items() if at > own and one.endswith(kin))

    def stage(self, chunk: Chunk) -> None:
        """See `Store.stage`. The attempt is listed in the same step, so that it can be cleaned."""
        task = chunk.task
        about = json.dumps({"query": task.query_id, "epoch": task.epoch}).removesuffix("}")
        with self.session.asking("asking the server for its settings"):
            doing = self._room.staging(len(chunk.payload))
        with self.session.asking(doing), self.client.pipeline(transaction=True) as pipe:
            pipe.sadd(self.session.key("names"), task.sink)
            # As text: a server that has lost its scripts would refuse it by name.
            pipe.eval(scripts.note(), 1, self.session.key("staged", task.sink), task.attempt, about)
            pipe.hset(self.session.log(task.sink, task.attempt), str(chunk.seq), chunk.payload)
            pipe.execute()

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """See `Store.staged`; no commit asks for what is `fresh`, and for the sizes."""
        key = self.session.key("staged", sink)
        with self.session.asking("listing staged rows"), reading(key, DELETE):
            found = self.client.hgetall(key)
            if not found:
                return []
            with self.client.pipeline(transaction=False) as pipe:
                pipe.time()  # the clock by which `note` noted them: hosts have their own
                for attempt in found:
                    pipe.hlen(self.session.log(sink, text(attempt)))
                (seconds, micros), *counts = pipe.execute()
            sizes = self._sizes(sink, dict(zip(found, counts, strict=True))) if fresh else {}
        now = seconds + micros / 1e6
        with reading(key, DELETE):
            return [
                _to_staged(text(attempt), json.loads(about), count, now, sizes.get(attempt, 0))
                for (attempt, about), count in zip(found.items(), counts, strict=True)
            ]

    def _sizes(self, sink: str, chunks: Mapping[Any, int]) -> dict[Any, int]:
        """The bytes of attempts, by how many chunks each has."""
        with self.client.pipeline(transaction=False) as pipe:
            for attempt, count in chunks.items():
                for seq in range(count):
                    pipe.hstrlen(self.session.log(sink, text(attempt)), str(seq))
            answers = iter(pipe.execute())
        return {attempt: sum(islice(answers, count)) for attempt, count in chunks.items()}

    def prepare(self, manifest: Manifest) -> Manifest:
        """See `Store.prepare`. Nothing is needed."""
        return manifest

    def publish(self, decision: Proposal, finish: Finish) -> Record | None:
        """See `Store.publish`. One script, if the epoch is small."""
        delivery = self._delivery(decision.manifest)
        if not isinstance(delivery, Delivery) or not delivery.fits_one_step(self.small_cost):
            return None
        return delivery.publish(decision, finish(ALL_STORED))

    def decide(self, decision: Proposal) -> Record:
        """See `Store.decide`."""
        return self._delivery(decision.manifest).decide(decision)

    def apply(
        self,
        manifest: Manifest,
        advance: Advance = no_progress,
        since: float | None = None,  # noqa: ARG002
    ) -> Applied:
        """See `Store.apply`."""
        return self._delivery(manifest).apply(advance)

    def _delivery(self, manifest: Manifest) -> RedisDelivery:
        return Delivery(self.session, manifest, self.most)

    def letterboxes(self) -> list[letterbox.Box]:
        """See `sparkonce.letterbox.KeepsLetters`."""
        if self.dead_letters:
            return [letterbox.Box(self.session, self.dead_letters.name)]
        return list(letterbox.boxes(self.session))

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),  # noqa: ARG002
    ) -> None:
        """See `Store.discard`. A script, since Redis takes no transaction when it is full."""
        if attempts:
            logs = [self.session.log(sink, attempt) for attempt in attempts]
            with self.session.asking("dropping staged rows"):
                guard = "*" if over is None else over
                keys = [*self.session.of_sink(sink), *logs]
                self.session.run(scripts.discard(), keys, [sink, guard, *attempts])


def _to_staged(attempt: str, about: dict[str, Any], chunks: int, now: float, size: int) -> Staged:
    require_kinds(about, {"query": str, "epoch": int, "at": float})
    age = max(0.0, now - about["at"])
    return Staged(attempt, about["query"], about["epoch"], chunks, age, size)
