"""The `sparkonce` command against Elasticsearch."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import CONNECTOR, Index, documents, of_cli
from integration.support.epochs import COUNTER, ElasticsearchQuery, ones

from sparkonce.errors import RowRefused
from sparkonce.operate.cli import main


@pytest.fixture
def world(index: Index) -> Index:
    """A target for small numbers, and a prefix of the test's own."""
    fields = {"id": {"type": "long"}, "n": {"type": "byte"}}
    guard = {"sparkonce": {"type": "object", "enabled": False}}
    index.client.indices.create(index=index, mappings={"properties": {**fields, **guard}})
    return index


@pytest.fixture
def query(elasticsearch_url: str, world: str) -> ElasticsearchQuery:
    return ElasticsearchQuery(
        COUNTER,
        url=elasticsearch_url,
        index=world,
        indexPrefix=world,
        key="id",
        writeMode="increment",
        chunkRows="2",
    )


def sparkonce(command: str, query: ElasticsearchQuery, *arguments: str) -> Result:
    given = [of_cli(query.options["url"]), "-o", f"indexPrefix={query.options['indexPrefix']}"]
    return CliRunner().invoke(main, [command, *given, *arguments], catch_exceptions=False)


def test_recover_puts_refused_rows_aside_on_demand_and_doubles_nothing(
    query: ElasticsearchQuery, elastic: Elasticsearch, world: str
) -> None:
    query.run(0, [{"id": 3, "n": 127}])
    with pytest.raises(RowRefused):
        query.run(1, ones(range(5)))
    assert "run recover" in sparkonce("status", query).output
    failed = sparkonce("recover", query)
    assert failed.exit_code == 1
    assert "id '3'" in failed.output
    aside = ["-o", "onBadRow=deadLetter", "-o", f"deadLetter={world}-bad"]
    assert "1 epoch recovered." in sparkonce("recover", query, *aside).output
    assert "0 epochs recovered." in sparkonce("recover", query, *aside).output
    found = {one["id"]: one["n"] for one in documents(elastic, world).values()}
    assert found == {0: 1, 1: 1, 2: 1, 3: 127, 4: 1}
    (letter,) = documents(elastic, f"{world}-bad").values()
    assert (letter["epoch"], letter["id"], json.loads(letter["row"])) == (1, "3", {"id": 3, "n": 1})
    mapping = elastic.indices.get_mapping(index=f"{world}-bad")[f"{world}-bad"]["mappings"]
    assert mapping["dynamic"] == "false"


def test_doctor_looks_at_cluster_disks_and_clock(query: ElasticsearchQuery) -> None:
    found = json.loads(sparkonce("doctor", query, "--json").stdout)
    assert {one["level"] for one in found} <= {"fit", "risk"}, found
    said = " ".join(one["what"] for one in found)
    for looked_at in (
        f"{CONNECTOR.dialect.name} ",
        "status is ",
        "Disk of node ",
        "The clock",
        "0 sinks",
    ):
        assert looked_at in said
