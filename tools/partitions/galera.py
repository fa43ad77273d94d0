"""MariaDB with Galera, behind a virtual address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.partitions.virtual_address import BehindAddress

GALERA = Path("/usr/lib/galera/libgalera_smm.so")
STATE = 3307
"""The port for a transfer of state: in 127.0.0.0/8 it may not be that of the donor."""

OF_GALERA = "SHOW STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_local_state_comment',"
OF_GALERA += " 'wsrep_cluster_size')"


class GaleraCluster(BehindAddress):
    """MariaDB with Galera: each node accepts writes, and clients use one of them."""

    name, server_name = "galera", "mariadb"
    settings = "clients use one node, `wsrep_sync_wait` 0"
    unfollowed = "its nodes keep no binary log, which the transfer of a node's state would copy"

    def server_options(self, name: str) -> tuple[str, ...]:
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
            f"--wsrep-sst-receive-address={self.network.places[name].host}:{STATE}",
            f"--extra-port={STATE}",
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

    def wait_until_whole(self) -> None:
        """A node that could not apply a transaction leaves for good: an operator restarts it."""
        for name in self.machines:
            if self._state(name).get("wsrep_local_state_comment") == "Inconsistent":
                self.nodes[name].kill()
        super().wait_until_whole()

    def _state(self, name: str) -> dict[str, str]:
        found = self.asked(name, OF_GALERA)
        return {row["Variable_name"]: row["Value"] for row in found}
