"""URLs: validation, credentials, and redaction."""

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
"""A host with an optional port, for the regular expression of a URL."""

_SCHEME = re.compile(r"(?:^|,)[A-Za-z][A-Za-z+:]*(?=://)")
_PLAIN = frozenset(ascii_letters + digits + "._~-")


def spelled(url: str) -> str:
    """One URL, or several separated by commas, with schemes in lower case."""
    return _SCHEME.sub(lambda scheme: scheme[0].lower(), url)


def require_server(url: str) -> None:
    """Reject a URL with an impossible host or port.

    Raises:
        ValueError: the URL has one.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
        if "[" in parts.netloc.rpartition("@")[2]:  # Python 3.10 accepts any text in brackets
            IPv6Address(parts.hostname or "")
    except ValueError:
        raise ValueError(
            f"a URL with a host's name or address, and a port from 0 to {LAST_PORT}"
        ) from None


def login(url: str, options: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The user, and the password if the URL has it.

    Options ``user``, ``password`` and ``passwordFile`` may set them instead.

    Raises:
        OptionError: both the URL and an option set the user or the password.
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
    """The error for a user or password that is set in two places."""
    return OptionError(
        f"Option url={redact_url(url)!r} and another option both set the {name}",
        why="they may differ",
        todo="keep one of them",
    )


def redact_url(url: str) -> str:
    """One URL, or several of HTTP separated by commas, without passwords.

    Only a URL that is clearly ``scheme://user:password@host:port/path`` is shown. Of any other text
    only the scheme is shown, since each part may be a password. A comma may belong to a password,
    too, so among several URLs with credentials each needs its own credentials and scheme.
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
    """A URL, or one of several hosts, as shown; empty if it can't be parsed."""
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
