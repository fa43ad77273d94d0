"""What the connector needs of a client library: one request, sent once, and its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


class Reply(NamedTuple):
    """An answer, of whichever status."""

    status: int
    body: bytes
    is_json: bool


def is_json(content_type: str | None) -> bool:
    """Whether an answer is JSON by its type; a proxy may remove the type."""
    kind = (content_type or "json").partition(";")[0]
    return kind.strip().lower().endswith("json")


class Unanswered(Exception):
    """No answer arrived; the request may have taken effect."""

    def __init__(self, words: str, *, was_sent: bool = True) -> None:
        super().__init__(words)
        self.was_sent = was_sent  # False if no host accepted a connection


class TimedOut(Unanswered):
    """No answer arrived in time."""


class Untrusted(Unanswered):
    """TLS failed."""


class OtherProduct(Exception):
    """The server is another product."""


@dataclass(frozen=True)
class Login:
    """How a client reaches the hosts."""

    hosts: tuple[str, ...]
    timeout: float
    connections: int  # to each host
    api_key: str = ""
    user: tuple[str, str] | None = None  # with the password
    tls: Any = None  # an SSL context


class Library(Protocol):
    """A client of a cluster."""

    def send(
        self,
        method: str,
        target: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Reply:
        """Send one request to one of the hosts.

        Raises:
            Unanswered: no answer arrived.
            OtherProduct: another product answered.
        """

    def close(self) -> None:
        """Close all connections."""
