"""Where the cluster is: one URL, or several with commas between."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from sparkonce.errors import OptionError
from sparkonce.urls import redact_url, require_server

_FORM = re.compile(
    r"(https?)://([^/?#@\s,]*@)?([^/?#@:,\s]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?(/[^?#,\s]*)?"
)


@dataclass(frozen=True)
class Address:
    """A cluster, and who comes.

    Attributes:
        hosts: its nodes, without credentials.
        tls: whether TLS is spoken.
    """

    hosts: tuple[str, ...]
    tls: bool
    user: str | None
    password: str | None


def url(text: str) -> str:
    """Read option ``url``.

    Raises:
        ValueError: it is none.
    """
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
        raise ValueError("http:// or https:// for all nodes alike")
    return text


def parse(options: Mapping[str, Any]) -> Address:
    """The address in options ``url`` and ``user``.

    Raises:
        OptionError: credentials are there twice, or contradict each other.
    """
    text = str(options["url"])
    nodes = [urlsplit(part) for part in text.split(",")]
    named = [node for node in nodes if node.username]
    if len({(node.username, node.password) for node in named}) > 1:
        raise _twice(text, "user")
    first = named[0] if named else None
    user, secret = (first.username, first.password) if first else (None, None)
    if user and options.get("user"):
        raise _twice(text, "user")
    if secret and (options.get("password") or options.get("passwordFile")):
        raise _twice(text, "password")
    return Address(
        hosts=tuple(_host(node) for node in nodes),
        tls=nodes[0].scheme == "https",
        user=unquote(user) if user else options.get("user"),
        password=unquote(secret) if secret else None,
    )


def _host(node: Any) -> str:
    name = f"[{node.hostname}]" if ":" in node.hostname else node.hostname
    port = node.port or (443 if node.scheme == "https" else 9200)
    return f"{node.scheme}://{name}:{port}{node.path.rstrip('/')}"


def _twice(text: str, name: str) -> OptionError:
    return OptionError(
        f"Option url={redact_url(text)!r} and another place both give the {name}",
        why="they may differ",
        todo="keep one of them",
    )
