"""No row is sent for a decision that the cluster may lose, without a server."""

from __future__ import annotations

from typing import Any

import pytest
from tests.elasticsearch.stored import STORED
from tests.ledgers import ledger_of

from pyspark_elasticsearch.journal.indices import OwnIndices
from pyspark_elasticsearch.server.client import Answer
from pyspark_elasticsearch.store import ElasticsearchStore
from sparkonce.errors import StoreUnreachable
from sparkonce.exactly_once.bad_rows import NONE
from sparkonce.protocol import Manifest, Part, Record

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


def test_decision_that_only_a_read_shows_is_written_upon_before_rows_are_sent() -> None:
    cluster = CutOff(answers=True)
    store(cluster).apply(MANIFEST)
    assert [method for method, _ in cluster.asked] == ["GET", "PUT", "GET"]


def test_no_row_is_sent_while_it_is_not_known_whether_a_decision_stays() -> None:
    cluster = CutOff(answers=False)
    with pytest.raises(StoreUnreachable):
        store(cluster).apply(MANIFEST)
    assert [method for method, _ in cluster.asked] == ["GET", "PUT"]
