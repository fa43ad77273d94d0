"""A node with TLS, users and API keys."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import elasticsearch
import pytest
from integration.support.elasticsearch import Private, counting_anew
from integration.support.epochs import COUNTER, ElasticsearchQuery
from integration.support.secured import (
    PAGE,
    PASSWORD,
    certificates,
    count_twice,
    documented,
    follow,
    operate,
    read,
    use_every_right,
)
from integration.support.servers.elasticsearch import (
    OLDEST,
    ElasticsearchProcess,
    connect,
    is_opensearch,
    private_tree,
)
from integration.support.servers.finder import or_skip

from sparkonce.errors import StoreRefused

pytestmark = [
    pytest.mark.variants,
    pytest.mark.skipif(is_opensearch(), reason="OpenSearch has security of its own"),
]


@pytest.fixture
def secured(tmp_path: Path, private_elasticsearch: Private) -> tuple[ElasticsearchProcess, Path]:
    """A node with the security module on, and the certificate of its authority."""
    authority, key, cert = certificates(tmp_path)
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


READS = "{" + re.findall(r"`spark.read` needs, on what it reads, `(.*)`", PAGE)[0] + "}"
FOLLOWS = "{" + re.findall(r"needs, on what it follows, `(.*?)`", PAGE, re.DOTALL)[0] + "}"


@pytest.mark.slow
def test_api_key_with_the_documented_rights_over_tls(
    secured: tuple[ElasticsearchProcess, Path], tmp_path: Path
) -> None:
    node, authority = secured
    trusted = {"tlsCaFile": str(authority)}
    enough = json.loads(documented("PUT /_security/role/app"))
    without = json.loads(json.dumps(enough).replace('"create_index", ', ""))
    with connect(node.url, basic_auth=("admin", PASSWORD), ca_certs=str(authority)) as client:
        keys = {
            name: client.security.create_api_key(name=name, role_descriptors={"r": rights})
            for name, rights in (
                ("enough", enough),
                ("none made", without),
                ("nothing", {"cluster": ["monitor"]}),
                ("reads", {"indices": [{"names": ["counters"], **json.loads(READS)}]}),
                ("follows", {"indices": [{"names": ["counters"], **json.loads(FOLLOWS)}]}),
            )
        }
        encoded = {name: key["encoded"] for name, key in keys.items()}
        count_twice(client, node.url, apiKey=encoded["enough"], **trusted)
        found = read(node.url, apiKey=encoded["reads"], **trusted)
        assert found == [[{"id": 1, "n": 2}]]
        assert follow(node.url, apiKey=encoded["follows"], **trusted) == found

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
        use_every_right(client, node.url, {"apiKey": encoded["enough"], **trusted})


@pytest.mark.slow
def test_an_operator_with_the_documented_rights(secured: tuple[ElasticsearchProcess, Path]) -> None:
    node, authority = secured
    rights = {"ops": json.loads(documented("PUT /_security/role/ops"))}
    trusted = {"tlsCaFile": str(authority)}
    whole = {"user": "admin", "password": PASSWORD, **trusted}
    with connect(node.url, basic_auth=("admin", PASSWORD), ca_certs=str(authority)) as client:
        key = client.security.create_api_key(name="ops", role_descriptors=rights)["encoded"]
        operate(client, node.url, whole, {"url": node.url, "apiKey": key, **trusted})


@pytest.mark.skipif(elasticsearch.__version__[0] < 9, reason="`make variant NAME=client9` runs it")
def test_server_that_is_too_old_for_the_client_is_refused_with_what_to_install() -> None:
    with or_skip(lambda: ElasticsearchProcess(private_tree(OLDEST))) as node:
        query = ElasticsearchQuery(COUNTER, url=node.url, index="orders", createIndex="true")
        with pytest.raises(
            StoreRefused, match=r"client's is 9.*pip install 'elasticsearch>=8.15,<9'"
        ):
            query.sink.check()
