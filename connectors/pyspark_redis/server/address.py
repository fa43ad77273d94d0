"""Option ``url``: one server, a cluster, or Sentinels that name the primary."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import redis
from redis import exceptions

from sparkonce.options import password
from sparkonce.urls import HOST, require_server

LOGIN = r"(?:[^/?#\s]*@)?"
SERVER = re.compile(rf"rediss?://{LOGIN}{HOST}(?:/[0-9]{{0,4}})?")
SENTINEL = re.compile(
    rf"(rediss?)\+sentinel://({LOGIN})({HOST}(?:,{HOST})*)/([\w.-]+)(/[0-9]{{0,4}})?"
)
SENTINEL_PORT = 26379
CLUSTER = re.compile(rf"(rediss?)\+cluster://({LOGIN})({HOST}(?:,{HOST})*)(?:/0?)?")
PORT = 6379

Addresses = tuple[tuple[str, int], ...]


def address(text: str) -> str:
    """Read option ``url``.

    Raises:
        ValueError: the text is not a URL, or has a part that would silently override an option.
    """
    if several := SENTINEL.fullmatch(text) or CLUSTER.fullmatch(text):
        for host in several[3].split(","):
            require_server(f"redis://{host}")
    elif "+cluster://" in text:
        raise ValueError(
            "like redis+cluster://user:password@host1:6379,host2:6379, with some of the cluster's"
            " nodes; a cluster has one database"
        )
    elif "+sentinel://" in text:
        raise ValueError(
            "like redis+sentinel://user:password@host1:26379,host2:26379/mymaster/0, with the name"
            " of the primary before the database number"
        )
    elif not SERVER.fullmatch(text):
        raise ValueError(
            "like redis://user:password@host:6379/0, with nothing after the database number;"
            " in a password, write # / ? @ as %23 %2F %3F %40"
        )
    else:
        require_server(text)
    return text


@dataclass(frozen=True)
class Sentinels:
    """The Sentinels, which know the primary.

    https://redis.io/docs/latest/develop/reference/sentinel-clients/

    Attributes:
        hosts: hosts and ports of the Sentinels.
        name: the name of the primary.
        settings: the settings of connections to the Sentinels.
        login: the options of user and password at the Sentinels.
    """

    hosts: tuple[tuple[str, int], ...]
    name: str
    settings: tuple[tuple[str, object], ...] = ()
    login: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def primary(self) -> tuple[str, int]:
        """Host and port of the primary, from the first Sentinel that knows it.

        Raises:
            ConnectionError: no Sentinel knows the primary.
            ResponseError: a Sentinel that may know the primary refuses the login.
            OptionError: the file of the password can't be read.
        """
        said, refused, login = "no Sentinel knows it", "", dict(self.login)
        # Each time, because secrets rotate.
        given = login.get("sentinelUser"), password(login, "sentinelPassword")
        settings = dict(zip(("username", "password"), given, strict=True)) | dict(self.settings)
        for host, port in self.hosts:
            try:
                with redis.Redis(host, port, decode_responses=True, **settings) as one:  # type: ignore[arg-type]
                    found = one.sentinel_get_master_addr_by_name(self.name)
            except (exceptions.AuthenticationError, exceptions.NoPermissionError) as error:
                refused = f"Sentinel {host}:{port} refuses the login: {error}"
                continue
            except redis.RedisError as error:
                said = str(error)
                continue
            if found:
                return str(found[0]), int(found[1])
        if refused:  # a retry helps with the other Sentinels, never with this one
            raise redis.ResponseError(refused)
        raise redis.ConnectionError(f"The address of primary {self.name!r} is unknown: {said}")


def is_cluster(url: str) -> bool:
    """Whether the URL is that of a cluster."""
    return CLUSTER.fullmatch(url) is not None


def nodes(url: str) -> tuple[str, Addresses]:
    """The prefix of each node's URL in a cluster, and some nodes; no nodes for another URL."""
    found = CLUSTER.fullmatch(url)
    if not found:
        return url, ()
    scheme, login, hosts = found.groups()
    return f"{scheme}://{login}", _addresses(hosts, PORT)


def _addresses(hosts: str, port: int) -> Addresses:
    parts = (urlsplit(f"//{host}") for host in hosts.split(","))
    return tuple((part.hostname or "", part.port or port) for part in parts)


def split(url: str) -> tuple[str, Addresses, str]:
    """The URL as redis-py reads it, the Sentinels, and the name of the primary, if any."""
    found = SENTINEL.fullmatch(url)
    if not found:
        return url, (), ""
    scheme, login, hosts, name, database = found.groups(default="")
    return f"{scheme}://{login}{name}{database}", _addresses(hosts, SENTINEL_PORT), name
