"""Chaos runs of batches: `python -m tools.chaos --store batches`.

One driver reads Kafka twice: `foreachBatch` writes each batch into three targets, and a sink writes
each event into one of the same targets. Two orchestrators write named batches into all of them,
version after version, and replace the content of other targets. An operator runs `sparkonce
recover` at random. At the end every row of every writer must have taken effect once.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyspark
from click.testing import CliRunner
from integration.support.servers.kafka import VERSION, KafkaProcess
from tools.chaos.batch_stores import BatchStores, Effects
from tools.chaos.drivers import EXPECTED, Broken, ChaosSpark, DriverKeeper, Mode, errors_in
from tools.chaos.orchestrator import ROWS, Jobs
from tools.chaos.plan import DRIVER, TREE, WORKER, shuffled
from tools.chaos.query import Query, Write
from tools.chaos.target import has
from tools.chaos.three_stores import FEED, KILLED, ThreeStoresResult, ThreeStoresRun
from tools.chaos.topic import NAME, Topic
from tools.chaos.world import ends_of

from sparkonce import __version__
from sparkonce.operate.cli import main as sparkonce
from sparkonce.tck.spark.processes import Session

EACH, SINK = "foreach", "sink"
COLUMNS = ("writer", "n", "one", "draw")
JOBS = ("job_a", "job_b")
JOB_KILLED = {name: f"{name} killed" for name in JOBS}
DECK = (*[DRIVER, TREE, WORKER] * 2, *KILLED.values(), *[*JOB_KILLED.values()] * 2)
REQUESTS = {
    "a script": ("redis", has(b"\r\nEVALSHA\r\n")),
    "the ledger": ("mysql", has(b"`sparkonce_ledger`")),
    "the table": ("mysql", has(b" INTO", b"`shared`")),
    "a bulk": ("elasticsearch", has(b"/_bulk")),
    "a record": ("elasticsearch", has(b"/sparkonce-ledger/_doc/record")),
}
MOST, PATIENCE = "2000", 300.0
BATCHES_EXPECT = EXPECTED | {"BatchUnfinished", "BatchOvertaken"}
"""The errors that a batch may raise, and that a repetition or the operator ends."""
OPERATES = 2.0
"""The longest pause of the operator, in seconds."""

FAR = 1_000_000_000
"""The number of a row: that of its partition times this, plus its offset."""


class Orchestrator:
    """Keeps the process of an orchestrator running."""

    def __init__(self, name: str, stores: BatchStores, home: Path, spark: ChaosSpark) -> None:
        self.home, self.spark = home / name, spark
        self.home.mkdir(parents=True)
        appends, overwrites = stores.appends(), stores.overwrites(name)
        self.jobs = Jobs(name, spark.settings(Mode()), appends, overwrites, str(self.home))
        self.jobs.write(self.home / "jobs.json")
        self.process: Session | None = None
        self.starts = 0

    def tend(self) -> None:
        """Start the process, again if it has ended."""
        if self.process and not self.process.alive:
            self.kill()
        if self.process is None and not self.jobs.must_end.exists():
            program = [
                sys.executable,
                "-m",
                "tools.chaos.orchestrator",
                str(self.home / "jobs.json"),
            ]
            self.starts += 1
            self.process = Session(program, self.home / f"{self.starts:03d}.log", self.spark.env)

    def kill(self) -> None:
        """Kill the process with its workers."""
        if self.process:
            self.process.close()
            self.process = None

    @property
    def ended(self) -> bool:
        """Whether the process has ended, after the version that it was writing."""
        return self.process is None or not self.process.alive

    def alarms(self) -> list[str]:
        """Errors without a cause, in all logs."""
        logs = (path.read_text(errors="replace") for path in sorted(self.home.glob("*.log")))
        found = set[str]().union(*map(errors_in, logs)) - BATCHES_EXPECT
        return [f"{self.jobs.name}: {', '.join(sorted(found))}"] if found else []


class BatchesDriver(DriverKeeper):
    """Runs both queries, and both orchestrators."""

    def __init__(self, stores: BatchStores, topic: Topic, home: Path, spark: ChaosSpark) -> None:
        super().__init__(home, spark, (EACH, SINK))
        self.stores, self.topic = stores, topic
        self.jobs = {name: Orchestrator(name, stores, home, spark) for name in JOBS}

    def feed(self) -> None:
        self.topic.produce(FEED)

    def supervise(self) -> None:
        super().supervise()
        for job in self.jobs.values():
            job.tend()

    def close(self) -> None:
        super().close()
        for job in self.jobs.values():
            job.kill()

    def drained(self) -> bool:
        """Whether both queries have committed all events."""
        ends, epochs = self.topic.ends(), self.epochs()
        return all(ends_of(self.checkpoint(one), epochs[one]) == ends for one in self.names)

    def _queries(self) -> Mapping[str, Query]:
        appends = self.stores.appends()
        ((_, columns, options),) = (one for one in appends if one[0] == "mysql")
        return {
            EACH: self._query(EACH, "", COLUMNS, {}, appends),
            SINK: self._query(SINK, "mysql", columns, options, ()),
        }

    def _query(
        self,
        name: str,
        sink: str,
        columns: Sequence[str],
        options: Mapping[str, str],
        batches: Sequence[Write],
    ) -> Query:
        reads = {
            "kafka.bootstrap.servers": self.topic.address,
            "subscribe": NAME,
            "startingOffsets": "earliest",
            "maxOffsetsPerTrigger": MOST,
        }
        drawn = (f"'{name}' as writer", f"partition * {FAR}L + offset as n", "1L as one")
        writes = {**options, "checkpointLocation": str(self.checkpoint(name))}
        shown = ["cast(draw as string) as draw" if one == "draw" else one for one in columns]
        return Query(("kafka", sink), reads, writes, shown, drawn, batches=batches)


class BatchesRun(ThreeStoresRun):
    """A run over all writers."""

    keeper: BatchesDriver
    stores: BatchStores
    result: BatchesResult
    requests = REQUESTS

    def run(self, stack: ExitStack) -> None:
        self.chance = random.Random(self.seed)
        self.stores = BatchStores(stack)
        self.stores.prepare(JOBS)
        broker = stack.enter_context(KafkaProcess())
        spark = stack.enter_context(closing(ChaosSpark(self.home / "spark")))
        topic = Topic(broker.address, self.seed)
        self.keeper = BatchesDriver(self.stores, topic, self.home, spark)
        stack.callback(self.keeper.close)
        self.jobs = self.keeper.jobs
        versions = {"sparkonce": __version__, "pyspark": pyspark.__version__, "kafka": VERSION}
        self.result = BatchesResult(
            seed=self.seed,
            kills=self.kills,
            asked=self.rows,
            versions=versions | self.stores.versions(),
        )
        self._operates = 0.0
        self.tell(", ".join(" ".join(one) for one in self.result.versions.items()))
        topic.produce(self.rows // 4)
        for step in (
            partial(self.strike_all, list(self._faults())),
            self._finish,
            self._judge,
            self._count,
        ):
            self.take(step)

    def _faults(self) -> Iterator[str]:
        for fault in islice(shuffled(self.chance, DECK), self.kills):
            yield fault
            cut = self.chance.choice(("reset", "cut reply"))
            yield f"{cut} at {self.chance.choice([*REQUESTS])}"

    def approach(self, _: str) -> None:
        self.keeper.advance(1, PATIENCE)
        self.keeper.topic.produce(max(FEED, self.rows // (3 * self.kills + 1)))
        self.run_for(self.chance.uniform(0.1, 6.0))

    def inject(self, fault: str) -> str:
        seen = self._inject(fault)
        if "killed" in fault:  # before the next process can finish the epoch
            for name in self.stores.servers:
                self._recover(name)
        self.run_for(1.0)
        return seen

    def _inject(self, fault: str) -> str:
        for name, kind in JOB_KILLED.items():
            if fault == kind:
                self.jobs[name].kill()
                return f"after version {self.jobs[name].jobs.done}"
        return super().inject(fault)

    def tend(self) -> None:
        super().tend()
        if time.monotonic() > self._operates:
            self._operates = time.monotonic() + self.chance.uniform(0.0, OPERATES)
            self._recover(self.chance.choice([*self.stores.servers]))

    def _recover(self, name: str) -> None:
        """Do what an operator does who sees that an epoch is not finished."""
        url = self.stores.url(name)
        done = CliRunner().invoke(sparkonce, ["recover", url, "--json"])
        if done.exception and not isinstance(done.exception, SystemExit):
            self.result.alarms.append(f"recover: {done.exception!r}")
            return
        try:
            found = json.loads(done.stdout)
        except ValueError:  # the store is unreachable, which is said in words
            return
        for one in found if isinstance(found, list) else []:
            what = "error" if "error" in one else "finished" if one["applied"] else "in time"
            self.result.recovered[what] = self.result.recovered.get(what, 0) + 1
            if "--over-newer" in one.get("error", ""):
                command = ["recover", url, "--sink", one["sink"], "--over-newer", "--json"]
                CliRunner().invoke(sparkonce, command)
                self.result.recovered["overtaken"] = self.result.recovered.get("overtaken", 0) + 1

    # -- the end

    def _finish(self) -> None:
        """Let all writers end without faults."""
        self.keeper.topic.produce(max(1, self.rows - self.keeper.topic.produced))
        self.say("no more faults; the writers end")
        limit = time.monotonic() + PATIENCE + self.rows / 500
        while not self.keeper.drained() and time.monotonic() < limit:
            self.run_for(1.0)
        before = {name: job.jobs.done for name, job in self.jobs.items()}
        while stuck := [one for one, job in self.jobs.items() if job.jobs.done <= before[one]]:
            self.run_for(1.0)
            if time.monotonic() > limit:
                raise Broken(f"{', '.join(stuck)} wrote no further version")
        for job in self.jobs.values():
            job.jobs.must_end.touch()
        while not all(job.ended for job in self.jobs.values()) and time.monotonic() < limit:
            time.sleep(0.5)

    def _judge(self) -> None:
        self.judge()
        self.result.alarms += [alarm for job in self.jobs.values() for alarm in job.alarms()]

    def _count(self) -> None:
        ends = self.keeper.topic.ends()
        events = [at * FAR + one for at, end in ends.items() for one in range(end)]
        expected = Effects((EACH, n) for n in events)
        for name, job in self.jobs.items():
            expected.update((name, n) for n in range((job.jobs.done + 1) * ROWS))
        self.result.rows = expected.total() + len(events)
        for store, found in self.stores.effects().items():
            more = Effects((SINK, n) for n in events) if store == "mysql" else Effects()
            self._compare(store, expected + more, found)
        for name, job in self.jobs.items():
            for at, found in enumerate(self.stores.latest(name)):
                last = max(range(at, job.jobs.done + 1, 3), default=-1)
                rows = range(last * ROWS, (last + 1) * ROWS) if last >= 0 else range(0)
                self._compare(f"latest of {name}, {at}", Counter((n, last) for n in rows), found)
        for store, rows in self.stores.appended().items():
            draws = dict[tuple[str, int], set[str]]()
            for writer, n, draw in rows:
                if writer in JOBS:
                    draws.setdefault((writer, n // ROWS), set()).add(draw)
            self.result.broken += [
                f"{store}: version {version} of {writer} mixes two computations"
                for (writer, version), found in draws.items()
                if len(found) > 1
            ]
        self.result.versions_done = {name: job.jobs.done for name, job in self.jobs.items()}

    def _compare(self, what: str, wanted: Counter[Any], found: Counter[Any]) -> None:
        self.result.lost[what] = (wanted - found).total()
        self.result.duplicated[what] = (found - wanted).total()


@dataclass(kw_only=True)
class BatchesResult(ThreeStoresResult):
    """The result of a run.

    Attributes:
        recovered: what `sparkonce recover` of the operator did, with counts.
        versions_done: the last version of each orchestrator.
    """

    name = "batches"
    recovered: dict[str, int] = field(default_factory=dict)
    versions_done: Mapping[str, int] = field(default_factory=dict)
