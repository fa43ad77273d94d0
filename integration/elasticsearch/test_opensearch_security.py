"""A node of OpenSearch with its security plugin: TLS, users and roles."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import counting_anew, of_cli
from integration.support.secured import (
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
    ELASTICSEARCH,
    ElasticsearchProcess,
    connect,
)
from integration.support.servers.finder import or_skip
from integration.support.servers.opensearch import SECURED, find_tree
from integration.support.servers.process import wait_until

from sparkonce.errors import StoreRefused

pytestmark = [
    pytest.mark.variants,
    pytest.mark.skipif(ELASTICSEARCH.asked != "opensearch2", reason="the plugin is of release 2"),
]
API = "/_plugins/_security/api"
HASH = "$2y$12$.dqMh1/t4tsbpKegNYfpqudFDTXyRuvaFiIWD1dhe8HuiqZSCTUHi"  # of PASSWORD
USERS = {
    "_meta": {"type": "internalusers", "config_version": 2},
    "admin": {"hash": HASH, "backend_roles": ["admin"]},
}
TLS = """plugins.security.ssl.{0}.enabled: true
plugins.security.ssl.{0}.pemcert_filepath: node.crt
plugins.security.ssl.{0}.pemkey_filepath: node.key
plugins.security.ssl.{0}.pemtrustedcas_filepath: node.crt"""
CONFIG = f"""{TLS.format("http")}
{TLS.format("transport").partition(chr(10))[2]}
plugins.security.ssl.transport.enforce_hostname_verification: false
plugins.security.allow_default_init_securityindex: true
plugins.security.nodes_dn: ["CN=sparkonce test"]
plugins.security.restapi.roles_enabled: ["all_access"]"""


@pytest.fixture
def trusted(tmp_path: Path) -> dict[str, str]:
    return {"tlsCaFile": str(tmp_path / "ca.pem")}


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[ElasticsearchProcess]:
    _, key, certificate = certificates(tmp_path)

    def started() -> ElasticsearchProcess:
        tree = find_tree(SECURED, secured=True)
        given = (tree.home / "plugins/opensearch-security/config").glob("*.yml")
        files = {f"opensearch-security/{one.name}": one.read_bytes() for one in given}
        files["opensearch-security/internal_users.yml"] = json.dumps(USERS).encode()
        files |= {"node.key": key, "node.crt": certificate}
        return ElasticsearchProcess(tree, *CONFIG.splitlines(), scheme="https", files=files)

    with or_skip(started) as node:
        yield node


@pytest.fixture
def admin(secured: ElasticsearchProcess, trusted: dict[str, str]) -> Iterator[Elasticsearch]:
    ca = trusted["tlsCaFile"]
    with connect(secured.url, basic_auth=("admin", PASSWORD), ca_certs=ca) as client:
        wait_until(client.ping, 60, "no users")  # the plugin makes an index of them
        yield client


def user(client: Elasticsearch, name: str, rights: str) -> dict[str, str]:
    """The options of a new user with these rights."""
    json_ = {"accept": "application/json", "content-type": "application/json"}
    client.perform_request("PUT", f"{API}/roles/{name}", body=json.loads(rights), headers=json_)
    body = {"password": f"{PASSWORD}-A1", "opendistro_security_roles": [name]}
    client.perform_request("PUT", f"{API}/internalusers/{name}", body=body, headers=json_)
    return {"user": name, "password": f"{PASSWORD}-A1"}


def test_users_with_the_documented_roles_over_tls(
    secured: ElasticsearchProcess, trusted: dict[str, str], admin: Elasticsearch
) -> None:
    url, role = secured.url, "PUT /_plugins/_security/api/roles/{}"
    enough = documented(role.format("app"))
    app = user(admin, "app", enough)
    without = user(admin, "without", enough.replace('"create_index", ', ""))
    nothing = user(admin, "nothing", '{"cluster_permissions": ["cluster_monitor"]}')
    reader, follower = (
        user(admin, name, documented(role.format(name))) for name in ("reader", "follower")
    )
    count_twice(admin, url, **app, **trusted)
    found = read(url, **reader, **trusted)
    assert found == [[{"id": 1, "n": 2}]]
    assert follow(url, **follower, **trusted) == found

    with pytest.raises(StoreRefused, match="certificate"):
        counting_anew(url, sinkId="b", **app).sink.check()
    counting_anew(url, sinkId="b", **without, **trusted).sink.check()
    other = {"sinkId": "b", "indexPrefix": "sparkonce-b"}
    with pytest.raises(StoreRefused, match=r"sparkonce-b-ledger does not exist.*json/ledger.json"):
        counting_anew(url, **other, **without, **trusted).sink.check()
    with pytest.raises(StoreRefused, match=r"lacks a right.*docs/permissions.md"):
        counting_anew(url, **nothing, **trusted).sink.check()
    with pytest.raises(StoreRefused, match="rejects these credentials"):
        counting_anew(url, **{**app, "password": "wrong"}, **trusted).sink.check()
    use_every_right(admin, url, {**app, **trusted})


def test_an_operator_with_the_documented_role(
    secured: ElasticsearchProcess, trusted: dict[str, str], admin: Elasticsearch
) -> None:
    ops = user(admin, "ops", documented("PUT /_plugins/_security/api/roles/ops"))
    whole = {"user": "admin", "password": PASSWORD, **trusted}
    few = {"url": of_cli(secured.url), **ops, **trusted}
    operate(admin, secured.url, whole, few)
