"""MySQL and MariaDB behind a virtual address, which an operator's tool moves to the primary."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pymysql
from integration.support.servers.mysql import DATABASE, MySqlProcess, connect, private_binary
from tools.chaos.mysql import DURABLE, TABLES, MySqlTarget
from tools.chaos.target import ROWS
from tools.partitions.cluster import Cluster
from tools.partitions.network import SUBNET, Network

ADDRESS = f"{SUBNET}.100"
PORT = 3306
NO_CLOCK = "MySQL 9 spends all its time in libfaketime"
LOGGED = ("--log-bin=b", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")

LAG = 3.0
"""Seconds for which a machine must be the primary before it gets the address."""

KEYED = {**TABLES, ROWS: f"{TABLES[ROWS]}, at BIGINT AUTO_INCREMENT PRIMARY KEY"}
"""A group needs a primary key in each table. Here a row that is written twice has two of them."""


class BehindAddress(MySqlTarget, Cluster):
    """Three machines; clients know the virtual address only.

    Attributes:
        server_name: the server, as `private_binary` names it.
    """

    machines = "n1", "n2", "n3"
    tables = KEYED
    server_name = "mysql"

    def __init__(self, network: Network, home: Path) -> None:
        Cluster.__init__(self, network, home)
        self.nodes: dict[str, MySqlProcess] = {}
        for number, name in enumerate(self.machines, 1):
            place = self.place(name, PORT)
            own = (*DURABLE, f"--server-id={number}", *self.server_options(name))
            node = MySqlProcess(private_binary(self.server_name), *own, place=place)
            node.data, node.start_seconds = self.disks[name].home / "data", 120.0
            self.nodes[name], self.servers[name] = node, [node]
        self._at, self._wish, self._since = "", "", 0.0

    @classmethod
    def obtain(cls) -> None:
        private_binary(cls.server_name)

    def options(self, query: str) -> dict[str, str]:
        """One query commits chunk by chunk, so that faults find decided epochs."""
        chunks = {"atomicity": "chunk"} if query == ROWS else {}
        return {**super().options(query), **chunks}

    def server_options(self, name: str) -> tuple[str, ...]:
        """The options of a machine's server."""
        raise NotImplementedError

    def primary(self) -> str:
        """The machine that clients should use; empty if there is none."""
        raise NotImplementedError

    @property
    def url(self) -> str:
        return self.nodes[self._at or self.machines[0]].url

    @property
    def sink_url(self) -> str:
        return f"mysql://root@{ADDRESS}:{PORT}/{DATABASE}"

    def leader(self) -> str:
        return self._at or self.machines[0]

    def operate(self) -> None:
        """Move the address to the primary, once it has been that for a while."""
        try:
            found, now = self.primary(), time.monotonic()
        except pymysql.Error:
            return  # a server that is needed does not answer: the next time
        if found != self._wish:
            self._wish, self._since = found, now
        if found and (found == self._at or not self._at or now - self._since > LAG):
            # Again each time: a machine that was cut off keeps the address until links work.
            self.network.move(ADDRESS, found)
            self._at = found

    def ask(self, name: str, *statements: str, within: int = 5) -> tuple[dict[str, Any], ...]:
        """Send statements to a machine's server; return the rows of the last one."""
        how: dict[str, Any] = {"connect_timeout": 2, "read_timeout": within}
        connected = connect(self.nodes[name].url, cursorclass=pymysql.cursors.DictCursor, **how)
        with connected as client, client.cursor() as cursor:
            for one in statements:
                cursor.execute(one)
            return tuple(cursor.fetchall())

    def asked(self, name: str, *statements: str) -> tuple[dict[str, Any], ...]:
        """The same; nothing if the server does not answer."""
        with suppress(Exception):
            return self.ask(name, *statements)
        return ()
