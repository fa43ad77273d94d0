"""A client of the cluster that sends each request once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import elasticsearch
from urllib3.exceptions import ConnectTimeoutError

from pyspark_elasticsearch.server import address, failures
from pyspark_elasticsearch.server.answers import Answers, Lines
from sparkonce import connections
from sparkonce.connections import Lent, shared
from sparkonce.errors import OptionError, StoreUnreachable
from sparkonce.options import password

JSON = {"accept": "application/json", "content-type": "application/json"}
LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}


OF_PROXIES = 413, 429
"""Refusals that mean the same whoever gives them, in whatever words."""


class Answer(NamedTuple):
    """What the cluster said."""

    status: int
    body: Any


class Told(dict[str, Any]):
    """The object of an answer; what is looked for in it is there, or it is of another server."""

    def __missing__(self, name: str) -> Any:
        raise _of_another(f"an answer without {name!r}")


def objects(body: Mapping[str, Any]) -> dict[str, Told]:
    """What an answer tells by names, such as of indices."""
    if not body or not all(isinstance(about, Mapping) for about in body.values()):
        raise _of_another(f"{str(body)[:80]!r}")
    return {name: Told(about) for name, about in body.items()}


def path(*parts: str) -> str:
    """The path of a request; names in it may have any characters."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Cluster:
    """Sends requests to the cluster.

    A resent compare-and-set would not know that it came before, so the client's own retries are
    off; `sparkonce.exactly_once.retry` repeats what may be repeated. A host that takes no
    connection has got nothing, so the next one is asked at once.

    Args:
        options: as parsed.
        answers: how these are read.
        known: says what an answer that says no asks for.

    Raises:
        OptionError: address, credentials and TLS contradict each other, or a file is not there.
    """

    def __init__(
        self,
        options: Mapping[str, Any],
        answers: type[Answers] = Answers,
        known: failures.Knows = failures.known,
    ) -> None:
        self.known = known
        self.options, self.address, self.answers = options, address.parse(options), answers
        self.timeout = float(options["timeout"])
        self.parallelism = int(options.get("parallelism", 1))
        _require_fit(options, self.address)

    @property
    def _lent(self) -> Lent[elasticsearch.Elasticsearch]:
        """The client of this process, with today's password: files of secrets are rotated."""
        identity = self._credentials()
        named = *identity.items(), *connections.given(self.options).items()
        key = (self.address.hosts, *named, self.timeout, self.parallelism, self.answers)
        return shared(key, lambda: Lent(lambda: self._made(identity)))

    def _made(self, identity: Mapping[str, Any]) -> elasticsearch.Elasticsearch:
        files = connections.given(self.options)  # read anew: files are renewed
        trusted: dict[str, Any] = (
            {"ssl_context": connections.context(files)} if self.address.tls else {}
        )
        return elasticsearch.Elasticsearch(
            list(self.address.hosts),
            **identity,
            **trusted,
            request_timeout=self.timeout,
            max_retries=0,
            retry_on_timeout=False,
            retry_on_status=(),
            connections_per_node=self.parallelism + 2,
            serializers={each.mimetype: each for each in (self.answers(), Lines())},
        )

    def ask(
        self,
        doing: str,
        method: str,
        target: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: Any = None,
        allow: tuple[int, ...] = (),
    ) -> Answer:
        """Send one request.

        Args:
            doing: what an error says was tried.
            method: of HTTP.
            target: the path.
            params: behind the path.
            body: JSON values, or ready-made bytes.
            allow: statuses that are answers, not errors.

        Raises:
            StoreError: no answer came, or it says no.
        """
        headers = LINES if target.endswith("/_bulk") else JSON
        with failures.translated(doing, self.known), self._lent.client() as client:
            sender = client.options(ignore_status=allow) if allow else client
            send = partial(
                sender.perform_request, method, target, params=params, headers=headers, body=body
            )
            said = self._by_any_host(send)
        status, told = said.meta.status, said.body
        if status in OF_PROXIES or method == "HEAD":
            return Answer(status, told)
        if isinstance(told, Mapping) and (status != 404 or _is_own_404(told)):
            return Answer(status, Told(told))
        raise _of_another(f"{status} {str(told)[:80]!r} while {doing}")

    def _by_any_host(self, send: Callable[[], Any]) -> Any:
        """Go to the next host where one takes no connection: it has seen nothing of the request."""
        for _ in self.address.hosts[1:]:
            try:
                return send()
            except (elasticsearch.ConnectionError, elasticsearch.ConnectionTimeout) as error:
                if not isinstance(error.__cause__, ConnectTimeoutError):
                    raise
        return send()

    def _credentials(self) -> dict[str, Any]:
        if self.options["apiKey"]:
            return {"api_key": self.options["apiKey"]}
        secret = self.address.password or password(self.options)
        if self.address.user:
            return {"basic_auth": (self.address.user, secret or "")}
        return {}


def _is_own_404(told: Mapping[str, Any]) -> bool:
    """Whether it says that something is not there; a proxy says so of its own routes."""
    return not told or "error" in told or "found" in told


def _of_another(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"What answered is not Elasticsearch: {what}",
        why="a proxy answers by itself, or changes answers",
        todo="look into the proxy, or name the cluster itself in option url",
    )


def _require_fit(options: Mapping[str, Any], at: address.Address) -> None:
    """Refuse options that contradict the URL or each other, and files that are not there."""
    files = connections.given(options)
    for name in () if at.tls else files:
        raise OptionError(
            f"Options url=http:// and {name} contradict each other",
            why="http:// speaks no TLS",
            todo="write https:// in option url",
        )
    connections.require_there(files)
    named = at.user or at.password or options.get("password") or options.get("passwordFile")
    if options["apiKey"] and named:
        raise OptionError(
            "Options apiKey and user or password contradict each other",
            why="both say who comes",
            todo="leave one of them out",
        )
