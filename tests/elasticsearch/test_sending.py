"""What becomes of rows by what the cluster says of each, without a server."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from tests.elasticsearch.support import APPENDED

from pyspark_elasticsearch.journal import dead_letters
from pyspark_elasticsearch.journal.dead_letters import DocumentLetter
from pyspark_elasticsearch.journal.records import Destination
from pyspark_elasticsearch.server import bulk, client
from pyspark_elasticsearch.server.client import Answer
from pyspark_elasticsearch.server.elastic import ELASTICSEARCH
from pyspark_elasticsearch.write import proof
from pyspark_elasticsearch.write.proof import RefusedDocument
from pyspark_elasticsearch.write.sending import Sender
from sparkonce import codec
from sparkonce.change import Append, Delete, Increment, Update, Upsert
from sparkonce.errors import StoreRefused
from sparkonce.protocol import Manifest
from sparkonce.values.letters import Letter

CONFLICT = {"type": "version_conflict_engine_exception", "reason": "current version [1]"}
UNKNOWN = {"type": "new_exception", "reason": "words"}
MISSING = {"type": "document_missing_exception", "reason": "[1]: document missing"}
BUSY = {"type": "es_rejected_execution_exception", "reason": "queue is full"}


class Cluster:
    """Says the same of each operation, whatever it is asked; it can write rows once more."""

    timeout = 0.0
    proves = True
    dialect = ELASTICSEARCH
    classify, error_of = staticmethod(client.Cluster.classify), client.Cluster.error_of

    def __init__(self, *said: tuple[int, Any]) -> None:
        self.items = [{"index": {"status": status, "error": error}} for status, error in said]

    def ask(self, doing: str = "", *_: object, body: bytes = b"", **__: object) -> Answer:
        if doing.startswith("reading index"):
            return Answer(200, {"x": {"mappings": {}, "settings": {}, "aliases": {}}})
        if doing != proof.DOING:
            return Answer(200, {"items": self.items})
        one = {"status": 200} if self.proves else {"status": 404, "error": MISSING}
        return Answer(200, {"items": [{"update": one}] * body.count(b'{"update"')})


class Records:
    """Counters of which the last number is known."""

    def __init__(self, drawn: int = 0) -> None:
        self.drawn = drawn

    def last_drawn(self, _: str) -> int:
        return self.drawn

    def is_over(self, _: Manifest) -> bool:
        return False


CHANGES = {
    "append": Append,
    "upsert": partial(Upsert, ()),
    "update": partial(Update, ()),
    "increment": partial(Increment, (), ()),
    "delete": partial(Delete, ()),
}


def sender(cluster: Cluster, mode: str, drawn: int = 0, fresh: float = 0.0, **of: Any) -> Sender:
    documents = replace(APPENDED, change=CHANGES[mode](**of))
    manifest = Manifest("s", 1, "q", 3, "token", "x", codec.dump(documents), ())
    to = Destination(5, "x")
    return Sender(cluster, Records(drawn), manifest, documents, to, fresh)  # type: ignore[arg-type]


def send(cluster: Cluster, mode: str, **given: Any) -> list[RefusedDocument]:
    lines = b'{"index":{}}\n{}\n' * len(cluster.items)
    return sender(cluster, mode, **given).send(lines, len(cluster.items))


@pytest.mark.parametrize(
    ("mode", "version"), [("append", None), ("upsert", "v"), ("upsert", None), ("increment", None)]
)
def test_conflict_that_is_not_one_of_versions_is_no_success(mode: str, version: str | None) -> None:
    with pytest.raises(StoreRefused, match=r"409 new_exception: words"):
        send(Cluster((201, None), (409, UNKNOWN)), mode, **({"order": version} if version else {}))


def test_row_that_is_appended_again_finds_itself() -> None:
    assert send(Cluster((201, None), (409, CONFLICT)), "append") == []


def test_row_of_which_only_the_primary_knew_is_sent_again() -> None:
    class LostOnce(Cluster):
        timeout, proves = 5.0, False

        def ask(self, doing: str = "", *_: object, body: bytes = b"", **__: object) -> Answer:
            answer = super().ask(doing, body=body)
            if doing == proof.DOING:  # its copy takes over, and lacks the row
                self.items = [{"create": {"status": 201}}]
            elif doing == "writing rows":
                asked.append(body)
            return answer

    asked = list[bytes]()
    assert send(LostOnce((409, CONFLICT)), "append") == []
    assert len(asked) == 2


class Copy(Cluster):
    """Copies that show these documents one after the other, and a primary that takes writes."""

    timeout = 5.0

    def __init__(self, *shown: dict[str, Any]) -> None:
        words = "current version [7] is higher or equal to the one provided [7]"
        super().__init__((409, {"type": CONFLICT["type"], "reason": words}))
        self.shown, self.sent = [*shown], list[bytes]()

    def ask(self, doing: str = "", *of: object, body: Any = b"", **__: object) -> Answer:
        if of[1:] == ("/_mget",):
            return Answer(200, {"docs": [self.shown.pop(0)]})
        if doing == proof.DOING:
            self.sent.append(body)
            return Answer(200, {"items": [{"index": {"status": 200}}]})
        return Answer(200, {"items": self.items})


OWN = {"found": True, "_version": 7, "_source": {"v": 7}}
LAGS = {"found": True, "_version": 6, "_source": {"v": 6}}
OTHER = {"found": True, "_version": 7, "_source": {"v": 7, "of": "another row"}}


@pytest.mark.parametrize(
    ("shown", "sent"),
    [([OWN], 1), ([{"found": False}], 1), ([LAGS, OWN], 1), ([LAGS, LAGS, OTHER], 0)],
    ids=["equal", "absent", "lags", "another row"],
)
def test_row_of_an_equal_version_is_written_again_unless_it_is_another(
    shown: list[dict[str, Any]], sent: int
) -> None:
    cluster = Copy(*shown)
    about = '{"index":{"_id":"1","version":7,"version_type":"external"}}'
    made = sender(cluster, "upsert", order="v")
    assert made.send(f'{about}\n{{"v":7}}\n'.encode(), 1) == []
    assert not cluster.shown
    assert len(cluster.sent) == sent
    assert all(b'"external_gte"' in one for one in cluster.sent)


FENCE, MICROS = 1_795_000_000_000 << 20, 1_795_000_000_000_000


@pytest.mark.parametrize(
    ("there", "given", "refused"),
    [(MICROS + 1, MICROS, 0), (1000 * MICROS + 1, 1000 * MICROS, 0), (FENCE, MICROS, 1), (7, 3, 0)],
    ids=["microseconds", "nanoseconds", "fence", "numbers"],
)
def test_row_loses_to_a_higher_version_of_its_column_and_not_to_a_fence_in_silence(
    there: int, given: int, refused: int
) -> None:
    """A document that was written without the column has a version that no column's reaches."""
    words = f"current version [{there}] is higher or equal to the one provided [{given}]"
    error = {"type": CONFLICT["type"], "reason": f"[1]: version conflict, {words}"}
    assert len(send(Cluster((409, error)), "upsert", order="at")) == refused


@pytest.mark.parametrize(
    ("ahead", "drawn", "refused", "warned"),
    [(1800, False, 1, False), (1800, True, 0, False), (-10, False, 0, True)],
)
def test_version_beyond_counter_and_clock_is_not_taken_for_a_later_decision(
    caplog: pytest.LogCaptureFixture, ahead: int, drawn: bool, refused: int, warned: bool
) -> None:
    fence = time.time_ns() // 1_000_000 + ahead * 1000
    found = {"type": CONFLICT["type"], "reason": f"current version [{fence << 20}] is higher"}
    cluster = Cluster((201, None), (409, found))
    assert len(send(cluster, "upsert", drawn=fence if drawn else 0)) == refused
    assert ("1 documents have versions of another counter" in caplog.text) == warned


def test_letter_that_is_not_known_to_be_there_is_no_letter_written() -> None:
    letter = {"a": DocumentLetter("x", "1", Letter("words", "{}"))}
    dead_letters.write(Cluster((200, None)), "bad", {}, letter)  # type: ignore[arg-type]
    for error in (UNKNOWN, CONFLICT):
        with pytest.raises(StoreRefused, match=f"409 {error['type']}"):
            dead_letters.write(Cluster((409, error)), "bad", {}, letter)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["append", "upsert", "increment"])
def test_rows_that_the_cluster_did_not_take_in_time_come_with_its_reason(mode: str) -> None:
    current = f"current version [{6 << 20}]"
    settled = {"type": "version_conflict_engine_exception", "reason": current}
    with pytest.raises(StoreRefused, match=r"429 es_rejected_execution_exception: queue is full"):
        send(Cluster((409, settled), (429, BUSY)), mode)


class Refusing(Cluster):
    """Refuses whole requests at first, as a cluster does whose memory or queues are full."""

    timeout = 5.0

    def __init__(self, body: Any, times: int) -> None:
        super().__init__((201, None), (201, None))
        self.body, self.times = body, times

    def ask(self, *_: object, **__: object) -> Answer:
        self.times -= 1
        return Answer(429, self.body) if self.times >= 0 else super().ask()


FULL = {"error": {"type": "circuit_breaking_exception", "reason": "too much data"}, "status": 429}
OF_A_PROXY = b"<html>slow down</html>"


@pytest.mark.parametrize("body", [FULL, OF_A_PROXY])
@pytest.mark.parametrize("mode", ["append", "upsert", "increment"])
def test_request_that_is_refused_whole_for_now_is_sent_again(mode: str, body: Any) -> None:
    cluster = Refusing(body, 2)
    assert send(cluster, mode) == []
    assert cluster.times == -1, "the first request that was taken had all rows"


@pytest.mark.parametrize(("body", "words"), [(FULL, "too much data"), (OF_A_PROXY, "slow down")])
def test_request_that_is_refused_whole_till_the_timeout_is_an_error_with_its_reason(
    monkeypatch: pytest.MonkeyPatch, body: Any, words: str
) -> None:
    monkeypatch.setattr(Refusing, "timeout", 0.2)
    with pytest.raises(StoreRefused, match=rf"2 rows of epoch 3 within 0.2 s: 429 .*{words}"):
        send(Refusing(body, 1000), "upsert")


BAD = b'{"n":"bad"}'


class Narrow(Cluster):
    """Has room for so many operations in a request, and says of more that it is busy."""

    timeout = 60.0

    def __init__(self, room: int, *, whole: bool) -> None:
        super().__init__()
        self.room, self.whole, self.taken = room, whole, list[bytes]()

    def ask(self, *_: object, body: bytes = b"", **__: object) -> Answer:
        rows = body.splitlines()[1::2]
        fits = len(rows) <= self.room
        self.taken += rows if fits else []
        if not fits and self.whole:
            return Answer(429, FULL)
        one = {"index": {"status": 201} if fits else {"status": 429, "error": BUSY}}
        bad = {"index": {"status": 400, "error": {"type": "document_parsing_exception"}}}
        return Answer(200, {"items": [bad if row == BAD else one for row in rows]})


@pytest.mark.parametrize("whole", [True, False], ids=["request", "shard"])
def test_request_that_is_too_much_for_a_limit_on_memory_is_cut_in_two_until_it_fits(
    monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    monkeypatch.setattr("pyspark_elasticsearch.write.sending.time.sleep", lambda _: None)
    cluster = Narrow(3, whole=whole)
    rows = [b'{"n":%d}' % at for at in range(100)]
    rows[70] = BAD
    refused = sender(cluster, "append").send(
        b"".join(b'{"index":{}}\n%s\n' % row for row in rows), 100
    )
    assert [(one.operation.position, one.item.status) for one in refused] == [(70, 400)]
    assert {*cluster.taken} | {BAD} == {*rows}
    assert len(cluster.taken) - cluster.taken.count(BAD) == 99


def test_request_of_one_row_that_is_too_much_is_given_up_at_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Narrow, "timeout", 0.8)
    monkeypatch.setattr("pyspark_elasticsearch.write.sending.WAITS", 0)
    began = time.monotonic()
    one_at_most = sender(Narrow(0, whole=True), "append")
    with pytest.raises(StoreRefused, match=r"1 rows of epoch 3 within 0.8 s: 429 .*too much"):
        one_at_most.send(b'{"index":{}}\n{}\n' * 4, 4)
    assert time.monotonic() - began < 4


class Halving(Cluster):
    """Gives no answer at first, then finds the request too large, then takes it."""

    timeout = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.answers = [(503, 2), (413, 0), (200, 1), (200, 1)]

    def ask(self, *_: object, **__: object) -> Answer:
        status, count = self.answers.pop(0)
        if status == 413:
            return Answer(413, "")
        items = [{"index": {"status": status, "error": UNKNOWN if status > 299 else None}}]
        return Answer(200, {"items": items * count})


def test_what_was_sent_before_it_was_cut_in_two_is_sent_again_and_not_anew() -> None:
    """Of a data stream such rows are looked for first."""
    sent: list[bool] = []
    begun = sender(Halving(), "append", fresh=time.monotonic() + 60)
    post = begun._post

    def resend(lines: Any, _: Any) -> Any:
        sent.append(True)
        return post(lines)

    begun.resender = SimpleNamespace(send=resend)  # type: ignore[assignment]
    assert begun.send(b'{"create":{}}\n{}\n' * 2, 2) == []
    assert len(sent) == 3


def test_rows_that_are_too_many_beside_one_that_is_there_are_cut_in_two_and_not_refused() -> None:
    """Of a data stream a look-up has found that one, and the others were sent without it."""
    begun = sender(Cluster(), "append")

    def resend(lines: Any, _: Any) -> list[bulk.Item]:
        large = bulk.Item(413, {"type": "413", "reason": "words"})
        return [bulk.DONE, large, large] if len(lines) == 3 else [bulk.DONE] * len(lines)

    begun.resender = SimpleNamespace(send=resend)  # type: ignore[assignment]
    assert begun.send(b'{"create":{}}\n{}\n' * 3, 3) == []
