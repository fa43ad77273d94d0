"""Rows, bad rows and the connector's own documents don't get into one index by another name."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from click.testing import CliRunner
from elasticsearch import Elasticsearch
from integration.support.documents import documents
from integration.support.elasticsearch_decisions import decide
from integration.support.epochs import ElasticsearchQuery
from integration.support.marks import slow_cases

from sparkonce.errors import OptionError
from sparkonce.operate.cli import main

ROWS = pa.schema([("id", pa.int64())])
Make = Callable[..., ElasticsearchQuery]


@pytest.mark.parametrize("which", ["ledger", "log"])
@pytest.mark.parametrize("option", ["index", *slow_cases("deadLetter")])
def test_alias_of_an_index_of_the_connectors_own_is_refused_at_start(
    into_index: Make, elastic: Elasticsearch, index: str, which: str, option: str
) -> None:
    own = f"{index}-own-{which}"
    into_index(ROWS, key="id", indexPrefix=f"{index}-own")
    before = elastic.indices.get_mapping(index=own).body
    elastic.indices.put_alias(index=own, name=f"{index}-alias")
    given = {option: f"{index}-alias", **({"onBadRow": "deadLetter"} if option != "index" else {})}
    try:
        with pytest.raises(OptionError, match=rf"Option {option}=.*the connector's own"):
            into_index(ROWS, key="id", writeMode="update", indexPrefix=f"{index}-own", **given)
        assert elastic.indices.get_mapping(index=own).body == before
    finally:
        elastic.indices.delete(index=f"{index}-own-ledger,{index}-own-log")


def test_alias_of_the_target_takes_no_dead_letters(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    elastic.indices.create(index=index, aliases={f"{index}-alias": {}})
    given = {"onBadRow": "deadLetter", "deadLetter": f"{index}-alias"}
    with pytest.raises(OptionError, match=rf"deadLetter={index}-alias name one index"):
        into_index(ROWS, key="id", **given)


def test_recover_puts_no_dead_letters_into_the_target(
    into_index: Make, elastic: Elasticsearch, index: str
) -> None:
    prefix = f"{index}-own"
    query = into_index(ROWS, key="id", indexPrefix=prefix)
    decide(query, 0, [{"id": 1}])
    given = ["recover", query.options["url"], "-o", f"indexPrefix={prefix}"]
    aside = ["-o", "onBadRow=deadLetter", "-o", f"deadLetter={index}"]
    try:
        refused = CliRunner().invoke(main, [*given, *aside])
        assert refused.exit_code
        assert "name one index" in refused.output
        assert CliRunner().invoke(main, given).exit_code == 0
        assert documents(elastic, index) == {"1": {"id": 1}}
    finally:
        elastic.indices.delete(index=f"{prefix}-ledger,{prefix}-log")
