"""The address of the cluster: one URL, or several with commas between."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sparkonce.urls import HOST, given_twice, login, require_server

_FORM = re.compile(r"(https?)://([^/?#@\s,]*@)?" + HOST + r"(/[^?#,\s]*)?")


@dataclass(frozen=True)
class Address:
    """The address of a cluster, with credentials."""

    hosts: tuple[str, ...]  # its nodes, without credentials
    tls: bool  # whether the nodes use TLS
    user: str | None
    password: str | None


def url(text: str) -> str:
    """Check option ``url``; `ValueError` if it is invalid."""
    parts = text.split(",")
    forms = [_FORM.fullmatch(part) for part in parts]
    if not all(forms):
        raise ValueError(
            "like https://host:9200, or several with commas between; in a password, write"
            " # / ? @ , as %23 %2F %3F %40 %2C"
        )
    for part in parts:
        require_server(part)
    if len({part.partition(":")[0] for part in parts}) > 1:
        raise ValueError("either http:// or https:// for all nodes")
    return text


def parse(options: Mapping[str, Any]) -> Address:
    """The address in options ``url`` and ``user``; `OptionError` if both have credentials."""
    text = str(options["url"])
    nodes = [urlsplit(part) for part in text.split(",")]
    named = [node for node in nodes if node.username]
    if len({(node.username, node.password) for node in named}) > 1:
        raise given_twice(text, "user")
    user, secret = login(named[0].geturl() if named else text, options)
    return Address(tuple(map(_host, nodes)), nodes[0].scheme == "https", user, secret)


def _host(node: Any) -> str:
    name = f"[{node.hostname}]" if ":" in node.hostname else node.hostname
    port = node.port or (443 if node.scheme == "https" else 9200)
    return f"{node.scheme}://{name}:{port}{node.path.rstrip('/')}"
