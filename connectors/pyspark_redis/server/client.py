"""A redis-py client that sends each request once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from pyspark_redis.server.address import Sentinels, nodes, split
from pyspark_redis.server.nodes import Nodes
from sparkonce import checks, connections
from sparkonce.connections import shared, used
from sparkonce.errors import OptionError
from sparkonce.options import password
from sparkonce.urls import login

PROTOCOL = 2  # RESP2, which every server and proxy speaks; RESP3 is tested, and has no advantage

SENTINEL_LOGIN = ("sentinelUser", "sentinelPassword", "sentinelPasswordFile")
TLS = {"tlsCaFile": "ssl_ca_certs", "tlsCertFile": "ssl_certfile", "tlsKeyFile": "ssl_keyfile"}


class Greeted:
    """A connection that either completed its handshake or is closed.

    redis-py keeps a socket if the handshake failed with an error that is not redis-py's. The next
    commands over that socket run as the default user, in database 0. So `_connect` reads the
    password before it opens the socket. It reads the file each time, because secrets rotate.
    """

    def __init__(
        self,
        *,
        password_file: str | None = None,
        sentinels: Sentinels | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.password_file, self.sentinels = password_file, sentinels

    def connect(self) -> None:
        """See redis-py."""
        with self._closed_if_it_fails():
            super().connect()  # type: ignore[misc]

    def connect_check_health(self, *args: Any, **more: Any) -> None:
        """See redis-py 6.2 and newer."""
        with self._closed_if_it_fails():
            super().connect_check_health(*args, **more)  # type: ignore[misc]

    def _connect(self) -> Any:
        if self.password_file is not None:
            self.password = password({"passwordFile": self.password_file})
        if self.sentinels is not None:  # each time, because a failover changes the primary
            self.host, self.port = self.sentinels.primary()
        return super()._connect()  # type: ignore[misc]

    @contextmanager
    def _closed_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.disconnect()  # type: ignore[attr-defined]
            raise


class Plain(Greeted, redis.Connection):
    """A connection over TCP."""


class Tls(Greeted, redis.SSLConnection):
    """A connection over TLS."""


class RedisPool(redis.ConnectionPool):
    """See `sparkonce.connections`. After a fork, redis-py itself opens new connections."""

    def release(self, connection: Any) -> None:
        """See redis-py."""
        super().release(connection)
        used(self)

    def close_idle(self) -> None:
        """See `Idling.close_idle`."""
        self.disconnect(inuse_connections=False)


def connect(options: Mapping[str, Any]) -> redis.Redis:
    """The client of this process for these options; it connects at its first request.

    redis-py's retries are off, because a resent compare-and-set or increment could take effect
    twice. `sparkonce.store.Patience` repeats the requests that are safe to repeat.

    Raises:
        OptionError: address, credentials and TLS contradict each other, or a file is missing.
    """
    url, hosts, name = split(str(options["url"]))
    reach, settings = _settings(url, options)
    at_sentinels = _sentinel_login(options, there=bool(hosts))
    if hosts:
        ssl = {"ssl": True} if url.startswith("rediss://") else {}
        to_sentinels = tuple({**reach, **ssl}.items())
        settings["sentinels"] = Sentinels(hosts, name, to_sentinels, at_sentinels)
    return _client(url, settings)


def cluster(options: Mapping[str, Any]) -> Nodes:
    """The nodes of a cluster, each with a client like that of `connect`."""
    begin, seeds = nodes(str(options["url"]))
    _sentinel_login(options, there=False)
    _, settings = _settings(begin + "host", options)

    def connect(node: tuple[str, int]) -> redis.Redis:
        host = f"[{node[0]}]" if ":" in node[0] else node[0]
        return _client(f"{begin}{host}:{node[1]}/0", settings)

    return Nodes(seeds, connect)


def _sentinel_login(options: Mapping[str, Any], *, there: bool) -> tuple[tuple[str, str], ...]:
    """The options of the login at Sentinels, if the URL names some."""
    given = {one: str(options[one]) for one in SENTINEL_LOGIN if options.get(one)}
    checks.refuse(
        [
            (
                given and not there,
                f"Option {next(iter(given), '')} needs Sentinels, and option url names none",
                "the connector would not use it",
                "write redis+sentinel://host1:26379,host2:26379/mymaster/0, or omit the option",
            ),
            (
                {"sentinelPassword", "sentinelPasswordFile"} <= {*given},
                "Options sentinelPassword and sentinelPasswordFile contradict each other",
                "both set the password at the Sentinels",
                "omit one of them",
            ),
        ]
    )
    password(given, "sentinelPassword")  # raises before any connection
    return tuple(given.items())


def _settings(url: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings that reach a server; the same settings with credentials."""
    reach = {
        **_tls(url, options),
        "socket_timeout": options["timeout"],
        "socket_connect_timeout": min(options["timeout"], 5.0),
    }
    return reach, {**_credentials(url, options), **reach}


def _client(url: str, settings: Mapping[str, Any]) -> redis.Redis:
    def pool() -> RedisPool:
        alike = {"socket_keepalive": True, "retry": Retry(NoBackoff(), 0), "protocol": PROTOCOL}
        made = RedisPool.from_url(url, **settings, **alike)
        made.connection_class = Tls if url.startswith("rediss://") else Plain
        return made

    key = url, *sorted(settings.items(), key=lambda item: item[0])
    return redis.Redis(connection_pool=shared(key, pool))


def _tls(url: str, options: Mapping[str, Any]) -> dict[str, str]:
    given = connections.tls_files(options)
    if given and not url.startswith("rediss://"):
        raise OptionError(
            f"Options url=redis:// and {next(iter(given))} contradict each other",
            why="redis:// speaks no TLS",
            todo="write rediss:// in option url",
        )
    connections.require_files(given)
    return {TLS[option]: path for option, path in given.items()}


def _credentials(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    login(url, options)
    given = {"username": options.get("user"), "password": password(options)}
    if options.get("passwordFile"):
        # The path, not the password: secrets rotate, and each connection reads the file.
        given = {"username": given["username"], "password_file": options["passwordFile"]}
    return {name: value for name, value in given.items() if value}
