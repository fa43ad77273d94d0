"""The `sparkonce` command over a real Redis."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import urllib.request

import pytest
from click.testing import CliRunner, Result
from integration.support.epochs import COUNTER, DirectQuery, ones
from integration.support.redis import Private
from integration.support.servers.redis import RedisProcess
from redis import Redis

from sparkonce.errors import BatchUnfinished, RowRefused
from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk, Follows, Task


@pytest.fixture
def server(private_redis: Private) -> RedisProcess:
    return private_redis()


@pytest.fixture
def query(server: RedisProcess) -> DirectQuery:
    return DirectQuery(COUNTER, url=server.url, key="c:{id}", writeMode="increment")


def sparkonce(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=answer, catch_exceptions=False)


def test_status_shows_query_epoch_rows_and_what_is_staged(
    server: RedisProcess, query: DirectQuery
) -> None:
    query.run(0, ones(range(1500)))
    query.stage(1, ones(range(5)))
    (sink,) = json.loads(sparkonce("status", server.url, "--json").output)
    assert sink["query"] == query.query_id
    assert (sink["epoch"], sink["rows"], sink["state"]) == (0, 1500, "nothing waits")
    assert (sink["staged_attempts"], sink["staged_chunks"]) == (1, 1)
    table = sparkonce("status", server.url).output
    assert "1,500" in table
    assert query.query_id in table
    assert "none: a batch, or a temporary folder" in table


def test_recover_finishes_a_decided_epoch_without_spark(
    server: RedisProcess, query: DirectQuery
) -> None:
    with Redis.from_url(server.url, decode_responses=True) as client:
        client.set("c:7", "in the way")
        with pytest.raises(RowRefused):
            query.run(0, ones(range(10)))
        failed = sparkonce("recover", server.url)
        assert failed.exit_code == 1
        assert "rename or delete that key" in failed.output
        client.delete("c:7")
        done = json.loads(sparkonce("recover", server.url, "--json").output)
        assert [(one["epoch"], one["rows"]) for one in done] == [(0, 10)]
        assert [client.hget(f"c:{i}", "n") for i in range(10)] == ["1"] * 10
    assert sparkonce("recover", server.url).output == "0 epochs recovered.\n"
    unknown = sparkonce("recover", server.url, "--sink", "nobody")
    assert unknown.exit_code == 1
    assert "No sink is named 'nobody'" in unknown.output


@pytest.mark.parametrize(
    ("follows", "error"), [(Follows.GROWS, RowRefused), (Follows.ONCE, BatchUnfinished)]
)
def test_a_batch_whose_driver_died_is_shown_and_finished(
    server: RedisProcess, query: DirectQuery, follows: Follows, error: type[Exception]
) -> None:
    query.follows = follows
    with Redis.from_url(server.url, decode_responses=True) as client:
        client.set("c:7", "in the way")
        with pytest.raises(error):
            query.run(20261124, ones(range(10)))
        (shown,) = json.loads(sparkonce("status", server.url, "--json").output)
        assert (shown["query"], shown["epoch"]) == (query.query_id, 20261124)
        assert shown["state"] != "nothing waits"
        client.delete("c:7")
        done = json.loads(sparkonce("recover", server.url, "--json").output)
        assert [(one["epoch"], one["rows"]) for one in done] == [(20261124, 10)]
        assert [client.hget(f"c:{i}", "n") for i in range(10)] == ["1"] * 10
    (left,) = json.loads(sparkonce("status", server.url, "--json").output)
    assert left["state"] == "nothing waits"


def test_gc_asks_drops_only_what_is_over_and_can_just_look(
    server: RedisProcess, query: DirectQuery
) -> None:
    query.run(0, ones(range(5)))
    for attempt in ("zombie", "twin"):
        late = Task(query.query_id, query.run_id, 0, query.name, 0, attempt)
        query.sink.store.stage(Chunk(late, 0, 1, b"staged after its epoch was decided"))
    young = query.stage(1, ones(range(5)))
    assert "2 attempts found, 0 dropped" in sparkonce("gc", server.url, "--dry-run").output
    assert sparkonce("gc", server.url, answer="n\n").exit_code == 1
    assert "2 attempts found, 2 dropped" in sparkonce("gc", server.url, answer="y\n").output
    query.commit(1, young)


def test_gc_makes_a_driver_that_comes_too_late_fail_not_lose(
    server: RedisProcess, query: DirectQuery
) -> None:
    query.run(0, ones(range(5)))
    receipts = query.stage(1, ones(range(5)))
    assert "1 dropped" in sparkonce("gc", server.url, "--grace", "0", "--yes").output
    with pytest.raises(Exception, match="are doomed"):
        query.commit(1, receipts)


def test_forget_asks_and_the_query_is_refused_from_then_on(
    server: RedisProcess, query: DirectQuery
) -> None:
    query.run(0, ones(range(5)))
    assert sparkonce("forget", server.url, "nobody").exit_code == 1
    assert sparkonce("forget", server.url, query.name, answer="n\n").exit_code == 1
    assert sparkonce("forget", server.url).exit_code == 2
    for none in (["--undecided"], ["--older-than", "1h"], ["--target", "elsewhere"]):
        assert "No sink matches" in sparkonce("forget", server.url, *none).output
    assert sparkonce("forget", server.url, "--older-than", "0s", "--yes").exit_code == 0
    with pytest.raises(Exception, match="was replaced as the owner"):
        query.run(1, ones(range(5)))


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["text", "json"])
def test_forget_of_several_goes_on_behind_one_that_it_refuses(
    server: RedisProcess, form: list[str]
) -> None:
    others = [
        DirectQuery(COUNTER, url=server.url, key="d:{id}", writeMode="increment") for _ in "ab"
    ]
    stuck = DirectQuery(COUNTER, url=server.url, key="c:{id}", writeMode="increment")
    for other in others:
        other.run(0, ones(range(5)))
    with Redis.from_url(server.url) as client:
        client.set("c:1", "in the way")
    with pytest.raises(RowRefused):
        stuck.run(0, ones(range(5)))
    first, last = (other.name for other in others)
    told = sparkonce("forget", server.url, first, stuck.name, last, "--yes", *form)
    assert told.exit_code == 1
    if form:
        answer = json.loads(told.output)
        assert answer["forgotten"] == [first, last]
        assert "recover first" in answer["failed"][stuck.name]
    else:
        assert told.output.count("is forgotten") == 2
        assert f"{stuck.name}: Sink" in told.output
    left = json.loads(sparkonce("status", server.url, "--json").output)
    assert [one["sink"] for one in left] == [stuck.name]


def test_the_last_trace_of_a_forgotten_sink_goes_with_gc(
    server: RedisProcess, query: DirectQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    query.run(0, ones(range(5)))
    sparkonce("forget", server.url, query.name, "--yes")
    later = time.time() + 31 * 86400
    monkeypatch.setattr("sparkonce.operate.admin.time.time", lambda: later)
    with Redis.from_url(server.url, decode_responses=True) as client:
        kept = {"{sparkonce}:names", "{sparkonce}:decided", f"{{sparkonce}}:record:{query.name}"}
        sparkonce("gc", server.url, "--dry-run")
        assert set(client.keys("{sparkonce}:*")) == kept
        sparkonce("gc", server.url)
        assert client.keys("{sparkonce}:*") == []


# -- doctor, metrics, watch


def findings(url: str, *options: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"fit": [], "risk": [], "unfit": []}
    for one in json.loads(sparkonce("doctor", url, "--json", *options).stdout):
        found[one["level"]].append(one["what"])
        assert bool(one["why"]) == bool(one["todo"]) == (one["level"] != "fit")
    return found


def test_doctor_of_a_durable_server_finds_nothing_to_do(private_redis: Private) -> None:
    url = private_redis("appendonly yes", "appendfsync always").url
    assert findings(url) | {"fit": []} == {"fit": [], "risk": [], "unfit": []}
    assert sparkonce("doctor", url).exit_code == 0


def test_doctor_finds_what_a_crash_a_failover_or_a_full_memory_would_take(
    private_redis: Private,
) -> None:
    primary = private_redis("appendonly yes", "appendfsync everysec", "maxmemory 40mb")
    private_redis(f"replicaof 127.0.0.1 {primary.port}")
    with Redis.from_url(primary.url) as client:
        for number in range(33):
            client.set(f"much:{number}", b"x" * 1_000_000)
        while not client.info("replication")["connected_slaves"]:
            time.sleep(0.05)
    risks = " ".join(findings(primary.url)["risk"])
    for said in ("appendfsync everysec", "min-replicas-to-write 0", "Memory: "):
        assert said in risks
    with Redis.from_url(primary.url) as client:
        client.config_set("appendonly", "no")
    assert "appendonly no" in " ".join(findings(primary.url)["risk"])


def test_doctor_exits_with_1_where_a_query_would_be_refused(private_redis: Private) -> None:
    url = private_redis("maxmemory 50mb", "maxmemory-policy allkeys-lru").url
    assert findings(url)["unfit"] == ["The server's maxmemory-policy is allkeys-lru"]
    refused = sparkonce("doctor", url)
    assert refused.exit_code == 1
    assert refused.output.startswith("no   The server's maxmemory-policy is allkeys-lru. Why: ")


def test_doctor_finds_what_is_wrong_with_sinks(
    server: RedisProcess, query: DirectQuery, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Redis.from_url(server.url) as client:
        client.set("c:1", "no hash")
    with pytest.raises(RowRefused):
        query.run(0, ones(range(3)))
    query.stage(1, ones(range(5)))
    later = time.time() + 7200
    monkeypatch.setattr(time, "time", lambda: later)
    risks = " ".join(findings(server.url)["risk"])
    assert f"Epoch 0 of {query.name} was decided 2 h ago, and is not finished" in risks
    assert "differs from this host's by -7,200 s" in risks


def test_metrics_are_served_to_one_scrape_after_the_other(
    server: RedisProcess, query: DirectQuery
) -> None:
    query.run(0, ones(range(7)))
    program = "from sparkonce.operate.cli import main; main()"
    command = [sys.executable, "-c", program, "metrics", server.url, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout is not None
        try:
            where = serving.stdout.readline().strip()
            for epoch in (1, 2):
                query.run(epoch, ones(range(7)))
                with urllib.request.urlopen(where, timeout=10) as answer:
                    told = answer.read().decode()
                assert f'sparkonce_epoch{{query="{query.query_id}"' in told
                (rows,) = re.findall(r"^sparkonce_rows_total\{.*\} (.*)$", told, re.M)
                assert float(rows) == 7 * (epoch + 1)
        finally:
            serving.kill()


def test_watch_shows_the_last_epoch(server: RedisProcess, query: DirectQuery) -> None:
    query.run(0, ones(range(1500)))
    shown = sparkonce("watch", server.url, "--refreshes", "2", "--every", "10ms").output
    assert "1 sink at " in shown
    assert "1,500" in shown
