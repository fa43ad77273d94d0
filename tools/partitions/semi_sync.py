"""MySQL with semi-synchronous replication; an operator promotes a replica by hand."""

from __future__ import annotations

import time
from typing import Any, ClassVar

from tools.partitions.plan import CLOCK
from tools.partitions.virtual_address import ADDRESS, LOGGED, NO_CLOCK, PORT, BehindAddress

SOURCE = (
    "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{host}', SOURCE_PORT = {port},"
    " SOURCE_USER = 'root', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1,"
    " SOURCE_CONNECT_RETRY = 1, SOURCE_HEARTBEAT_PERIOD = 1, SOURCE_RETRY_COUNT = 1000000"
)
STATUS = "SHOW REPLICA STATUS"
GIVES_UP = 5.0
"""Seconds without the primary after which the operator promotes a replica."""

FOREVER, BRIEFLY = 3_600_000, 1000
"""Milliseconds for which a commit waits for a replica, before it ends without one."""


class SemiSync(BehindAddress):
    """A commit waits for one replica, for as long as it takes."""

    name, waits = "semi-sync", FOREVER
    settings = "`rpl_semi_sync_source_timeout` one hour"
    skipped: ClassVar = {CLOCK: NO_CLOCK}

    def server_options(self, name: str) -> tuple[str, ...]:
        plugins = "semisync_source.so;semisync_replica.so;mysql_clone.so"
        return (
            *LOGGED,
            f"--plugin-load-add={plugins}",
            "--loose-rpl-semi-sync-replica-enabled=ON",
            "--super-read-only=ON",  # also after a restart, until the operator lets it lead
            f"--loose-rpl-semi-sync-source-timeout={self.waits}",
            "--replica-net-timeout=4",
            f"--report-host={self.network.places[name].host}",
        )

    @property
    def version(self) -> str:
        return f"{super().version}, semi-synchronous, {self.waits / 1000:g} s, 2 replicas"

    def start(self, stack: Any) -> None:
        super().start(stack)
        self._primary, self._missed = self.machines[0], 0.0
        self._lead(self._primary)
        for name in self.machines[1:]:
            self._follow(name)

    def primary(self) -> str:
        """The primary; another one, if neither operator nor replicas reach the old one."""
        if self._is_served():
            self._missed = 0.0
            self._let_write(self._primary)
        elif not self._missed:
            self._missed = time.monotonic()
        elif time.monotonic() - self._missed > GIVES_UP:
            self._promote()
        return self._primary

    def is_whole(self) -> bool:
        (primary,) = self.ask(self._primary, "SELECT @@super_read_only AS reads_only")
        others = [name for name in self.machines if name != self._primary]
        whole = not primary["reads_only"] and all(map(self._is_replica, others))
        return whole and self._at == self._primary

    def _is_served(self) -> bool:
        """Whether some replica hears the primary; the operator stands on the replicas' side."""
        rows = [self.asked(name, STATUS) for name in self.machines if name != self._primary]
        return any(row and row[0]["Replica_IO_Running"] == "Yes" for row in rows)

    def _promote(self) -> None:
        """Let the replica that has the most transactions take over."""
        others = [name for name in self.machines if name != self._primary]
        if not all(self.ask(name, STATUS) for name in others):
            return  # one of them is being made anew
        for name in others:
            self.ask(name, "STOP REPLICA IO_THREAD")
        had = {name: self.ask(name, STATUS)[0] for name in others}
        first, second = others
        most = first if self._has_all(first, had[second]) else second
        gtids = had[most]["Retrieved_Gtid_Set"].replace("\n", "")
        # What it has not executed would go with its relay log.
        executed = f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{gtids}', 4) AS late"
        if gtids and self.ask(most, executed)[0]["late"]:
            return
        self._primary, self._missed = most, 0.0
        self._lead(most)
        for name in others:
            if name != most:
                self._follow(name)

    def _has_all(self, name: str, other: dict[str, Any]) -> bool:
        """Whether a replica has received all that another one has received."""
        own = self.ask(name, STATUS)[0]
        mine, theirs = (
            f"{one['Retrieved_Gtid_Set']},{one['Executed_Gtid_Set']}".strip(",").replace("\n", "")
            for one in (own, other)
        )
        (row,) = self.ask(name, f"SELECT GTID_SUBSET('{theirs}', '{mine}') AS yes")
        return bool(row["yes"])

    def _lead(self, name: str) -> None:
        self.ask(name, "STOP REPLICA", "RESET REPLICA ALL")
        self._let_write(name)

    def _let_write(self, name: str) -> None:
        """Let a server accept writes that wait for a replica; one that restarted does neither."""
        waits = "SET GLOBAL rpl_semi_sync_source_enabled = ON"
        self.asked(name, waits, "SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")

    def _follow(self, name: str) -> None:
        place = self.network.places[self._primary]
        (own,) = self.ask(name, "SELECT @@rpl_semi_sync_source_enabled AS leads")
        if own["leads"]:
            # Not OFF for its plugin: commits that wait would end as if a replica had them.
            self.nodes[name].revive()
            return
        self.ask(name, "STOP REPLICA", SOURCE.format(host=place.host, port=PORT), "START REPLICA")

    def _is_replica(self, name: str) -> bool:
        """Whether a machine follows the primary; an old primary begins to."""
        if self._has_more(name):
            self._clone(name)
            return False
        row = self.asked(name, STATUS)
        if row and row[0]["Source_Host"] == self.network.places[self._primary].host:
            status = row[0]
            if status["Replica_SQL_Running"] == "Yes" and not status["Last_IO_Errno"]:
                return bool(status["Replica_IO_Running"] == "Yes")
        self._follow(name)
        return False

    def _has_more(self, name: str) -> bool:
        """Whether a machine has transactions that the primary never had.

        A replica has those that the primary is about to commit before the primary has.
        """
        (own,) = self.ask(name, "SELECT @@global.gtid_executed AS had")
        had = own["had"].replace("\n", "")
        asked = (
            f"SELECT GTID_SUBTRACT('{had}', @@global.gtid_executed) AS more, @@server_uuid AS me"
        )
        (row,) = self.ask(self._primary, asked)
        return any(not one.strip().startswith(row["me"]) for one in row["more"].split(",") if one)

    def _clone(self, name: str) -> None:
        """Replace all that a machine has by what the primary has; the server then ends."""
        # A clone needs a server that takes writes: no client may reach it.
        self.network.move(ADDRESS, self._primary)
        self._at = self._primary
        place = self.network.places[self._primary]
        donor = f"SET GLOBAL clone_valid_donor_list = '{place.host}:{PORT}'"
        self.ask(name, "STOP REPLICA", "SET GLOBAL super_read_only = OFF", donor)
        clone = f"CLONE INSTANCE FROM 'root'@'{place.host}':{PORT} IDENTIFIED BY ''"
        self.asked(name, clone)
        self.nodes[name].revive()


class BriefSemiSync(SemiSync):
    """A commit waits for a replica for a second: then a failover may lose it."""

    name, waits, loses = "semi-sync-brief", BRIEFLY, True
    settings = "`rpl_semi_sync_source_timeout` 1 s"
    advice = "a timeout longer than any outage of the replicas"
