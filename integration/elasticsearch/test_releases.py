"""A client of release 9, which speaks to servers from 9 on, before a server of release 8."""

from __future__ import annotations

import elasticsearch
import pytest
from integration.support.counters import COUNTER
from integration.support.epochs import ElasticsearchQuery
from integration.support.servers.elasticsearch import OLDEST, ElasticsearchProcess, private_tree
from integration.support.servers.finder import or_skip

from sparkonce.errors import StoreRefused

pytestmark = pytest.mark.variants


@pytest.mark.skipif(elasticsearch.__version__[0] < 9, reason="`make variant NAME=client9` runs it")
def test_server_that_is_too_old_for_the_client_is_refused_with_what_to_install() -> None:
    with or_skip(lambda: ElasticsearchProcess(private_tree(OLDEST))) as node:
        query = ElasticsearchQuery(COUNTER, url=node.url, index="orders", createIndex="true")
        with pytest.raises(StoreRefused, match=r"client's 9.*pip install 'elasticsearch>=8.15,<9'"):
            query.sink.check()
