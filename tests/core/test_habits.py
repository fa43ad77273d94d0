"""Options that people bring from other connectors are answered by the name that is meant here."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_mysql.connector import MySqlConnector
from pyspark_redis.connector import RedisConnector
from sparkonce import options
from sparkonce.errors import OptionError
from sparkonce.options import parse

CONNECTORS = RedisConnector, MySqlConnector, ElasticsearchConnector


@pytest.mark.parametrize(
    ("connector", "given", "todo"),
    [
        (RedisConnector, "spark.redis.host", "here it is option 'url'"),
        (RedisConnector, "key.column", "here it is option 'key'"),
        (RedisConnector, "table", "here it is option 'key'"),
        (MySqlConnector, "table", "here it is option 'dbtable'"),
        (MySqlConnector, "batchsize", "here it is option 'chunkRows'"),
        (MySqlConnector, "driver", "leave it out: the client is a Python package"),
        (MySqlConnector, "createIndex", "did you mean 'createTable'"),
        (ElasticsearchConnector, "es.resource", "here it is option 'index'"),
        (ElasticsearchConnector, "ES.Mapping.Id", "here it is option 'key'"),
    ],
)
def test_a_name_of_another_connector_is_answered(connector: Any, given: str, todo: str) -> None:
    with pytest.raises(OptionError, match=f"Option '{given}' is unknown") as refused:
        parse(connector.options, {given: "x"}, complete=False)
    assert todo in refused.value.todo


def test_what_is_meant_is_an_option_of_some_connector_and_what_is_brought_of_none() -> None:
    names = {option.name for connector in CONNECTORS for option in connector.options}
    followed = {option.name for connector in CONNECTORS for option in connector.follows}
    assert set(options.MEANT) <= names | followed
    brought = [one for some in options.MEANT.values() for one in some]
    assert {name.casefold() for name in names}.isdisjoint({*brought, *options.NOTHING})
    assert all(name == name.casefold() for name in (*brought, *options.NOTHING))
