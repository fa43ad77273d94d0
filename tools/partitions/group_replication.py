"""MySQL Group Replication, behind a virtual address."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from tools.partitions.network import SUBNET
from tools.partitions.plan import CLOCK
from tools.partitions.virtual_address import LOGGED, NO_CLOCK, BehindAddress

GROUP = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
MEMBERS = (
    "SELECT member_host AS host, member_state AS state, member_role AS role"
    " FROM performance_schema.replication_group_members"
)


class GroupReplication(BehindAddress):
    """MySQL Group Replication with a single primary."""

    name, consistency = "group-replication", "EVENTUAL"
    settings = (
        f"single primary, `super_read_only=ON` in its file, `group_replication_consistency`"
        f" {consistency}"
    )
    advice = "`super_read_only=ON` in the configuration of each server; any consistency"
    skipped: ClassVar = {CLOCK: NO_CLOCK}

    def server_options(self, name: str) -> tuple[str, ...]:
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
        # Else a server that restarts accepts writes before it joins, and the group rejects it.
        guarded = "--super-read-only=ON"
        return (*LOGGED, f"--report-host={hosts[name]}", guarded, *PLUGIN, *loose)

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
