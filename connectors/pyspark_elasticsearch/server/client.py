"""A client of the cluster that sends each request once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import elasticsearch
from elasticsearch.serializer import JsonSerializer, NdjsonSerializer
from urllib3.exceptions import ConnectTimeoutError

from pyspark_elasticsearch.server import address, failures
from sparkonce import checks, connections
from sparkonce.connections import SharedClient, shared
from sparkonce.errors import StoreUnreachable
from sparkonce.options import password

_STATUS = rb'(?:(?:index|create|update|delete)":\{"status":2\d\d|delete":\{"status":404)'
_ITEM = rb'\{"' + _STATUS + rb"\}\}"
_CREATED = rb'\{"create":\{"_index":"%s","status":201\}\}'
_ALL_CREATED = re.compile(
    rb'\{"items":\[' + _CREATED % rb'([^"\\]+)' + rb"(?:," + _CREATED % rb"\1" + rb")*\]\}"
)
_ALL_DONE = re.compile(rb'\{"items":\[' + _ITEM + rb"(?:," + _ITEM + rb")*\]\}")

JSON = {"accept": "application/json", "content-type": "application/json"}
LINES = {"accept": "application/json", "content-type": "application/x-ndjson"}

OF_PROXIES = 413, 429  # statuses with the same meaning from the cluster and from a proxy
# In a 404 the cluster names what is missing; a proxy sends one for its own routes.
OF_404 = "error", "found", "num_freed"  # the last one of a point in time


class AllDone(NamedTuple):
    """The items of a bulk answer in which every operation took effect."""

    operations: int
    index_name: str = ""  # the index of all of them; empty if the answer does not name it


class AnswerReader(JsonSerializer):
    """Parses JSON.

    The items become `AllDone`, without a Python object for each, under two conditions. Each item
    has only the status of a successful operation, and the same index or none (`bulk.OUTCOMES`
    selects these fields). The answer has only items.
    """

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        if _ALL_DONE.fullmatch(data):
            return {"items": AllDone(data.count(b'"status":'))}
        if created := _ALL_CREATED.fullmatch(data):
            return {"items": AllDone(data.count(b'"status":'), created[1].decode())}
        return super().loads(data)


class RawPageReader(AnswerReader):
    """Leaves a page of a point in time as bytes (`RAW_PAGE`), and parses all other answers."""

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        return {RAW_PAGE: data} if data.startswith(b'{"pit_id":') else super().loads(data)


RAW_PAGE = "raw page"


class _LineWriter(NdjsonSerializer):
    """Sends lines unchanged; the client would copy them twice."""

    def dumps(self, data: Any) -> bytes:
        return data if isinstance(data, bytes) else super().dumps(data)


class Answer(NamedTuple):
    """An answer of the cluster."""

    status: int
    body: Any


class JsonObject(dict[str, Any]):
    """An object of an answer. If a member is missing, another server has answered."""

    def __missing__(self, name: str) -> Any:
        raise _not_elasticsearch(f"an answer without {name!r}")


def by_name(body: Mapping[str, Any]) -> dict[str, JsonObject]:
    """An answer that has an object for each name, for example for each index."""
    if not body or not all(isinstance(one, Mapping) for one in body.values()):
        raise _not_elasticsearch(f"{str(body)[:80]!r}")
    return {name: JsonObject(one) for name, one in body.items()}


def path(*parts: str) -> str:
    """The path of a request, with names escaped."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Cluster:
    """Sends requests to the cluster.

    The retries of the client are off, because a repeated compare-and-set would fail on its own
    write; `sparkonce.store` repeats what it can. A host that accepts no connection has received
    nothing, so the request goes to the next host immediately. `options` are parsed; contradicting
    ones and missing files raise `OptionError`.
    """

    reader = AnswerReader
    classify = staticmethod(failures.classify)

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options, self.address = options, address.parse(options)
        self.timeout = float(options["timeout"])
        self.parallelism = int(options.get("parallelism", 1))
        checks.refuse(_contradictions(options, self.address))
        connections.require_files(connections.tls_files(options))

    @property
    def _lent(self) -> SharedClient[elasticsearch.Elasticsearch]:
        """The client of this process, with the current password: secret files are rotated."""
        identity: dict[str, Any] = {}
        if self.options["apiKey"]:
            identity = {"api_key": self.options["apiKey"]}
        elif self.address.user:
            secret = self.address.password or password(self.options)
            identity = {"basic_auth": (self.address.user, secret or "")}
        named = *identity.items(), *connections.tls_files(self.options).items()
        key = (self.address.hosts, *named, self.timeout, self.parallelism, self.reader)
        return shared(key, lambda: SharedClient(lambda: self._connected(identity)))

    def _connected(self, identity: Mapping[str, Any]) -> elasticsearch.Elasticsearch:
        files = connections.tls_files(self.options)  # read again: files are renewed
        trusted: dict[str, Any] = (
            {"ssl_context": connections.tls_context(files)} if self.address.tls else {}
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
            serializers={one.mimetype: one for one in (self.reader(), _LineWriter())},
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
        """Send one request; `StoreError` without an answer, or if it reports a failure.

        Args:
            doing: the operation, for errors.
            method: the HTTP method.
            target: the path.
            params: the query parameters.
            body: JSON values, or encoded bytes.
            allow: statuses to return, not to raise.
        """
        headers = LINES if target.endswith("/_bulk") else JSON
        with failures.translated(doing, self.classify), self._lent.client() as client:
            sender = client.options(ignore_status=allow) if allow else client
            send = partial(
                sender.perform_request, method, target, params=params, headers=headers, body=body
            )
            response = self._by_any_host(send)
        status, found = response.meta.status, response.body
        if status in OF_PROXIES or method == "HEAD":
            return Answer(status, found)
        if isinstance(found, Mapping) and (
            status != 404 or not found or any(name in found for name in OF_404)
        ):
            return Answer(status, JsonObject(found))
        raise _not_elasticsearch(f"{status} {str(found)[:80]!r} while {doing}")

    def _by_any_host(self, send: Callable[[], Any]) -> Any:
        """Try the next host if one accepts no connection, and so has not seen the request."""
        for _ in self.address.hosts[1:]:
            try:
                return send()
            except (elasticsearch.ConnectionError, elasticsearch.ConnectionTimeout) as error:
                if not isinstance(error.__cause__, ConnectTimeoutError):
                    raise
        return send()


class ReadCluster(Cluster):
    """The cluster for reads."""

    reader = RawPageReader
    classify = staticmethod(failures.classify_read)


def _not_elasticsearch(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"The server that answered is not Elasticsearch: {what}",
        why="a proxy sends its own answers, or changes answers",
        todo="check the proxy, or name the cluster itself in option url",
    )


def _contradictions(
    options: Mapping[str, Any], at: address.Address
) -> Iterator[checks.Contradiction]:
    for name in connections.tls_files(options):
        yield (
            not at.tls,
            f"Options url=http:// and {name} contradict each other",
            "http:// does not use TLS",
            "write https:// in option url",
        )
    named = at.user or at.password or options.get("password") or options.get("passwordFile")
    yield (
        options["apiKey"] and named,
        "Options apiKey and user or password contradict each other",
        "both authenticate the connector",
        "leave one of them out",
    )
