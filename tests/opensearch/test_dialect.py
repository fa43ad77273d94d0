"""What the connector does with answers that only OpenSearch gives, without a server."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.answering import served

from pyspark_elasticsearch.server import reads
from pyspark_elasticsearch.server.client import Cluster
from pyspark_opensearch.connector import OpenSearchConnector
from pyspark_opensearch.dialect import OPENSEARCH
from sparkonce import options
from sparkonce.errors import OptionError, StoreRefused, StoreUnreachable


def cluster(url: str) -> Cluster:
    given = {"url": url, "index": "x", "timeout": "1s"}
    return Cluster(options.parse(OpenSearchConnector.options, given), OPENSEARCH)


def test_the_connector_needs_no_client_of_elasticsearch() -> None:
    code = (
        "import sys; sys.modules.update(elasticsearch=None, elastic_transport=None);"
        " import pyspark_opensearch.connector"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("text", ["https://a:opensearch+1@h:9200", "http://h/opensearch+x"])
def test_prefix_of_a_url_is_removed_only_at_its_beginning(text: str) -> None:
    (of_url,) = (one for one in OpenSearchConnector.options if one.name == "url")
    hosts = [text, text.replace("@h", "@g")]
    for prefix in ("", "opensearch+"):
        assert of_url.parse(",".join(prefix + one for one in hosts)) == ",".join(hosts)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ({"number": "2.9.0", "distribution": "opensearch"}, ""),
        ({"number": "3.8.0-SNAPSHOT", "distribution": "opensearch"}, ""),
        ({"number": "2.8.0", "distribution": "opensearch"}, "release is 2.8.0"),
        ({"number": "1.3.20", "distribution": "opensearch"}, "release is 1.3.20"),
        ({"number": "7.10.2"}, "is not OpenSearch"),
        ({"number": "9.4.3", "build_flavor": "default"}, "is not OpenSearch"),
    ],
)
def test_server_is_told_by_its_version(version: dict[str, Any], said: str) -> None:
    with served(200, {"version": version}) as url:
        if not said:
            cluster(url).require_fit()
            return
        with pytest.raises(StoreRefused, match=said):
            cluster(url).require_fit()


def test_point_in_time_without_a_shard_is_none() -> None:
    """Searches in it would find no document of that shard, and seem complete."""
    answer = {"pit_id": "p", "_shards": {"total": 2, "failed": 1}}
    with served(200, answer) as url, pytest.raises(StoreUnreachable, match="no part in the point"):
        reads.open_point(cluster(url), "x", "1m")


@pytest.mark.parametrize("status", [429, 500, 503, 599, 600, 999])
@pytest.mark.parametrize("body", [b"null", b"7", b'"busy"', b"<html>", b"", b'{"error":"x"}'])
def test_error_of_whatever_form_is_an_error_of_the_store(status: int, body: bytes) -> None:
    with served(status, body) as url, pytest.raises((StoreUnreachable, StoreRefused)):
        cluster(url).ask("asking", "GET", "/x")


def test_no_host_is_told() -> None:
    with pytest.raises(StoreUnreachable, match="OpenSearch did not answer while asking"):
        cluster("http://127.0.0.1:9").ask("asking", "GET", "/x")


def test_url_of_another_scheme_is_rejected() -> None:
    with pytest.raises(OptionError, match="url"):
        cluster("opensearch://h:9200")
