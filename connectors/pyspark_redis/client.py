"""A redis-py client that sends each request once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider
from redis.retry import Retry

from sparkonce import tls
from sparkonce.errors import OptionError
from sparkonce.options import password, redact_url

TLS = {"tlsCaFile": "ssl_ca_certs", "tlsCertFile": "ssl_certfile", "tlsKeyFile": "ssl_keyfile"}


def address(text: str) -> str:
    """Read option ``url``.

    Raises:
        ValueError: it is none, or holds what would silently overrule an option.
    """
    if text.startswith(("redis+cluster://", "redis+sentinel://")):
        raise ValueError("redis:// or rediss://; Redis Cluster and Sentinel are not supported yet")
    if not re.fullmatch(
        r"rediss?://([^/?#\s]*@)?([^/?#@:\s]+|\[[0-9a-fA-F:.]+\])(:\d{1,5})?(/\d{0,4})?", text
    ):
        raise ValueError(
            "like redis://user:password@host:6379/0, with nothing behind the database's number;"
            " in a password, write # / ? @ as %23 %2F %3F %40"
        )
    return text


class FromFile(CredentialProvider):
    """Reads the password anew for each connection, since files of secrets are rotated."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """See redis-py."""
        secret, user = password(self.options) or "", self.options.get("user")
        return (user, secret) if user else (secret,)


def connect(options: Mapping[str, Any]) -> redis.Redis:
    """A client for the options; it connects at its first request.

    A resent compare-and-set or increment would not know that it came before, so redis-py's own
    retries are off; `sparkonce.retry` repeats what may be repeated.

    Raises:
        OptionError: address, credentials and TLS contradict each other, or a file is not there.
    """
    url = str(options["url"])
    return redis.Redis.from_url(
        url,
        **_credentials(url, options),
        **_tls(url, options),
        socket_timeout=options["timeout"],
        socket_connect_timeout=min(options["timeout"], 5.0),
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )


def _tls(url: str, options: Mapping[str, Any]) -> dict[str, str]:
    given = tls.given(options)
    for option in given:
        if not url.startswith("rediss://"):
            raise OptionError(
                f"Options url=redis:// and {option} contradict each other",
                why="redis:// speaks no TLS",
                todo="write rediss:// in option url",
            )
    tls.require_there(given)
    return {TLS[option]: path for option, path in given.items()}


def _credentials(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    secret, parts = password(options), urlsplit(url)
    given = {"username": options.get("user"), "password": secret}
    there = {"username": parts.username, "password": parts.password}
    for name, value in given.items():
        if value and there[name]:
            raise OptionError(
                f"Option url={redact_url(url)!r} and an option both give the {name}",
                why="they may differ",
                todo="keep one of them",
            )
    if options.get("passwordFile"):
        user = given["username"] or there["username"]
        return {"credential_provider": FromFile({**options, "user": user})}
    return {name: value for name, value in given.items() if value}
