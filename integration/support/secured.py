"""Shared by tests of rights: certificates, and what users of few rights can do."""

from __future__ import annotations

import datetime
import ipaddress
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    CONNECTOR,
    apply_again,
    counting_anew,
    decide,
    documents,
    keep_log,
)
from integration.support.epochs import ElasticsearchQuery

from sparkonce import options
from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk
from sparkonce.reading import Scan

PASSWORD = "changeme-please"
PAGE = Path("docs/permissions.md").read_text("utf-8")
SMALL = pa.schema([("n", pa.int64())])
STREAMED = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), ("n", pa.int64())])


def documented(request: str) -> str:
    """The body of a request in docs/permissions.md, for index ``counters``."""
    found = re.search(rf"^{re.escape(request)}\n(.*?)\n(?:\n|```)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, request
    return found[1].replace("orders", "counters")


def certificates(folder: Path) -> tuple[Path, bytes, bytes]:
    """The file of an authority that signs itself, its key, and its certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sparkonce test")])
    now = datetime.datetime.now(datetime.timezone.utc)
    local = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([local]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = serialization.NoEncryption()
    text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    certificate = made.public_bytes(pem)
    (folder / "ca.pem").write_bytes(certificate)
    return folder / "ca.pem", text, certificate


def count_twice(client: Elasticsearch, url: str, **identity: str) -> None:
    """Two epochs into index ``counters``, which the query creates."""
    query = counting_anew(url, **identity)
    query.sink.check()
    query.run(0, [{"id": 1, "n": 1}])
    query.run(1, [{"id": 1, "n": 1}])
    assert documents(client, "counters")["1"]["n"] == 2


def read(url: str, **identity: str) -> list[list[dict[str, Any]]]:
    """The rows of ``counters``, by batches."""
    raw = {"url": url, "index": "counters", **identity}
    reads = options.parse(CONNECTOR.reads, raw)
    source = CONNECTOR.source(reads, Scan(CONNECTOR.infer(reads)))
    return [batch.to_pylist() for one in source.splits() for batch in source.read(one)]


def follow(url: str, **identity: str) -> list[list[dict[str, Any]]]:
    """The changes of ``counters`` from the first one, by batches."""
    raw = {"url": url, "index": "counters", "startingPosition": "earliest", **identity}
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    feed = CONNECTOR.feed(options.parse(CONNECTOR.follows, raw), Scan(schema))
    parts = feed.between(feed.begin(), feed.latest())
    return [batch.to_pylist() for one in parts for batch in feed.read(one)]


def use_every_right(client: Elasticsearch, url: str, identity: dict[str, str]) -> None:
    """Through a pipeline, shown by an alias; into a data stream again; with dead letters."""
    client.ingest.put_pipeline(id="kept", processors=[])
    client.indices.delete(index="counters")
    shape = {"dynamic": "strict", "properties": {"n": {"type": "byte"}}}
    given = {"url": url, "index": "counters", "sinkId": "rights", **identity}
    aside = {"onBadRow": "deadLetter", "deadLetter": "counters-bad", "createIndex": "true"}
    shown = {"visibleAlias": "counters-visible"}
    query = ElasticsearchQuery(SMALL, pipeline="kept", **given, **aside, **shown)
    query.sink.check()
    query.run(0, [{"n": 1}])
    client.indices.refresh(index="counters")
    assert client.count(index="counters-visible")["count"] == 1

    client.indices.delete(index="counters")
    client.indices.put_index_template(
        name="counters",
        index_patterns=["counters"],
        data_stream={},
        template={"settings": {"number_of_replicas": 0}, "mappings": shape},
    )
    client.index(index="counters", document={"@timestamp": 0}, op_type="create")
    given["sinkId"], aside["createIndex"] = "stream", "false"
    query = ElasticsearchQuery(STREAMED, **given, **aside)
    query.sink.check()
    keep_log(query)
    at = datetime.datetime(2024, 2, 29, tzinfo=datetime.timezone.utc)
    manifest = decide(query, 0, [{"@timestamp": at, "n": n} for n in (1, 1000)])
    for _ in range(2):
        apply_again(query, manifest)
        client.indices.rollover(alias="counters")
    client.indices.refresh(index="counters,counters-bad")
    assert client.count(index="counters")["count"] == 2
    assert client.count(index="counters-bad")["count"] == 1


def operate(client: Elasticsearch, url: str, whole: dict[str, str], few: dict[str, str]) -> None:
    """Run each command of the documented operator, with the options in `few`.

    Args:
        client: of a user with all rights.
        url: of the server, for the query.
        whole: the options of a user with all rights.
        few: the options of the operator, with its ``url`` for the command line.
    """
    client.indices.create(index="counters", mappings={"properties": {"n": {"type": "byte"}}})
    aside = {"onBadRow": "deadLetter", "deadLetter": "counters-bad", "maxBadRows": "100%"}
    query = ElasticsearchQuery(SMALL, url=url, index="counters", **whole, **aside)
    query.run(0, [{"n": 1000}])
    query.sink.store.stage(Chunk(query.task(0, 0), 0, 1, b"of a task that comes late"))
    place = few.pop("url")

    def said(name: str, *rest: str) -> str:
        given = [part for one in few.items() for part in ("-o", "=".join(one))]
        result = CliRunner().invoke(main, [name, place, *rest, *given])
        assert result.exit_code == 0, result.output
        return result.output

    assert query.name in said("status")
    assert "sparkonce_rows_total" in said("metrics")
    assert "Disk of node" in said("doctor")
    assert "1 dropped" in said("gc", "--yes", "--grace", "0s")
    assert "1 letters" in said("letters")
    assert "1 letters deleted" in said("letters", "counters-bad", "--delete", "--yes")
    assert "is forgotten" in said("forget", query.name, "--yes")
