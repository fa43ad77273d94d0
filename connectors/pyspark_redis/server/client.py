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
from sparkonce import connections
from sparkonce.connections import shared, used
from sparkonce.errors import OptionError
from sparkonce.options import password
from sparkonce.urls import login

PROTOCOL = 2  # RESP2, which every server and proxy speaks; RESP3 is tested, and brings nothing here

TLS = {"tlsCaFile": "ssl_ca_certs", "tlsCertFile": "ssl_certfile", "tlsKeyFile": "ssl_keyfile"}


class Greeted:
    """A connection that has greeted the server as who it is, or is closed.

    redis-py keeps a socket whose greeting failed by an error that is not its own, and sends the
    next commands over it: as the default user, to database 0. So the password is read before there
    is a socket; anew each time, since files of secrets are rotated.
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
        """See redis-py, since 6.2."""
        with self._closed_if_it_fails():
            super().connect_check_health(*args, **more)  # type: ignore[misc]

    def _connect(self) -> Any:
        if self.password_file is not None:
            self.password = password({"passwordFile": self.password_file})
        if self.sentinels is not None:  # anew each time: after a failover it is another server
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
    """Over TCP."""


class Tls(Greeted, redis.SSLConnection):
    """Over TLS."""


class RedisPool(redis.ConnectionPool):
    """See `sparkonce.connections`. After a fork redis-py makes new connections by itself."""

    def release(self, connection: Any) -> None:
        """See redis-py."""
        super().release(connection)
        used(self)

    def close_idle(self) -> None:
        """See `Idling.close_idle`."""
        self.disconnect(inuse_connections=False)


def connect(options: Mapping[str, Any]) -> redis.Redis:
    """The client of this process for these options; it connects at its first request.

    A resent compare-and-set or increment would not know that it came before, so redis-py's own
    retries are off; `sparkonce.store.Patience` repeats what may be repeated. OptionError where
    address, credentials and TLS contradict each other, or a file is not there.
    """
    url, hosts, name = split(str(options["url"]))
    reach, settings = _settings(url, options)
    if hosts:
        ssl = {"ssl": True} if url.startswith("rediss://") else {}
        settings["sentinels"] = Sentinels(hosts, name, tuple({**reach, **ssl}.items()))
    return _client(url, settings)


def cluster(options: Mapping[str, Any]) -> Nodes:
    """The nodes of a cluster, each by a client as that of `connect`."""
    begin, seeds = nodes(str(options["url"]))
    _, settings = _settings(begin + "host", options)

    def connect(node: tuple[str, int]) -> redis.Redis:
        host = f"[{node[0]}]" if ":" in node[0] else node[0]
        return _client(f"{begin}{host}:{node[1]}/0", settings)

    return Nodes(seeds, connect)


def _settings(url: str, options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """How a server is reached; the same, and who asks."""
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
        # The path, not what it holds: such files are rotated, and read for each connection.
        given = {"username": given["username"], "password_file": options["passwordFile"]}
    return {name: value for name, value in given.items() if value}
