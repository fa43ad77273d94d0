"""The ledger: what it says survives the store, and each step gives the one that comes next."""

from __future__ import annotations

import json
import time
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledgers import PARTS, ledger_of, with_fields

from sparkonce.errors import RecordDamaged, StoreError
from sparkonce.exactly_once.driver import Offsets
from sparkonce.exactly_once.ledger import (
    PAST_DOOMED,
    PAST_QUERIES,
    PAST_RUNS,
    Ledger,
    from_record,
    new_token,
    sink_name,
)
from sparkonce.exactly_once.totals import KEPT, Pace, Start, followed
from sparkonce.operate.admin import SinkStatus
from sparkonce.operate.arguments import described, listed
from sparkonce.protocol import FORMAT, Applied, Manifest, Part, Record, digest

STAGED = (Part(0, "attempt-0", (2, 1), (20, 10)), Part(3, "attempt-3", (5,), (50,)))
MANIFEST = Manifest(
    sink="orders@1",
    generation=2,
    query_id="a",
    epoch=7,
    token="token",
    target="hash:orders",
    detail={"mode": "upsert", "fields": ["a", "ä"], "ttl": None, "nested": {"x": [1, 2.5]}},
    parts=STAGED,
    notes={"fence": 12},
)
OFFSETS = Offsets(b"v1\n{}\n7")
FULL = ledger_of(
    name="orders@1",
    query_id="a",
    target="hash:orders",
    repeatable=True,
    retired=("old", "older"),
    generation=2,
    epoch=7,
    token="token",
    manifest=MANIFEST,
    run_id="run",
    stream="query",
    past_runs=("run-1", "run-2"),
    replayed={"run-3": 7},
    doomed={"attempt-8": "a", "attempt-9": "b"},
    checkpoint="/checkpoints/orders",
    offsets=OFFSETS.digest,
    former_offsets="digest before",
    decided_at=1700000000.125,
    rows=10,
    dropped=5,
    was_dropped=True,
    aside=3,
    unstored=2,
    epochs=8,
    updated=1700000000.25,
    revision=40,
    stamp="stamp",
    replaces="stamp before",
    inherits=True,
    once=True,
    forgotten=True,
    history="7,1000000000.0,8,1,99,2,0.5,0.25,0.125",
)


@pytest.mark.parametrize(
    "ledger",
    [FULL, with_fields(FULL, manifest=None), ledger_of("n@1", "q", "t", revision=1, stamp="s")],
    ids=["decided", "finished", "fresh"],
)
def test_a_ledger_comes_back_from_its_record_as_it_was(ledger: Ledger) -> None:
    assert from_record(ledger.to_record(), ledger.name) == ledger


def test_no_field_is_left_at_its_default_in_that_test() -> None:
    fresh = ledger_of("n@1", "q", "t")
    pairs = [(FULL, fresh), *((getattr(FULL, one), getattr(fresh, one)) for one in PARTS)]
    same = [
        one.name
        for full, new in pairs
        for one in fields(full)
        if vars(full)[one.name] == vars(new)[one.name]
    ]
    assert same == []


def test_the_record_shows_revision_stamp_and_token_to_the_store() -> None:
    record = FULL.to_record()
    assert (record.revision, record.stamp, record.token) == (40, "stamp", "token")
    assert json.loads(record.body)["format"] == FORMAT


def test_a_finished_ledger_shows_no_token_to_the_store() -> None:
    """Or a driver that sleeps would apply what is applied."""
    assert with_fields(FULL, manifest=None).to_record().token == ""


def test_where_nothing_was_written_there_is_no_ledger() -> None:
    assert from_record(Record(), "orders@1") is None


@pytest.mark.parametrize("body", [json.loads(FULL.to_record().body), {"unheard": "of"}])
def test_a_newer_format_is_refused_before_anything_else_is_read(body: dict[str, Any]) -> None:
    newer = json.dumps({**body, "format": FORMAT + 1})
    with pytest.raises(StoreError, match="newer release"):
        from_record(Record(1, "s", "", newer), FULL.name)


PLACES = [(), ("owner",), ("decision",), ("decision", "manifest"), ("totals",)]


def inside(body: Any, place: tuple[str, ...]) -> dict[str, Any]:
    """The part of a ledger's JSON that lies there."""
    for name in place:
        body = body[name]
    found: dict[str, Any] = body
    return found


@pytest.mark.parametrize(
    ("place", "name"),
    [(at, name) for at in PLACES for name in inside(json.loads(FULL.to_record().body), at)],
)
def test_a_record_that_lacks_a_field_is_named(place: tuple[str, ...], name: str) -> None:
    """By its default a sink had decided nothing, or finished its epoch, and rows came twice."""
    body = json.loads(FULL.to_record().body)
    del inside(body, place)[name]
    with pytest.raises(RecordDamaged, match="orders@1"):
        from_record(replace(FULL.to_record(), body=json.dumps(body)), FULL.name)


@pytest.mark.parametrize("place", PLACES)
def test_a_field_that_is_not_known_may_be_a_newer_releases(place: tuple[str, ...]) -> None:
    """Who only runs an old release must not give the sink up."""
    body = json.loads(FULL.to_record().body)
    inside(body, place)["unheard"] = "of"
    with pytest.raises(RecordDamaged, match="has no unheard") as refused:
        from_record(replace(FULL.to_record(), body=json.dumps(body)), FULL.name)
    assert refused.value.why.startswith("a newer release of sparkonce wrote it")
    assert refused.value.todo.startswith("upgrade sparkonce here; or, if no newer release")


@pytest.mark.parametrize("seconds", ["1e", "1.2.3", "1-2", "0..5", "1e-"])
def test_a_history_that_holds_no_numbers_is_named(seconds: str) -> None:
    """Before an epoch is applied, not once its ledger is to be finished."""
    hurt = with_fields(FULL, history=f"7,1000000000.0,8,1,99,2,0.5,0.25,{seconds}")
    with pytest.raises(RecordDamaged, match="history has another form"):
        from_record(hurt.to_record(), FULL.name)


def test_a_history_of_any_times_is_read() -> None:
    paces = [Pace(7, at, 1, 0, 1, 1, *seconds) for at, seconds in TIMES]
    history = "\n".join(pace.written for pace in paces)
    ledger = from_record(with_fields(FULL, history=history).to_record(), FULL.name)
    assert ledger is not None
    assert ledger.totals.paces == paces


TIMES = [(0.0, (0.0, 0.001, 1e-05)), (1700000000.125, (3600.5, 12.0, 1e15)), (1e15, (0, 1, 2))]
STRANGE = st.sampled_from([None, True, -1, 2.5, 10**400, "x", "\x1b[2J", [], [1], {}, {"a": None}])


@given(st.data())
def test_a_record_that_something_else_wrote_is_read_or_named(data: st.DataObject) -> None:
    """Whatever one of its fields has become, at any depth."""
    body: Any = json.loads(FULL.to_record().body)
    inner, at = body, data.draw(st.sampled_from([*body]))
    while inner[at] and isinstance(inner[at], (dict, list)) and data.draw(st.booleans()):
        inner = inner[at]
        keys = [*inner] if isinstance(inner, dict) else [*range(len(inner))]
        at = data.draw(st.sampled_from(keys))
    if data.draw(st.booleans()):
        del inner[at]
    else:
        inner[at] = data.draw(STRANGE)
    try:
        ledger = from_record(replace(FULL.to_record(), body=json.dumps(body)), FULL.name)
    except StoreError as error:
        said = FULL.name if isinstance(error, RecordDamaged) else "newer release"
        assert said in error.what  # noqa: PT017
        return
    # What is read can be shown, and goes on.
    assert ledger is not None
    status = SinkStatus(FULL.name, ledger, ())
    shown = described(status), listed([status] * 9), json.dumps(status.to_json())
    assert all(shown)
    assert ledger.finished().to_record().revision == FULL.revision + 1


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "1", "[" * 100_000])
def test_a_record_that_is_no_json_of_a_ledger_is_named(body: str) -> None:
    with pytest.raises(RecordDamaged, match="orders@1"):
        from_record(Record(1, "s", "", body), FULL.name)


def test_the_ledger_of_another_sink_is_none() -> None:
    with pytest.raises(RecordDamaged, match="ledger of 'orders@1'"):
        from_record(FULL.to_record(), "others@1")


# -- what comes next


def test_each_move_is_one_revision_further_and_has_its_own_stamp() -> None:
    moved = [FULL.moved(), FULL.moved(), FULL.finished(), FULL.decided(MANIFEST, "", None)]
    assert {ledger.revision for ledger in moved} == {41}
    assert len({FULL.stamp, *(ledger.stamp for ledger in moved)}) == 5
    assert all(ledger.updated > FULL.updated for ledger in moved)
    assert {ledger.replaces for ledger in moved} == {FULL.stamp}


def test_deciding_counts_and_finishing_only_drops_the_manifest() -> None:
    before = with_fields(FULL, manifest=None, epoch=6)
    decided = before.decided(MANIFEST, "", OFFSETS)
    found = decided.decision
    assert (found.epoch, found.token, found.offsets) == (7, "token", OFFSETS.digest)
    assert (decided.totals.rows, decided.totals.epochs) == (10 + 8, 8 + 1)
    assert decided.decision.manifest == MANIFEST
    done = decided.finished()
    assert done.owner == decided.owner
    assert done.decision == replace(decided.decision, manifest=None)
    assert replace(done.totals, history="", unstored=2) == replace(decided.totals, history="")


def test_a_successor_starts_before_its_first_epoch_and_retires_the_one_before() -> None:
    new = with_fields(FULL, manifest=None).succeeded_by("b")
    assert (new.owner.query_id, new.owner.generation, new.decision.epoch) == ("b", 3, -1)
    assert (new.decision.token, new.decision.offsets, new.owner.replayed) == ("", None, {})
    assert new.owner.retired == ("old", "older", "a")
    assert new.revision == FULL.revision


def test_retiring_twice_names_a_query_once() -> None:
    once = FULL.owner.retire()
    assert once.retire() == once


def test_retired_queries_are_the_newest_and_bounded() -> None:
    ledger = ledger_of("n@1", "query-0", "t")
    for number in range(1, 301):
        ledger = ledger.succeeded_by(f"query-{number}")
    assert ledger.owner.retired == tuple(f"query-{n}" for n in range(300 - PAST_QUERIES, 300))


def test_where_the_query_is_seen_changes_no_run() -> None:
    seen = FULL.seen_at("/p", "new target")
    assert (seen.owner.checkpoint, seen.target, seen.owner.repeatable) == (
        "/p",
        "new target",
        FULL.owner.repeatable,
    )
    assert (seen.owner.run_id, seen.owner.past_runs) == (FULL.owner.run_id, FULL.owner.past_runs)


def test_a_run_without_a_name_supersedes_nobody() -> None:
    for seen in (FULL.decided(MANIFEST, "", None), FULL.replayed_by("")):
        assert (seen.owner.run_id, seen.owner.past_runs) == (
            FULL.owner.run_id,
            FULL.owner.past_runs,
        )
        assert seen.owner.replayed == FULL.owner.replayed


def test_the_doomed_of_the_last_abort_are_all_kept_and_of_those_before_not_all() -> None:
    many = {f"{number}": "q" for number in range(1000)}
    doomed = ledger_of("n@1", "q", "t").dooming(many)
    assert set(doomed.decision.doomed) == set(many)
    again = doomed.dooming({"new": "q"})
    assert "new" in again.decision.doomed
    assert len(again.decision.doomed) <= PAST_DOOMED + 1


def test_an_attempt_is_over_once_its_epoch_is_decided_or_its_query_retired() -> None:
    assert FULL.is_over("a", 7)
    assert FULL.is_over("a", 0)
    assert not FULL.is_over("a", 8)
    assert FULL.is_over("old", 99)
    assert not FULL.is_over("unknown", 0)


def test_the_runs_remembered_are_the_newest_and_bounded() -> None:
    ledger = ledger_of("n@1", "q", "t")
    for number in range(100):
        ledger = ledger.decided(MANIFEST, f"run-{number}", None)
        for other in "ab":
            ledger = ledger.replayed_by(f"{other}-{number}")
    assert len(ledger.owner.replayed) == PAST_RUNS
    assert len(ledger.owner.past_runs) == PAST_RUNS
    assert ledger.owner.past_runs == tuple(f"run-{number}" for number in range(99 - PAST_RUNS, 99))
    assert ledger.owner.run_id == "run-99"


# -- names


def test_a_sink_is_named_by_its_id_and_its_target() -> None:
    assert sink_name("orders", "hash:a") != sink_name("orders", "hash:b")
    assert sink_name("orders", "hash:a") != sink_name("sales", "hash:a")
    assert ledger_of(sink_name("or.de-rs_1", "hash:a"), "q", "hash:a").sink_id == "or.de-rs_1"


def test_names_are_the_same_in_every_process_and_for_ever() -> None:
    assert sink_name("orders", "hash:user:{id}") == "orders@" + digest("hash:user:{id}")
    assert digest("hash:user:{id}") == "1980b2694852018e"


def test_tokens_differ() -> None:
    assert len({new_token() for _ in range(1000)}) == 1000


# -- manifests


def test_a_manifest_names_its_chunks_in_the_order_in_which_they_are_applied() -> None:
    assert MANIFEST.rows == 8
    assert [(part.attempt, seq) for part, seq in MANIFEST.chunks] == [
        ("attempt-0", 0),
        ("attempt-0", 1),
        ("attempt-3", 0),
    ]
    assert MANIFEST.attempts == {"attempt-0", "attempt-3"}


# -- how the last epochs went


def test_the_pace_of_an_epoch_is_kept_with_what_became_of_its_rows() -> None:
    fresh = ledger_of("orders@1", "a", "t")
    decided = fresh.decided(MANIFEST, "run", start=Start(time.time() - 0.5, stage=2.0))
    pace = decided.pace
    assert pace is not None
    assert pace[2:7] == (8, 0, 80, 3, 2.0)
    assert 0.5 <= pace.decide < 5
    done = with_fields(decided, decided_at=pace.decided).finished(Applied(aside=3)).pace
    assert done == pace._replace(aside=3, apply=done.apply)
    assert 0 <= done.apply < 5


def test_the_pace_of_the_last_epochs_alone_is_kept() -> None:
    ledger = ledger_of("orders@1", "a", "t")
    for epoch in range(KEPT + 5):
        ledger = ledger.decided(replace(MANIFEST, epoch=epoch), "run").finished()
    assert [pace.epoch for pace in ledger.totals.paces] == [*range(5, KEPT + 5)]


def test_a_pace_comes_back_from_its_line() -> None:
    pace = Pace(2**40, 1764032400.123, 3, 2, 2**35, 7, 0.001, 12.5, 3600.0)
    assert Pace.parsed(pace.written) == pace
    assert followed("", pace) == pace.written
