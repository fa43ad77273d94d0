"""Every answer that says no becomes one of our errors, with a reason and a remedy."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any
from unittest.mock import Mock

import elasticsearch
import pytest
from tests.answering import Say

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.journal.indices import OwnIndices, make
from pyspark_elasticsearch.journal.log import ChunkPlace, StagingLog
from pyspark_elasticsearch.journal.records import LedgerRecords
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.elastic import ELASTICSEARCH
from pyspark_elasticsearch.server.failures import BY_STATUS, BY_TYPE, classify
from pyspark_elasticsearch.target import aliases
from pyspark_elasticsearch.target import lookup as targets
from pyspark_elasticsearch.target.placement import StreamResender
from sparkonce import connections, options
from sparkonce.errors import FailureKind, RecordDamaged, StoreError, StoreRefused, StoreUnreachable

STATUSES = sorted({*BY_STATUS, 400, 406, 418, 500, 501})


@pytest.mark.parametrize("status", STATUSES)
def test_status_says_what_why_and_what_to_do(status: int) -> None:
    known = classify(status, {"type": "x_exception", "reason": "words"})
    error = known.error("Elasticsearch", "doing this", f"{status} x_exception: words")
    passing = classify(status, None).kind in (FailureKind.LOST, FailureKind.PASSING)
    assert isinstance(error, StoreUnreachable if passing else StoreRefused)
    assert f"while doing this: {status} x_exception: words" in error.what
    assert error.why
    assert error.todo


@pytest.mark.parametrize("name", BY_TYPE)
def test_type_is_known_whatever_the_status(name: str) -> None:
    assert classify(400, {"type": name}) is BY_TYPE[name]
    assert BY_TYPE[name].why
    assert BY_TYPE[name].todo


@pytest.mark.parametrize(
    "around", [lambda one: one, lambda one: {"failed_shards": [{"reason": one}]}]
)
def test_points_in_time_that_a_node_no_longer_takes_are_no_overload(around: Any) -> None:
    reason = (
        "Trying to create too many Point In Time contexts. Must be less than or equal to: [300]"
    )
    error = around({"type": "rejected_execution_exception", "reason": reason})
    assert "keepAlive" in classify(429, error).todo
    other = {"type": "rejected_execution_exception", "reason": "queue capacity"}
    assert "keepAlive" not in classify(429, other).todo


def test_words_of_a_front_end_are_told(say: Say) -> None:
    words = {"Message": "User: anonymous is not authorized to perform: es:ESHttpGet"}
    with pytest.raises(StoreRefused, match="User: anonymous is not authorized"):
        say(403, words).ask("asking", "GET", "/")
    for status in (400, 403):
        assert "forbidden" in str(make(say(status, {"error": "forbidden"}), "x", {}, (400, 403))[1])
        assert "not authorized" in str(make(say(status, words), "x", {}, (400, 403))[1])


def test_wrong_password_is_told_from_a_missing_right() -> None:
    wrong, right = (classify(status, {"type": "security_exception"}) for status in (401, 403))
    assert "credentials" in wrong.why
    assert "right" in right.why


def version(number: str) -> dict[str, Any]:
    return {"version": {"number": number}, "tagline": "You Know, for Search"}


@pytest.mark.parametrize(
    ("client", "number", "todo"),
    [
        *((8, number, "") for number in ("8.0.0", "8.16.1", "9.4.3")),
        *((9, number, "") for number in ("9.4.3", "10.0.0")),
        *((client, "7.17.0", "upgrade the servers to release 8") for client in (8, 9)),
        (9, "8.16.1", "pip install 'elasticsearch>=8.15,<9'"),
        *((8, number, "pip install 'elasticsearch>=9,<10'") for number in ("10.0.0", "11.0.0")),
        (9, "11.0.0", "look for a newer sparkonce"),
    ],
)
def test_server_that_the_client_does_not_speak_to_is_refused(
    say: Say, monkeypatch: pytest.MonkeyPatch, client: int, number: str, todo: str
) -> None:
    monkeypatch.setattr(elasticsearch, "__version__", (client, 15, 0))
    said = rf"release is {number}.*client's is {client}.*{todo}"
    with pytest.raises(StoreRefused, match=said) if todo else nullcontext():
        say(200, version(number)).require_fit()


def test_client_whose_headers_the_server_does_not_know_is_told_what_to_install(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(elasticsearch, "__version__", (9, 0, 0))
    refusal = {"error": {"type": "media_type_header_exception", "reason": "Accept version"}}
    with pytest.raises(StoreRefused, match=r"older than 9.*client's is 9.*elasticsearch>=8.15,<9"):
        say(400, refusal).require_fit()


def test_server_that_is_not_elasticsearch_is_named(say: Say) -> None:
    with pytest.raises(StoreRefused, match="not Elasticsearch"):
        say(200, version("2.11.0"), product=None).require_fit()


def test_opensearch_and_serverless_are_refused_by_name(say: Say) -> None:
    other = {"version": {"number": "2.11.0", "distribution": "opensearch"}}
    with pytest.raises(StoreRefused, match=r"""not Elasticsearch.*format\("opensearch"\)"""):
        say(200, other, product=None).require_fit()
    hosted = {"version": {"number": "8.11.0", "build_flavor": "serverless"}}
    with pytest.raises(StoreRefused, match="is Elasticsearch Serverless"):
        say(200, hosted).require_fit()


@pytest.mark.parametrize(
    ("status", "body"), [(502, b"<html>"), (200, b'{"items": ['), (500, {"error": "words"})]
)
def test_answer_that_says_nothing_is_no_answer(say: Say, status: int, body: Any) -> None:
    with pytest.raises(StoreUnreachable):
        say(status, body).ask("asking", "POST", "/x/_bulk", body=b"{}\n")


@pytest.mark.parametrize(
    "error",
    [
        elasticsearch.ConnectionError("gone"),
        elasticsearch.ConnectionTimeout("slow"),
        elasticsearch.SSLError("certificate"),
        elasticsearch.SerializationError("half"),
        elasticsearch.TransportError("any"),
    ],
)
def test_each_error_of_the_client_is_translated(
    say: Say, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = say(200, {})
    monkeypatch.setattr(elasticsearch.Elasticsearch, "perform_request", Mock(side_effect=error))
    with pytest.raises(StoreError) as told:
        cluster.ask("asking", "GET", "/")
    assert told.value.why
    assert told.value.todo
    assert isinstance(told.value, StoreUnreachable) == (
        not isinstance(error, elasticsearch.SSLError)
    )


def test_host_that_takes_no_connection_is_passed_over_and_no_other_failure_is(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = say(200, {"fine": True}).options["url"]
    given = {"url": f"http://127.0.0.1:1,{url}", "index": "x"}
    cluster = Cluster(options.parse(ElasticsearchConnector.options, given), ELASTICSEARCH)
    assert all(cluster.ask("asking", "GET", "/").body["fine"] for _ in range(4))
    for unclear in (
        elasticsearch.ConnectionError("reset"),
        elasticsearch.ConnectionTimeout("slow"),
    ):
        sent = Mock(side_effect=unclear)
        monkeypatch.setattr(elasticsearch.Elasticsearch, "perform_request", sent)
        with pytest.raises(StoreUnreachable):
            cluster.ask("asking", "POST", "/x/_bulk", body=b"{}\n")
        assert sent.call_count == 1


LOST, PASSING, REFUSED, ROW = (
    FailureKind.LOST,
    FailureKind.PASSING,
    FailureKind.REFUSED,
    FailureKind.ROW,
)
ILLEGAL, BLOCK, SCRIPT = (
    "illegal_argument_exception",
    "cluster_block_exception",
    "script_exception",
)
LIMIT = {"type": "circuit_breaking_exception", "reason": "[script] Too many dynamic script ..."}
UNCOMPILED = {"type": "general_script_exception", "reason": "Failed to compile", "caused_by": LIMIT}
OF_INDEX = "index [x] blocked by: [.../8/...]"
ANSWERS: dict[str, list[tuple[int, str, str, FailureKind]]] = {
    "a block that passes is waited for": [
        (429, BLOCK, "", PASSING),
        (503, BLOCK, "", PASSING),
        (403, BLOCK, "blocked by: [FORBIDDEN/6/...]", REFUSED),
    ],
    "a block of one index is told from a full disk": [
        (429, BLOCK, OF_INDEX, PASSING),
        (403, BLOCK, OF_INDEX, FailureKind.INDEX),
    ],
    "what is not known of a server that fails inside is no refusal": [
        (500, "null_pointer_exception", "", LOST),
        (400, "new_exception", "", REFUSED),
    ],
    "a mapping that is not extended in time is no fault of the row": [
        (500, "mapper_exception", "timed out while waiting for a dynamic mapping", PASSING),
        (400, "mapper_exception", "timed out while waiting for a dynamic mapping", ROW),
    ],
    "an illegal argument is told by its words": [
        (400, ILLEGAL, "no enrich index exists for policy with name [p]", REFUSED),
        (400, ILLEGAL, "no write index is defined for alias [x]. The write index may ...", REFUSED),
        (400, ILLEGAL, "Number of documents in shard [x] exceeds the limit of [5]", REFUSED),
        (400, ILLEGAL, "mapper [n] cannot be changed from type [long] to [text]", ROW),
        (400, ILLEGAL, "Document contains at least one immense term in field=...", ROW),
        (400, ILLEGAL, "field [x] doesn't exist", ROW),
    ],
}


@pytest.mark.parametrize("why", ANSWERS)
def test_what_an_answer_says_of_the_row(why: str) -> None:
    for status, kind, reason, found in ANSWERS[why]:
        assert classify(status, {"type": kind, "reason": reason}).kind is found, (status, reason)


@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        ({"type": SCRIPT, "reason": "runtime error"}, ROW),
        ({"type": SCRIPT, "reason": "compile error"}, REFUSED),
        (UNCOMPILED, PASSING),
        ({"type": ILLEGAL, "reason": "cannot execute [x]"}, REFUSED),
        (None, REFUSED),
    ],
)
def test_script_that_did_not_run_says_nothing_of_the_row(cause: Any, kind: FailureKind) -> None:
    """The server tells all of them by the same type; a row would be put aside for good."""
    failed = {"type": ILLEGAL, "reason": "failed to execute script", "caused_by": cause}
    assert classify(400, failed).kind is kind


OWN = "own"
PLACE = ChunkPlace("sink", "attempt", 0, 1, 2)
ASKED: dict[str, Callable[[Cluster, OwnIndices], object]] = {
    "ledger": lambda cluster, own: LedgerRecords(cluster, own).read("sink"),
    "look": lambda cluster, own: StagingLog(cluster, own).missing([PLACE]),
    "chunk": lambda cluster, own: StagingLog(cluster, own).fetch(PLACE),
    "list": lambda cluster, own: StagingLog(cluster, own).attempts("sink", fresh=False),
    "server": lambda cluster, _: cluster.require_fit(),
    "target": lambda cluster, _: targets.resolve(cluster, "x", appends=True),
    "stream": lambda cluster, _: StreamResender(cluster, "x", "x", lambda _: False).send(
        [b'{"create":{"_id":"1"}}'], len
    ),
}


@pytest.mark.parametrize("body", [{"ok": True}, b"<html>", b"", b"[]"], ids=str)
@pytest.mark.parametrize("step", ASKED)
def test_200_that_is_no_answer_is_an_error_that_says_so(say: Say, step: str, body: Any) -> None:
    cluster = say(200, body)
    with pytest.raises(StoreUnreachable, match=r"did not send this|deserialize as JSON"):
        ASKED[step](cluster, OwnIndices(cluster, OWN))


def test_200_for_a_ledger_that_nobody_wrote_is_no_success(say: Say) -> None:
    cluster = say(200, {"_source": {}, "_seq_no": 1, "_primary_term": 1})
    records = LedgerRecords(cluster, OwnIndices(cluster, OWN))
    with pytest.raises(
        StoreUnreachable, match=r"did not send this answer: an answer without 'result'"
    ):
        records.draw("x")


@pytest.mark.parametrize("step", ["ledger", "list", "target", "stream"])
def test_404_of_a_proxy_is_not_taken_for_one_of_the_cluster(say: Say, step: str) -> None:
    """It would say that there is no ledger, no index, or no such row."""
    cluster = say(404, {"ok": False, "message": "Unknown resource."})
    with pytest.raises(StoreUnreachable, match="did not send this"):
        ASKED[step](cluster, OwnIndices(cluster, OWN))


def test_alias_that_not_all_nodes_took_is_moved_again(say: Say) -> None:
    cluster = say(200, {"acknowledged": False})
    with pytest.raises(StoreUnreachable, match="did not apply alias seen in time"):
        aliases._filter(cluster, "seen", "x", {})


def test_damaged_verdict_is_named_by_its_own_id(say: Say) -> None:
    docs = [{"found": True, "_source": {"rows": 1}}, {"found": True, "_source": {}}]
    cluster = say(200, {"docs": docs})
    with pytest.raises(RecordDamaged, match=r"sink/attempt/1/verdict"):
        StagingLog(cluster, OwnIndices(cluster, OWN)).aside([PLACE, PLACE._replace(seq=1)])


# -- how a client of the cluster is made, without a server


def test_renewed_certificates_are_read_by_the_next_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients are closed while idle, and made anew by what the first cluster lent."""
    read: list[int] = []

    def context(_: Mapping[str, str]) -> ssl.SSLContext:
        read.append(len(read))
        return ssl.create_default_context()

    monkeypatch.setattr(connections, "_processes", {})
    monkeypatch.setattr(connections, "tls_context", context)
    raw = {"url": "https://localhost:1", "index": "orders"}
    lent = Cluster(options.parse(ElasticsearchConnector.options, raw), ELASTICSEARCH)._lent
    for _ in range(2):
        before = len(read)
        with lent.client():
            assert len(read) == before + 1
        lent.close_idle()
