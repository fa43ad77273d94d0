"""A redis-py client that sends each request once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from sparkonce.errors import OptionError
from sparkonce.options import password, redact_url

NOT_YET = {"redis+cluster": "Redis Cluster", "redis+sentinel": "Redis Sentinel"}
TLS = {"tlsCaFile": "ssl_ca_certs", "tlsCertFile": "ssl_certfile", "tlsKeyFile": "ssl_keyfile"}


def connect(options: Mapping[str, Any]) -> redis.Redis:
    """A client for the options; it connects at its first request.

    A resent compare-and-set or increment would not know that it came before, so redis-py's own
    retries are off; `sparkonce.retry` repeats what may be repeated.

    Raises:
        OptionError: the URL or the credentials contradict each other.
    """
    url = str(options["url"])
    _require_known(url, options)
    return redis.Redis.from_url(
        url,
        **_credentials(url, options),
        **{name: options[option] for option, name in TLS.items() if options.get(option)},
        socket_timeout=options["timeout"],
        socket_connect_timeout=min(options["timeout"], 5.0),
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )


def _require_known(url: str, options: Mapping[str, Any]) -> None:
    scheme = urlsplit(url).scheme
    if scheme not in ("redis", "rediss"):
        known = NOT_YET.get(scheme)
        raise OptionError(
            f"Option url={redact_url(url)!r} has a scheme that can't be used",
            why=f"{known} is not supported yet" if known else "it must be redis:// or rediss://",
            todo="write it like redis://host:6379/0",
        )
    tls = [option for option in TLS if options.get(option)]
    if tls and scheme != "rediss":
        raise OptionError(
            f"Options url=redis:// and {tls[0]} contradict each other",
            why="redis:// speaks no TLS",
            todo="write rediss:// in option url",
        )


def _credentials(url: str, options: Mapping[str, Any]) -> dict[str, str]:
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
    return {name: value for name, value in given.items() if value}
