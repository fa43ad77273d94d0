"""URLs: whether a server can be there, and how they are shown without what is secret."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

LAST_PORT = 65535

_SECRET = re.compile(
    r"(?i)((?:pass(?:word|wd|phrase)?|pwd?|secret|token|key|auth(?:orization)?)=)[^&]*"
)
_COLON = re.compile(r"(?i):|%3A")
_SCHEME = re.compile(r"(?:jdbc:)?[\w+.-]+://")
_HOST = r"(?:\[[0-9A-Fa-f:.]*\]|[\w.-]*)(?::\d{1,5})?"
_PLACE = re.compile(rf"{_HOST}(?:,{_HOST})*(?:[/?#](?:(?!%3A)[^:])*)?", re.I)
_ONE_OF_SEVERAL = re.compile(rf"\w+://(?:[^@,/]*@)?{_HOST}(?:[/?#][^@,]*)?")


def require_server(url: str) -> None:
    """Refuse a URL whose host or port no server can have.

    Raises:
        ValueError: it has one.
    """
    try:
        _ = urlsplit(url).port
    except ValueError:
        raise ValueError(
            f"a URL with a host's name or address, and a port from 0 to {LAST_PORT}"
        ) from None


def redact_url(url: str) -> str:
    """The URL, or several with commas between, or what was meant as one, without a password.

    What can't be told from a password is not shown.
    """
    url = _SECRET.sub(r"\1***", url)
    several = re.split(r",(?=\w+://)", url)
    if len(several) > 1 and all(map(_ONE_OF_SEVERAL.fullmatch, several)):
        return ",".join(re.sub(r"//.*@", "//***@", one) for one in several)
    match = _SCHEME.match(url)
    scheme = match[0] if match else ""
    login, at, place = url[len(scheme) :].rpartition("@")
    user, *rest = _COLON.split(login, maxsplit=1)
    if rest:
        login = f"{user}:***" if scheme and not re.search(r"[/?#]", user) else "***"
    if not _PLACE.fullmatch(place):
        host = re.split(r"[:/?#%]", place)[0]
        place = f"{host}:***" if not at and ":" in place else "***"
    return f"{scheme}{login}{at}{place}"
