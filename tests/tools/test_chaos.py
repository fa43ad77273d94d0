"""The instruments of `make chaos`: the plan, the count, the reader, the result."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from integration.support.servers.elasticsearch import Tree
from tools.chaos import elasticsearch, plan, redis, report
from tools.chaos.alerts import due
from tools.chaos.drivers import EXPECTED
from tools.chaos.oracle import Verdict, compare
from tools.chaos.pipelines.result import Result as PipelinesResult
from tools.chaos.pipelines.result import Struck as PipelineStruck
from tools.chaos.pipelines.stores import apart
from tools.chaos.plan import Fault
from tools.chaos.progress import Progress
from tools.chaos.reader import Reader
from tools.chaos.result import Result, Struck
from tools.chaos.target import BOTH, Counts, Witness
from tools.chaos.topic import Event

from sparkonce import errors

TARGET: Any = SimpleNamespace(
    name="some",
    points=dict.fromkeys(("stage", "decide", "apply")),
    in_driver=("decide", "apply"),
    moves=True,
)
EVENTS = [Event(0, 0, bucket=1, amount=5), Event(0, 1, 1, 7), Event(2, 0, 3, 9)]
ROWS = [Witness(event.partition, event.offset, 1, event.amount) for event in EVENTS]


def counters() -> Counts:
    right = {1: (2, 12), 3: (1, 9)}
    return {(side, bucket): right.get(bucket, (0, 0)) for side, bucket in BOTH}


def test_the_same_seed_draws_the_same_faults() -> None:
    drawn = plan.draw(7, 30, TARGET, disk=True)
    assert drawn == plan.draw(7, 30, TARGET, disk=True)
    assert drawn != plan.draw(8, 30, TARGET, disk=True)


@pytest.mark.parametrize("kills", [0, 1, 3, 20, 100])
def test_plan_has_as_many_kills_as_asked_for(kills: int) -> None:
    drawn = plan.draw(1, kills, TARGET, disk=True)
    assert sum(fault.kind in plan.KILLING for fault in drawn) == kills


def test_every_fault_comes_at_every_point_that_it_can_strike_at() -> None:
    drawn = {(fault.kind, fault.point) for fault in plan.draw(1, 100, TARGET, disk=True)}
    anywhere = {*plan.KILLING, *plan.NETWORK} - {plan.EXECUTOR}
    in_tasks = {(plan.EXECUTOR, "stage"), (plan.STRAGGLER, "stage")}
    everywhere = {(kind, point) for kind in anywhere for point in TARGET.points}
    assert drawn == {*everywhere, *in_tasks, (plan.DISK, "")}


def test_disk_is_left_alone_where_it_can_not_be_filled() -> None:
    assert plan.DISK not in {fault.kind for fault in plan.draw(1, 50, TARGET, disk=False)}


def test_all_is_well() -> None:
    assert compare(EVENTS, ROWS, counters()) == Verdict(rows=3, lost=0, duplicated=0)


def without_a_row() -> tuple[list[Witness], Counts]:
    return ROWS[1:], counters()


def with_a_wrong_row() -> tuple[list[Witness], Counts]:
    return [replace(ROWS[0], amount=6), *ROWS[1:]], counters()


def without_a_count() -> tuple[list[Witness], Counts]:
    return ROWS, {**counters(), ("left", 1): (1, 7)}


def with_a_wrong_sum() -> tuple[list[Witness], Counts]:
    return ROWS, {**counters(), ("left", 1): (2, 13)}


def with_a_row_that_has_not_counted() -> tuple[list[Witness], Counts]:
    return [replace(ROWS[0], times=0, amount=0), *ROWS[1:]], counters()


@pytest.mark.parametrize(
    "spoilt",
    [
        without_a_row,
        with_a_wrong_row,
        with_a_row_that_has_not_counted,
        without_a_count,
        with_a_wrong_sum,
    ],
)
def test_what_is_lost_is_counted(spoilt: Callable[[], tuple[list[Witness], Counts]]) -> None:
    assert compare(EVENTS, *spoilt()) == Verdict(rows=3, lost=1, duplicated=0)


def with_a_row_twice() -> tuple[list[Witness], Counts]:
    return [*ROWS, ROWS[0]], counters()


def with_a_row_that_counted_twice() -> tuple[list[Witness], Counts]:
    return [replace(ROWS[0], times=2, amount=10), *ROWS[1:]], counters()


def with_a_count_too_many() -> tuple[list[Witness], Counts]:
    return ROWS, {**counters(), ("right", 3): (2, 18)}


def with_a_counter_of_nothing() -> tuple[list[Witness], Counts]:
    return ROWS, {**counters(), ("left", 99): (1, 5)}


@pytest.mark.parametrize(
    "spoilt",
    [
        with_a_row_twice,
        with_a_row_that_counted_twice,
        with_a_count_too_many,
        with_a_counter_of_nothing,
    ],
)
def test_what_is_doubled_is_counted(spoilt: Callable[[], tuple[list[Witness], Counts]]) -> None:
    assert compare(EVENTS, *spoilt()) == Verdict(rows=3, lost=0, duplicated=1)


def test_one_that_is_lost_does_not_make_up_for_one_that_is_doubled() -> None:
    rows = [replace(ROWS[0], times=0, amount=0), ROWS[1], *[ROWS[2]] * 2]
    assert compare(EVENTS, rows, counters()) == Verdict(rows=3, lost=1, duplicated=1)


def test_second_document_of_a_counter_is_counted() -> None:
    right = {"side": "left", "bucket": 1, "n": 2, "amount": 12}
    assert elasticsearch._summed(iter([{**right, "n": 1}, right])) == {("left", 1): (3, 24)}


class FakeSearch:
    """Two pages; the second lacks what a merge has moved to the first."""

    def __init__(self, *pages: int) -> None:
        self.pages = iter(pages)

    def search(self, **_: object) -> dict[str, Any]:
        return {"hits": {"hits": [{"_source": {}, "sort": [1]}] * next(self.pages)}}

    def count(self, **_: object) -> dict[str, int]:
        return {"count": 3}


def test_document_that_is_passed_over_between_two_pages_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elasticsearch, "AT_ONCE", 2)
    assert len(list(elasticsearch._documents(FakeSearch(2, 1), "some", ["part"]))) == 3
    with pytest.raises(RuntimeError, match="2 of 3 documents"):
        list(elasticsearch._documents(FakeSearch(2, 0), "some", ["part"]))


def test_elasticsearch_keeps_its_data_on_the_small_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A setting in elasticsearch.yml loses to the command line: that disk was never full."""
    monkeypatch.setattr(elasticsearch, "private_tree", lambda: Tree("9.4.3", tmp_path))
    monkeypatch.setattr("integration.support.servers.elasticsearch.java_for", lambda _: tmp_path)
    with closing(elasticsearch.ElasticsearchTarget(tmp_path / "disk").server) as server:
        assert f"path.data={tmp_path / 'disk' / 'data'}" in server.command()
        assert "path.data" not in (server.settings / "elasticsearch.yml").read_text()


def test_reader_counts_torn_epochs_and_comes_back_after_a_failure() -> None:
    states: Iterator[tuple[int, int] | None] = iter([(1, 1), None, (3, 3), (5, 4), (5, 5)])

    def watch() -> Callable[[], tuple[int, int]]:
        def sides() -> tuple[int, int]:
            state = next(states, (5, 5))
            if state is None:
                raise ConnectionError
            return state

        return sides

    reader = Reader(watch, time.monotonic())
    while reader.reads < 5:
        time.sleep(0.01)
    reader.close()
    assert (reader.torn, reader.changes) == (1, 4)


def test_progress_is_read_from_the_checkpoint(tmp_path: Path) -> None:
    progress = Progress(tmp_path)
    assert progress.epochs() == {"rows": -1, "counters": -1}
    for log, last in (("offsets", 10), ("commits", 9)):
        (tmp_path / "rows" / log).mkdir(parents=True)
        for epoch in range(last + 1):
            ends = json.dumps({"events": {"0": epoch, "1": 2 * epoch}})
            (tmp_path / "rows" / log / str(epoch)).write_text(f"v1\n{{}}\n{ends}")
    (tmp_path / "rows" / "commits" / ".9.crc").touch()
    assert progress.epochs()["rows"] == 9
    assert progress.committed() == {"rows": {0: 9, 1: 18}, "counters": {}}


def result(**changes: Any) -> Result:
    made = Result("redis", seed=1, planned=1, versions={"redis": "7"}, rows=10, seconds=60.0)
    made.struck.append(Struck(Fault(plan.DRIVER, "stage"), 1.0, 2.0, "", {"rows": 1}, 1))
    made.epochs, made.reads = {"rows": 3}, 5
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_result_is_one_line() -> None:
    line = "chaos: store=redis rows=10 kills=1 lost=0 duplicated=0 torn=0 residue=0"
    assert result().line == line
    assert result().good


@pytest.mark.parametrize(
    "harm",
    [
        {"lost": 1},
        {"duplicated": 1},
        {"torn": 1},
        {"residue": ["a chunk"]},
        {"broken": ["two drivers"]},
        {"alarms": ["driver-002: SinkBehindCheckpoint"]},
        {"struck": []},
        {"missed": {"reset at commit": "not within 90 s"}},
        {"rows": 0},
        {"reads": 0},
    ],
    ids=str,
)
def test_result_is_not_good(harm: dict[str, Any]) -> None:
    assert not result(**harm).good


def test_errors_that_are_expected_are_the_connectors() -> None:
    assert vars(errors).keys() >= EXPECTED


def pipelines(**changed: Any) -> PipelinesResult:
    struck = PipelineStruck("failover", 1.0, 2.0, "", {})
    made = PipelinesResult(seed=1, kills=2, asked=3, versions={}, struck=[struck])
    made.lost = made.doubled = {"log-to-index": 0}
    made.epochs = {"log-to-index": 7}
    return replace(made, **changed)


@pytest.mark.parametrize(
    "harm",
    [
        {"lost": {"log-to-index": 1}},
        {"doubled": {"log-to-index": 1}},
        {"lost": {}},
        {"alarms": ["TypeError, once"]},
        {"broken": ["a query did not get on"]},
    ],
    ids=str,
)
def test_result_of_pipelines_is_not_good(harm: dict[str, Any]) -> None:
    assert pipelines().good
    assert not pipelines(**harm).good


def test_rows_that_are_lost_stale_or_too_many_are_counted() -> None:
    source = {1: (1, "a"), 2: (2, "b"), 3: (3, None)}
    assert apart(source, source) == (0, 0)
    assert apart(source, {1: (1, "a"), 2: (2, "x"), 4: (4, "b")}) == (2, 1)


def test_page_is_made_from_records(tmp_path: Path) -> None:
    result().write(tmp_path / "redis.json")
    pipelines().write(tmp_path / report.PIPELINES)
    page = report.page(*report.records(tmp_path))
    assert "redis 7 | 10 | 1 | 0 | 0 | 4 | 1 | 1 | 0 | 0 | 0 of 5 | 0\n" in page
    assert "\ndriver killed | 1\n" in page
    assert "\nlog-to-index | 8 | 0 | 0\n" in page
    assert "\nfailover | 1\n" in page


class FakeRedis:
    def __init__(self, names: list[bytes]) -> None:
        self.names = names

    def __call__(self, _: str) -> FakeRedis:
        return self

    def __enter__(self) -> FakeRedis:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def scan_iter(self, pattern: str, **_: int) -> Iterator[bytes]:
        return (name for name in self.names if fnmatch(name.decode(), pattern))


def test_all_that_is_left_in_redis_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = [b"{sparkonce}:record:s", b"{sparkonce}:names", b"event:0:1", b"count:left:1"]
    left = [b"{sparkonce}:log:s:a", b"{sparkonce}:staged:s", b"{other}:log:s:a"]
    target = SimpleNamespace(url="")
    monkeypatch.setattr(redis, "connect", FakeRedis(ours))
    assert redis.RedisTarget.residue(target) == []  # type: ignore[arg-type]
    monkeypatch.setattr(redis, "connect", FakeRedis([*ours, *left]))
    assert redis.RedisTarget.residue(target) == [name.decode() for name in left]  # type: ignore[arg-type]


def test_page_takes_no_run_that_is_not_good(tmp_path: Path) -> None:
    result(broken=["two drivers ran on"]).write(tmp_path / "redis.json")
    with pytest.raises(ValueError, match="not good: redis"):
        report.records(tmp_path)


def test_page_on_record_is_what_the_records_say() -> None:
    assert report.PAGE.read_text() == report.page(*report.records()), "run `make reliability`"


def test_faults_call_for_alerts() -> None:
    def struck(kind: str, point: str, fate: str = plan.NEVER, outage: float = 0.0) -> Struck:
        return Struck(Fault(kind, point, 1, fate, outage=outage), 1.0, 2.0, "", {}, 1)

    always = {"EpochLate", "ApplySlow", "DeadLetters", "NothingStored"}
    brief = struck(plan.STORE, "stage", outage=1.0)
    assert due([brief], leftovers=False, stepwise=True) == always
    long = [struck(plan.STORE, "stage"), struck(plan.TREE, "apply")]
    assert due(long, leftovers=True, stepwise=True) - always == {
        *("StoreUnreachable", "EpochUnfinished", "Leftovers"),
    }
    assert due(long, leftovers=False, stepwise=False) - always == {"StoreUnreachable"}
