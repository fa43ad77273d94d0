"""A table that answers to several names is one target, and has one ledger."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

import pyarrow as pa
from integration.support.epochs import MySqlQuery
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import MySqlProcess, connect, private_binary

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
NO_CASE = "--lower-case-table-names=1"


def test_a_target_has_one_name_where_names_have_no_case(mysql_name: str) -> None:
    binary = or_skip(lambda: private_binary(mysql_name))
    install, command = ((*words, NO_CASE) for words in (binary.install, binary.command))
    binary = replace(binary, install=install, command=command)
    with ExitStack() as stack:
        server = stack.enter_context(or_skip(lambda: MySqlProcess(binary)))
        client = stack.enter_context(connect(server.url))
        cursor = stack.enter_context(client.cursor())
        cursor.execute("CREATE TABLE orders (id BIGINT, n BIGINT)")
        names = set()
        for table in ("orders", "Orders", "SPARKONCE_TEST.ORDERS"):
            query = MySqlQuery(ROWS, url=server.url, dbtable=table, sinkId="one")
            checked = query.sink.check().plan
            query.checked = checked
            names |= {query.name, checked.target, checked.detail.table, checked.stored["table"][1]}
        assert len(names) == 4
