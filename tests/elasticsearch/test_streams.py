"""No row goes to a data stream twice, nor for a decision that the cluster may lose."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import pytest
from tests.elasticsearch.support import STORED
from tests.ledgers import ledger_of

from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.server import bulk, client
from pyspark_elasticsearch.server.client import Answer
from pyspark_elasticsearch.server.elastic import ELASTICSEARCH
from pyspark_elasticsearch.store import ElasticsearchStore
from pyspark_elasticsearch.target.placement import PlacementCheck, StreamResender
from sparkonce.errors import StoreError, StoreRefused, StoreUnreachable
from sparkonce.exactly_once.bad_rows import NONE
from sparkonce.protocol import Manifest, Part, Record

ROW = b'{"create":{"_id":"a"}}\n{"@timestamp":0}\n'
CONFLICT = {"type": "version_conflict_engine_exception"}


class Stream:
    """A data stream in memory, with shards that are down and deletes that are cut."""

    timeout = 1.0
    dialect = ELASTICSEARCH
    classify, error_of = staticmethod(client.Cluster.classify), client.Cluster.error_of

    def __init__(self, *indices: str) -> None:
        self.docs: dict[str, set[str]] = {index: set() for index in indices}
        self.down: set[str] = set()
        self.blocked: set[str] = set()
        self.cuts = 0

    def ask(self, _: str, __: str, target: str, *, body: Any = None, **___: Any) -> Answer:
        if target.startswith("/_resolve"):
            streams = [{"backing_indices": list(self.docs)}] if self.docs else []
            return Answer(200, {"data_streams": streams})
        if target.endswith("/_mget"):
            return Answer(200, {"docs": self._looked_up(target.split("/")[1], body["ids"])})
        if body.startswith(b'{"update"'):
            ids = [json.loads(line)["update"]["_id"] for line in body.splitlines()[::2]]
            return Answer(200, {"items": self._written(target.split("/")[1], ids)})
        if self.cuts:
            self.cuts -= 1
            raise StoreUnreachable("cut", "", "")
        deletes = [json.loads(line)["delete"] for line in body.splitlines()]
        for one in deletes:
            self.docs[one["_index"]].discard(one["_id"])
        return Answer(200, {"items": [{"delete": {"status": 200}} for _ in deletes]})

    def _looked_up(self, index: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        if index in self.down:  # so Elasticsearch 9.4 answers where no copy of the shard is there
            error = {"type": "no_shard_available_action_exception", "reason": "No shard"}
            return [{"_index": index, "_id": id_, "error": error} for id_ in ids]
        return [{"_id": id_, "found": id_ in self.docs[index]} for id_ in ids]

    def _written(self, index: str, ids: Sequence[str]) -> list[dict[str, Any]]:
        if index in self.down:
            error = {"type": "unavailable_shards_exception", "reason": "No shard"}
            return [{"update": {"status": 503, "error": error}} for _ in ids]
        if index in self.blocked:
            error = {"type": "cluster_block_exception", "reason": "index [old] blocked by: write"}
            return [{"update": {"status": 403, "error": error}} for _ in ids]
        absent = {"status": 404, "error": {"type": "document_missing_exception"}}
        there = self.docs[index]
        return [{"update": {"status": 200} if id_ in there else absent} for id_ in ids]

    def write(self, operations: Sequence[bytes]) -> list[bulk.Item]:
        index = list(self.docs)[-1]
        items = []
        for one in operations:
            id_ = json.loads(one.splitlines()[0])["create"]["_id"]
            there = id_ in self.docs[index]
            items.append(bulk.Item(409, CONFLICT) if there else bulk.Item(201, None, index))
            self.docs[index].add(id_)
        return items

    @property
    def copies(self) -> int:
        return sum("a" in docs for docs in self.docs.values())


def resend(stream: Stream, post: Any = None) -> None:
    def drops_fields(index: str) -> bool:
        return index == "partial"

    made = StreamResender(stream, "stream", "old", drops_fields)  # type: ignore[arg-type]
    made.send([ROW], post or stream.write)


@pytest.mark.parametrize("index", ["old", "partial"])
@pytest.mark.parametrize("blocked", [False, True])
def test_row_that_is_there_is_not_sent_again(index: str, blocked: bool) -> None:
    stream = Stream(index, "new")
    stream.docs[index].add("a")
    stream.blocked |= {index} if blocked else set()
    resend(stream)
    assert stream.copies == 1


def test_index_that_does_not_answer_is_not_taken_for_one_without_the_row() -> None:
    stream = Stream("old", "new")
    stream.docs["old"].add("a")
    stream.down.add("old")
    with pytest.raises(StoreUnreachable, match="No shard"):
        resend(stream)
    assert stream.copies == 1
    stream.down.clear()
    resend(stream)
    assert stream.copies == 1


def test_stream_that_seems_to_be_gone_takes_no_rows() -> None:
    stream = Stream()
    with pytest.raises(StoreRefused, match="Data stream stream no longer exists"):
        resend(stream)


def test_row_that_could_not_be_taken_back_is_taken_back_at_the_next_try() -> None:
    """It landed late before the rollover that the repeated one came after."""
    stream = Stream("old")
    stream.cuts = 1

    def post(operations: Sequence[bytes]) -> list[bulk.Item]:
        if len(stream.docs) == 1:
            stream.docs["old"].add("a")
            stream.docs["new"] = set()
        return stream.write(operations)

    with pytest.raises(StoreError, match="cut"):
        resend(stream, post)
    assert stream.copies == 2
    resend(stream, post)
    assert stream.copies == 1


def test_rollover_that_only_the_last_look_sees_sends_no_row_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyspark_elasticsearch.target.placement.time.sleep", lambda _: None)
    known = iter([{"old"}, {"old"}, {"old", "new"}])
    monkeypatch.setattr("pyspark_elasticsearch.target.placement.behind", lambda *_: next(known))
    stream = PlacementCheck(Stream("old", "new"), "stream", ids=False)  # type: ignore[arg-type]
    stream.require_kept(ROW, [bulk.Item(201, None, "new")])
    assert not [*known]


# -- no row is sent for a decision that the cluster may lose, without a server


NOTES = {"fence": 5, "index": "x", "since": ""}
PARTS = (Part(0, "a" * 32, (2,), (10,)),)
MANIFEST = Manifest("s", 1, "q", 0, "token", "x", STORED, PARTS, NOTES)
DECIDED = ledger_of("s", "q", "x").decided(MANIFEST, "", None).to_record()


class CutOff:
    """A primary that shows a decision which it could not replicate; writes go to its successor.

    Args:
        answers: whether the successor answers.
    """

    timeout, parallelism = 1.0, 1

    def __init__(self, *, answers: bool) -> None:
        self.answers, self.asked = answers, list[tuple[str, str]]()
        self.written = False

    def ask(self, _: str, method: str, target: str, **__: object) -> Answer:
        if method == "HEAD":
            return Answer(200, {})
        self.asked.append((method, target))
        if method == "PUT" and not self.answers:
            raise StoreUnreachable("No answer")
        if method == "PUT":
            self.written = True
            return Answer(409, {})
        assert method == "GET"
        return Answer(404, {"found": False}) if self.written else Answer(200, shown(DECIDED))


def shown(record: Record) -> dict[str, Any]:
    names = ("revision", "stamp", "token", "body")
    source = {name: getattr(record, name) for name in names}
    return {"_seq_no": 7, "_primary_term": 1, "_source": source}


def store(cluster: CutOff) -> ElasticsearchStore:
    own = OwnIndices(cluster, "sparkonce")  # type: ignore[arg-type]
    options = {"deadLetter": None, "maxBadRows": NONE}
    return ElasticsearchStore(cluster, own, options)  # type: ignore[arg-type]


@pytest.mark.parametrize("answers", [True, False])
def test_decision_that_only_a_read_shows_is_written_upon_before_rows_are_sent(
    answers: bool,
) -> None:
    cluster = CutOff(answers=answers)
    with nullcontext() if answers else pytest.raises(StoreUnreachable):
        store(cluster).apply(MANIFEST)
    assert [method for method, _ in cluster.asked] == ["GET", "PUT", "GET"][: 2 + answers]
