"""MySQL and MariaDB behind a virtual address, which an operator's tool moves to the primary."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pymysql
from integration.support.servers.mysql import DATABASE, MySqlProcess, connect, private_binary
from tools.chaos.mysql import DURABLE, TABLES, MySqlTarget
from tools.chaos.target import ROWS
from tools.partitions.cluster import Cluster
from tools.partitions.network import SUBNET, Network
from tools.partitions.plan import CLOCK

ADDRESS = f"{SUBNET}.100"
PORT = 3306
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
            own = (*DURABLE, f"--server-id={number}", *self.settings(name))
            node = MySqlProcess(private_binary(self.server_name), *own, place=place)
            node.data, node.start_seconds = self.disks[name].home / "data", 120.0
            self.nodes[name], self.servers[name] = node, [node]
        self._at, self._wish, self._since = "", "", 0.0

    @classmethod
    def obtain(cls) -> None:
        private_binary(cls.server_name)

    def settings(self, name: str) -> tuple[str, ...]:
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

    def asked(self, name: str, statement: str) -> tuple[dict[str, Any], ...]:
        """The same; nothing if the server does not answer."""
        with suppress(Exception):
            return self.ask(name, statement)
        return ()


GALERA = Path("/usr/lib/galera/libgalera_smm.so")
OF_GALERA = "SHOW STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state_comment',"
OF_GALERA += " 'wsrep_cluster_size')"


class GaleraCluster(BehindAddress):
    """MariaDB with Galera: each node accepts writes, and clients use one of them."""

    name, server_name = "galera", "mariadb"
    unfollowed = "its nodes keep no binary log, which the transfer of a node's state would copy"

    def settings(self, name: str) -> tuple[str, ...]:
        members = ",".join(self.network.places[one].host for one in self.machines)
        return (
            "--binlog-format=ROW",
            "--innodb-autoinc-lock-mode=2",
            "--wsrep-on=ON",
            f"--wsrep-provider={GALERA}",
            "--wsrep-cluster-name=sparkonce",
            f"--wsrep-cluster-address=gcomm://{members}",
            f"--wsrep-node-address={self.network.places[name].host}",
            f"--wsrep-node-name={name}",
            "--wsrep-sst-method=mysqldump",
            f"--wsrep-sst-receive-address={self.network.places[name].host}:{PORT}",
            "--wsrep-sst-auth=root:",
        )

    def start(self, stack: Any) -> None:
        first = self.nodes[self.machines[0]]
        first.config.append("--wsrep-new-cluster")
        super().start(stack)
        first.config.remove("--wsrep-new-cluster")

    @property
    def version(self) -> str:
        return f"{super().version}, Galera, 3 nodes"

    def primary(self) -> str:
        ready = [name for name in self.machines if self._state(name).get("wsrep_ready") == "ON"]
        return self._at if self._at in ready else next(iter(ready), "")

    def is_whole(self) -> bool:
        states = map(self._state, self.machines)
        size = str(len(self.machines))
        return all(
            one.get("wsrep_local_state_comment") == "Synced" and one["wsrep_cluster_size"] == size
            for one in states
        )

    def _state(self, name: str) -> dict[str, str]:
        found = self.asked(name, OF_GALERA)
        return {row["Variable_name"]: row["Value"] for row in found}


NO_CLOCK = "MySQL 9 spends all its time in libfaketime"
GROUP = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
MEMBERS = (
    "SELECT member_host AS host, member_state AS state, member_role AS role"
    " FROM performance_schema.replication_group_members"
)
LOGGED = ("--log-bin=b", "--gtid-mode=ON", "--enforce-gtid-consistency=ON")


class GroupReplication(BehindAddress):
    """MySQL Group Replication with a single primary."""

    name, consistency = "group-replication", "EVENTUAL"
    skipped: ClassVar = {CLOCK: NO_CLOCK}

    def settings(self, name: str) -> tuple[str, ...]:
        hosts = {one: self.network.places[one].host for one in self.machines}
        own = {
            "group_name": GROUP,
            "start_on_boot": "OFF",
            "local_address": f"{hosts[name]}:33061",
            "group_seeds": ",".join(f"{host}:33061" for host in hosts.values()),
            "ip_allowlist": f"{SUBNET}.0/24",
            "consistency": self.consistency,
            "member_expel_timeout": "3",
            "unreachable_majority_timeout": "10",
            "exit_state_action": "READ_ONLY",
            "recovery_get_public_key": "ON",
        }
        loose = (
            f"--loose-group-replication-{key.replace('_', '-')}={to}" for key, to in own.items()
        )
        return (*LOGGED, f"--report-host={hosts[name]}", *PLUGIN, *loose)

    @property
    def version(self) -> str:
        return f"{super().version}, Group Replication, 3 nodes, {self.consistency}"

    def start(self, stack: Any) -> None:
        super().start(stack)
        first, *others = self.machines
        self.ask(first, "SET GLOBAL group_replication_bootstrap_group = ON", JOIN, within=JOINS)
        self.ask(first, "SET GLOBAL group_replication_bootstrap_group = OFF")
        for name in others:
            self.ask(name, JOIN, within=JOINS)

    def primary(self) -> str:
        votes: Counter[str] = Counter()
        for name in self.machines:
            for member in self.asked(name, MEMBERS):
                if (member["role"], member["state"]) == ("PRIMARY", "ONLINE"):
                    votes[member["host"]] += 1
        host, most = next(iter(votes.most_common(1)), ("", 0))
        found = (name for name in self.machines if self.network.places[name].host == host)
        return next(found, "") if most > len(self.machines) // 2 else ""

    def is_whole(self) -> bool:
        whole = True
        for name in self.machines:
            members = self.ask(name, MEMBERS)
            whole &= [one["state"] for one in members] == ["ONLINE"] * len(self.machines)
            own = self.network.places[name].host
            states = {one["state"] for one in members if one["host"] in (own, "")}
            if states & {"ERROR", "OFFLINE"}:
                self.ask(name, "STOP GROUP_REPLICATION", JOIN, within=JOINS)
        return whole and self.primary() == self._at


PLUGIN = ("--plugin-load-add=group_replication.so",)
JOINS = 60
"""Seconds in which a server joins its group."""

JOIN = "START GROUP_REPLICATION USER = 'root', PASSWORD = ''"
