"""Machines on one machine: network namespaces on a bridge, whose links can fail.

The program runs in a network namespace of its own, which holds the bridge. So it reaches every
machine at any time, like an operator with a cable of their own. The rules of nftables concern only
what the bridge forwards from one machine to another, whatever its address: an address may move.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence

from integration.support.servers.process import Place
from tools.chaos import disk

NAMESPACES = "-mn"
PROGRAMS = {"ip": "iproute2", "tc": "iproute2", "nft": "nftables", "unshare": "util-linux"}
"""The programs that a network needs, and Debian's packages."""

BRIDGE, SUBNET = "bridge", "127.77.0"
"""Addresses that servers take for local ones: those need no TLS, and no limits of production."""

OPERATOR = f"{SUBNET}.254"
"""The address of this program."""

LOSS = 30
"""Percent of packets that a lossy link drops."""

SLOW = "tbf rate 400kbit burst 16kb latency 400ms"
"""What a slow machine receives at most; `netem`, which could delay packets, is a module that a
kernel may lack."""

RULES = f"""
add table bridge links
delete table bridge links
table bridge links {{
  counter dropped {{ }}
  set cut {{ type ifname . ifname; }}
  set lossy {{ type ifname . ifname; }}
  chain forward {{
    type filter hook forward priority 0;
    iifname . oifname @cut counter name dropped drop
    iifname . oifname @lossy numgen random mod 100 < {LOSS} counter name dropped drop
  }}
}}
"""

HEAL = """
flush set bridge links cut
flush set bridge links lossy
reset counter bridge links dropped
"""

Link = tuple[str, str]
"""The names of two machines: from the first to the second."""


def why_not() -> str:
    """Why this machine can make no network; empty if it can."""
    if sys.platform != "linux" or os.geteuid():
        return "network namespaces need Linux and root"
    lacking = {package for program, package in PROGRAMS.items() if not shutil.which(program)}
    if lacking:
        return f"no {', '.join(sorted(lacking))} on PATH: apt-get install them"
    if subprocess.run(["unshare", NAMESPACES, "true"], check=False, capture_output=True).returncode:
        return "this root may not make namespaces"
    return ""


def go_apart(module: str) -> None:
    """Run this program again in a mount and a network namespace of its own, which end with it."""
    disk.go_apart(module, NAMESPACES)


class Network:
    """The machines by name; all links work at first.

    Call `go_apart` first. The namespaces end with this process and those that it started in them.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.places = {
            name: Place(f"{SUBNET}.{number}", ("ip", "netns", "exec", name))
            for number, name in enumerate(names, 1)
        }
        self._cut: set[Link] = set()
        # The folder of names is shared with the machine, unless this namespace hides it.
        os.makedirs("/run/netns", exist_ok=True)
        _run("mount -t tmpfs tmpfs /run/netns")
        _free_subnet(())
        _run(f"ip link add {BRIDGE} type bridge")
        _run(f"ip addr add {OPERATOR}/24 dev {BRIDGE}")
        _run(f"ip link set {BRIDGE} up")
        for name, place in self.places.items():
            _run(f"ip netns add {name}")
            _run(f"ip link add to-{name} type veth peer name eth0 netns {name}")
            _run(f"ip link set to-{name} master {BRIDGE} up")
            _free_subnet(place.within)
            _run(f"ip -n {name} link set eth0 up")
            _run(f"ip -n {name} addr add {place.host}/24 dev eth0")
        _rules(RULES)

    def cut(self, links: Iterable[Link]) -> None:
        """Drop every packet on these links, without a word to the sender."""
        links = [*links]
        self._add("cut", links)
        self._cut |= {*links}

    def lose(self, links: Iterable[Link]) -> None:
        """Drop many packets on these links."""
        self._add("lossy", links)

    def slow(self, name: str) -> None:
        """Let a machine receive little at a time."""
        _run(f"tc qdisc replace dev to-{name} root {SLOW}")

    def dropped(self) -> int:
        """The number of packets that failing links have dropped since the last `heal`."""
        asked = ["nft", "-j", "list", "counter", "bridge", "links", "dropped"]
        found = json.loads(subprocess.run(asked, check=True, capture_output=True, text=True).stdout)
        return sum(one["counter"]["packets"] for one in found["nftables"] if "counter" in one)

    def heal(self) -> None:
        """Let all links work again."""
        _rules(HEAL)
        self._cut.clear()
        for name in self.places:
            _try(f"tc qdisc del dev to-{name} root")

    def move(self, address: str, name: str) -> None:
        """Give an address of the subnet to a machine, as keepalived does.

        A machine that is cut off from this one keeps the address: nobody there can take it. Those
        that reach this machine look for the address anew.
        """
        for other in self.places:
            if other != name and not {(other, name), (name, other)} & self._cut:
                _try(f"ip -n {other} addr del {address}/24 dev eth0")
                _try(f"ip -n {other} neigh flush dev eth0")
        _try(f"ip neigh flush dev {BRIDGE}")
        _try(f"ip -n {name} addr add {address}/24 dev eth0")

    def _add(self, which: str, links: Iterable[Link]) -> None:
        pairs = (f'"to-{one}" . "to-{to}"' for one, to in links)
        _rules(f"add element bridge links {which} {{ {', '.join(pairs)} }}\n")


LOOPBACK = """
ip link set lo up
ip addr del 127.0.0.1/8 dev lo
ip addr add 127.0.0.1/32 dev lo
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
echo 1 > /proc/sys/net/ipv4/conf/default/route_localnet
"""


def _free_subnet(within: Sequence[str]) -> None:
    """Let a namespace keep only 127.0.0.1 to itself, and route the subnet."""
    subprocess.run([*within, "sh", "-ec", LOOPBACK], check=True)


def _run(command: str) -> None:
    subprocess.run(command.split(), check=True)


def _try(command: str) -> None:
    """Run a command that changes nothing where its work is done."""
    subprocess.run(command.split(), check=False, stderr=subprocess.DEVNULL)


def _rules(text: str) -> None:
    silent = subprocess.DEVNULL  # a reset counter is printed
    subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True, stdout=silent)
