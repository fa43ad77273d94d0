"""URLs: whether a server can be there, who comes, and how they look without what is secret."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv6Address
from string import ascii_letters, digits
from typing import Any
from urllib.parse import unquote, urlsplit

from sparkonce.errors import OptionError

LAST_PORT = 65535
HIDDEN = "***"

HOST = r"(?:[^/?#@:,\s]+|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?"
"""A host, and its port or none, in the regular expression of a URL."""

_SCHEME = re.compile(r"(?:^|,)[A-Za-z][A-Za-z+:]*(?=://)")
_PLAIN = frozenset(ascii_letters + digits + "._~-")


def spelled(url: str) -> str:
    """The URL, or several with commas between, with schemes in lower case: no case counts there."""
    return _SCHEME.sub(lambda scheme: scheme[0].lower(), url)


def require_server(url: str) -> None:
    """Refuse a URL whose host or port no server can have.

    Raises:
        ValueError: it has one.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
        if "[" in parts.netloc.rpartition("@")[2]:  # Python 3.10 takes anything between brackets
            IPv6Address(parts.hostname or "")
    except ValueError:
        raise ValueError(
            f"a URL with a host's name or address, and a port from 0 to {LAST_PORT}"
        ) from None


def login(url: str, options: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Who comes: the user, and the password if the URL has it.

    Options ``user``, ``password`` and ``passwordFile`` may say it instead.

    Raises:
        OptionError: URL and options both do.
    """
    parts = urlsplit(url)
    secret = options.get("password") or options.get("passwordFile")
    for name, there, here in (
        ("user", parts.username, options.get("user")),
        ("password", parts.password, secret),
    ):
        if there and here:
            raise given_twice(url, name)
    user, password = (unquote(one) if one else None for one in (parts.username, parts.password))
    return user or options.get("user"), password


def given_twice(url: str, name: str) -> OptionError:
    """The error for a user or password that is given in two places."""
    return OptionError(
        f"Option url={redact_url(url)!r} and another place both give the {name}",
        why="they may differ",
        todo="keep one of them",
    )


def redact_url(url: str) -> str:
    """The URL, or several of HTTP with commas between, without passwords.

    Only what is read without doubt as ``scheme://user:password@host:port/path`` is shown; of
    anything else the scheme alone, as each part of it may be meant as a password. A comma may be
    one's, too: of several with a login each has its own, and a scheme.
    """
    url = spelled(url)
    scheme, sign, _ = url.partition("://")
    if not sign or not _is_plain(scheme, "+:"):
        return HIDDEN
    urls = url.split(",") if scheme in ("http", "https") else [url]
    clear = len(urls) == 1 or "@" not in url or all("://" in one and "@" in one for one in urls)
    shown = [_shown(one) for one in urls]
    return ",".join(shown) if clear and all(shown) else f"{scheme}://{HIDDEN}"


def _shown(url: str) -> str:
    """A URL, or one of further hosts; empty if it can't be read."""
    scheme, sign, rest = url.partition("://") if "://" in url else ("", "", url)
    try:
        parts = urlsplit(f"//{rest}")
        _ = parts.port
    except ValueError:
        return ""
    login, at, place = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    known = _is_plain(user) and _is_plain(place, ":[]") and _is_plain(parts.path, "/")
    whole = parts.hostname and not place.endswith(":") and rest == parts.netloc + parts.path
    if not known or not whole:
        return ""
    return f"{scheme}{sign}{user}{colon and f':{HIDDEN}'}{at}{place}{parts.path}"


def _is_plain(text: str, more: str = "") -> bool:
    return _PLAIN.issuperset(text.translate(dict.fromkeys(map(ord, more))))
