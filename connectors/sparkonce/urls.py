"""URLs: whether a server can be there, and how they are shown without what is secret."""

from __future__ import annotations

import re
from ipaddress import IPv6Address
from string import ascii_letters, digits
from urllib.parse import urlsplit

LAST_PORT = 65535
HIDDEN = "***"

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
