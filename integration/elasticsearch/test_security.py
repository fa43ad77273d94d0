"""A node with TLS, users and API keys."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import json
import re
from pathlib import Path

import elasticsearch
import pyarrow as pa
import pytest
from click.testing import CliRunner
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import (
    Private,
    apply_again,
    counting_anew,
    decide,
    documents,
    keep_log,
)
from integration.support.epochs import COUNTER, ElasticsearchQuery
from integration.support.servers.elasticsearch import (
    OLDEST,
    ElasticsearchProcess,
    connect,
    private_tree,
)
from integration.support.servers.finder import or_skip

from pyspark_elasticsearch.connector import ElasticsearchConnector
from sparkonce import options
from sparkonce.errors import StoreRefused
from sparkonce.operate.cli import main
from sparkonce.protocol import Chunk
from sparkonce.reading import Scan

pytestmark = pytest.mark.variants
PASSWORD = "changeme-please"
SMALL = pa.schema([("n", pa.int64())])
STREAMED = pa.schema([("@timestamp", pa.timestamp("us", "UTC")), ("n", pa.int64())])


@pytest.fixture
def secured(tmp_path: Path, private_elasticsearch: Private) -> tuple[ElasticsearchProcess, Path]:
    """A node with the security module on, and the certificate of its authority."""
    authority, key, cert = _certificates(tmp_path)
    node = private_elasticsearch(
        "xpack.security.enabled: true",
        "xpack.security.http.ssl.enabled: true",
        "xpack.security.http.ssl.key: node.key",
        "xpack.security.http.ssl.certificate: node.crt",
        "xpack.security.transport.ssl.enabled: false",
        "xpack.license.self_generated.type: basic",
        scheme="https",
        files={
            "node.key": key,
            "node.crt": cert,
            "users": f"admin:{_hashed(PASSWORD)}\n".encode(),
            "users_roles": b"superuser:admin\n",
        },
    )
    return node, authority


def _hashed(secret: str) -> str:
    salt = b"not so random, as this is a test"
    made = hashlib.pbkdf2_hmac("sha512", secret.encode(), salt, 10_000, dklen=32)
    return "{PBKDF2}10000$" + "$".join(base64.b64encode(one).decode() for one in (salt, made))


def _certificates(folder: Path) -> tuple[Path, bytes, bytes]:
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


PAGE = Path("docs/permissions.md").read_text("utf-8")
READS = "{" + re.findall(r"`spark.read` needs, on what it reads, `(.*)`", PAGE)[0] + "}"
FOLLOWS = "{" + re.findall(r"needs, on what it follows, `(.*?)`", PAGE, re.DOTALL)[0] + "}"
RIGHTS = re.search(r"PUT /_security/role/app\n(.*?)\n\n", PAGE, re.DOTALL)


def _use_every_right(client: Elasticsearch, url: str, identity: dict[str, str]) -> None:
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


@pytest.mark.slow
def test_api_key_with_the_documented_rights_over_tls(
    secured: tuple[ElasticsearchProcess, Path], tmp_path: Path
) -> None:
    node, authority = secured
    trusted = {"tlsCaFile": str(authority)}
    assert RIGHTS
    documented = json.loads(RIGHTS[1].replace("orders", "counters"))
    without = json.loads(json.dumps(documented).replace('"create_index", ', ""))
    with connect(node.url, basic_auth=("admin", PASSWORD), ca_certs=str(authority)) as client:
        keys = {
            name: client.security.create_api_key(name=name, role_descriptors={"r": rights})
            for name, rights in (
                ("enough", documented),
                ("none made", without),
                ("nothing", {"cluster": ["monitor"]}),
                ("reads", {"indices": [{"names": ["counters"], **json.loads(READS)}]}),
                ("follows", {"indices": [{"names": ["counters"], **json.loads(FOLLOWS)}]}),
            )
        }
        encoded = {name: key["encoded"] for name, key in keys.items()}
        query = counting_anew(node.url, apiKey=encoded["enough"], **trusted)
        query.sink.check()
        query.run(0, [{"id": 1, "n": 1}])
        query.run(1, [{"id": 1, "n": 1}])
        assert documents(client, "counters")["1"]["n"] == 2
        raw = {"url": node.url, "index": "counters", "apiKey": encoded["reads"], **trusted}
        reads = options.parse(ElasticsearchConnector.reads, raw)
        schema = ElasticsearchConnector().infer(reads)
        source = ElasticsearchConnector().source(reads, Scan(schema))
        found = [batch.to_pylist() for one in source.splits() for batch in source.read(one)]
        assert found == [[{"id": 1, "n": 2}]]
        raw |= {"startingPosition": "earliest", "apiKey": encoded["follows"]}
        feed = ElasticsearchConnector().feed(
            options.parse(ElasticsearchConnector.follows, raw), Scan(schema)
        )
        parts = feed.between(feed.begin(), feed.latest())
        assert [batch.to_pylist() for one in parts for batch in feed.read(one)] == found

    with pytest.raises(StoreRefused, match="certificate"):
        counting_anew(node.url, apiKey=encoded["enough"], sinkId="b").sink.check()
    may_not = {"apiKey": encoded["none made"], **trusted}
    counting_anew(node.url, sinkId="b", **may_not).sink.check()
    with pytest.raises(StoreRefused, match=r"sparkonce-b-ledger does not exist.*json/ledger.json"):
        counting_anew(node.url, sinkId="b", indexPrefix="sparkonce-b", **may_not).sink.check()
    with pytest.raises(StoreRefused, match=r"lacks a right.*docs/permissions.md"):
        counting_anew(node.url, apiKey=encoded["nothing"], **trusted).sink.check()
    secret = tmp_path / "password"
    secret.write_text("wrong\n")
    wrong = {"user": "admin", "passwordFile": str(secret)}
    with pytest.raises(StoreRefused, match=r"rejects these credentials") as refused:
        counting_anew(node.url, **wrong, **trusted).sink.check()
    assert "wrong" not in str(refused.value)
    secret.write_text(f"{PASSWORD}\n")
    counting_anew(node.url, **wrong, sinkId="c", **trusted).sink.check()
    with connect(node.url, basic_auth=("admin", PASSWORD), ca_certs=str(authority)) as client:
        _use_every_right(client, node.url, {"apiKey": encoded["enough"], **trusted})


@pytest.mark.slow
def test_an_operator_with_the_documented_rights(secured: tuple[ElasticsearchProcess, Path]) -> None:
    node, authority = secured
    found = re.search(r"PUT /_security/role/ops\n(.*?)\n\n", PAGE, re.DOTALL)
    assert found
    with connect(node.url, basic_auth=("admin", PASSWORD), ca_certs=str(authority)) as client:
        rights = {"ops": json.loads(found[1].replace("orders", "counters"))}
        key = client.security.create_api_key(name="ops", role_descriptors=rights)["encoded"]
        client.indices.create(index="counters", mappings={"properties": {"n": {"type": "byte"}}})
        whole = {"user": "admin", "password": PASSWORD, "tlsCaFile": str(authority)}
        aside = {"onBadRow": "deadLetter", "deadLetter": "counters-bad", "maxBadRows": "100%"}
        query = ElasticsearchQuery(SMALL, url=node.url, index="counters", **whole, **aside)
        query.run(0, [{"n": 1000}])
    query.sink.store.stage(Chunk(query.task(0, 0), 0, 1, b"of a task that comes late"))

    def said(*command: str) -> str:
        name, *rest = command
        given = ("-o", f"apiKey={key}", "-o", f"tlsCaFile={authority}")
        result = CliRunner().invoke(main, [name, node.url, *rest, *given])
        assert result.exit_code == 0, result.output
        return result.output

    assert query.name in said("status")
    assert "sparkonce_rows_total" in said("metrics")
    assert "Disk of node" in said("doctor")
    assert "1 dropped" in said("gc", "--yes", "--grace", "0s")
    assert "1 letters" in said("letters")
    assert "1 letters deleted" in said("letters", "counters-bad", "--delete", "--yes")
    assert "is forgotten" in said("forget", query.name, "--yes")


@pytest.mark.variants
@pytest.mark.skipif(elasticsearch.__version__[0] < 9, reason="`make variant NAME=client9` runs it")
def test_server_that_is_too_old_for_the_client_is_refused_with_what_to_install() -> None:
    with or_skip(lambda: ElasticsearchProcess(private_tree(OLDEST))) as node:
        query = ElasticsearchQuery(COUNTER, url=node.url, index="orders", createIndex="true")
        with pytest.raises(
            StoreRefused, match=r"client's is 9.*pip install 'elasticsearch>=8.15,<9'"
        ):
            query.sink.check()
