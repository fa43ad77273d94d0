"""A test server in a container, where a Docker engine answers."""

from __future__ import annotations

import gc
import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any

from integration.support.servers.finder import UnavailableError
from integration.support.servers.port import HOST

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import ExitStack

ENGINE_SECONDS = 3
ONE_AT_A_TIME = Lock()
"""Which warnings are ignored, all threads of a process share."""


def run(
    stack: ExitStack, image: str, port: int, settings: Mapping[str, str] | None = None
) -> tuple[str, int]:
    """Start a container of the image and give the address at which its port is reached.

    The settings become environment variables of the container.

    The server-specific classes of testcontainers moved between releases, with a warning (here an
    error) at the old place, so only the generic one is used, and each server waits for itself.
    """
    _ask_engine()
    from testcontainers.core.container import DockerContainer

    made = DockerContainer(image).with_exposed_ports(port)
    if _is_here(made):
        made.ports[str(port)] = (HOST,)  # on loopback alone: the server may take any client
    for name, value in (settings or {}).items():
        made = made.with_env(name, value)
    container = stack.enter_context(made)
    host = container.get_container_host_ip()
    # Published ports may listen on IPv4 alone, and "localhost" is often ::1 first.
    return "127.0.0.1" if host == "localhost" else host, int(container.get_exposed_port(port))


def _is_here(made: Any) -> bool:
    """Whether the container's ports are reached at this very machine."""
    client = made.get_docker_client()
    at_host = client.get_connection_mode().value == "docker_host"
    return at_host and client.host() in ("localhost", HOST)


def _ask_engine() -> None:
    """Fail fast without an engine, before any image is looked for."""
    try:
        from testcontainers.core.docker_client import DockerClient
    except ImportError as error:
        raise UnavailableError("testcontainers is not installed") from error
    with ONE_AT_A_TIME, warnings.catch_warnings():
        # docker-py forgets to close the socket on which no engine answered, in a cycle of garbage.
        warnings.simplefilter("ignore", ResourceWarning)
        answers = _pings(lambda: DockerClient(timeout=ENGINE_SECONDS).client)
        if not answers:
            gc.collect()
            raise UnavailableError("no Docker engine answers")


def _pings(connect: Callable[[], Any]) -> bool:
    try:
        client = connect()
    except Exception:  # the types differ with docker-py, its transport and the kind of engine
        return False
    try:
        return bool(client.ping())
    finally:
        client.close()
