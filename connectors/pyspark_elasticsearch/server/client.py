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

OF_PROXIES = 413, 429  # refusals that mean the same whoever gives them, in whatever words


class AllDone(NamedTuple):
    """The items of an answer to a bulk request of so many operations, if each was done."""

    operations: int
    index_name: str = ""  # that all of them went to; empty if the answer does not say so


class AnswerReader(JsonSerializer):
    """Reads JSON.

    Items are `AllDone` only if each of them holds the status of an operation that was done, with
    one and the same index or none, and nothing else (`bulk.OUTCOMES` cuts them down to that), and
    the answer holds nothing but items: so no Python object is made for an operation.
    """

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        if _ALL_DONE.fullmatch(data):
            return {"items": AllDone(data.count(b'"status":'))}
        if created := _ALL_CREATED.fullmatch(data):
            return {"items": AllDone(data.count(b'"status":'), created[1].decode())}
        return super().loads(data)


class RawPageReader(AnswerReader):
    """Leaves a page of a point in time as the bytes that came (`RAW_PAGE`); reads all else."""

    def loads(self, data: bytes) -> Any:
        """See `elastic_transport.Serializer`."""
        return {RAW_PAGE: data} if data.startswith(b'{"pit_id":') else super().loads(data)


RAW_PAGE = "raw page"


class _LineWriter(NdjsonSerializer):
    """Sends lines as they are; the client would copy them twice."""

    def dumps(self, data: Any) -> bytes:
        return data if isinstance(data, bytes) else super().dumps(data)


class Answer(NamedTuple):
    """What the cluster said."""

    status: int
    body: Any


class JsonObject(dict[str, Any]):
    """An object of an answer. Where a member is missing, another server has answered."""

    def __missing__(self, name: str) -> Any:
        raise _not_elasticsearch(f"an answer without {name!r}")


def by_name(body: Mapping[str, Any]) -> dict[str, JsonObject]:
    """An answer that has an object for each of some names, such as those of indices."""
    if not body or not all(isinstance(one, Mapping) for one in body.values()):
        raise _not_elasticsearch(f"{str(body)[:80]!r}")
    return {name: JsonObject(one) for name, one in body.items()}


def path(*parts: str) -> str:
    """The path of a request; names in it may have any characters."""
    return "/" + "/".join(quote(part, safe="") for part in parts)


class Cluster:
    """Sends requests to the cluster.

    A resent compare-and-set would not know that it came before, so the client's own retries are
    off; `sparkonce.store` repeats what may be repeated. A host that takes no
    connection has got nothing, so the next one is asked at once. Options, as parsed, are refused if
    they contradict each other, or a file is not there.
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
        """The client of this process, with today's password: files of secrets are rotated."""
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
        files = connections.tls_files(self.options)  # read anew: files are renewed
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
        """Send one request; `StoreError` if no answer came, or it says no.

        Args:
            doing: what an error says was tried.
            method: of HTTP.
            target: the path.
            params: behind the path.
            body: JSON values, or ready-made bytes.
            allow: statuses that are answers, not errors.
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
        # Of a 404 the cluster says what is not there; a proxy says so of its own routes.
        if isinstance(found, Mapping) and (
            status != 404 or not found or "error" in found or "found" in found
        ):
            return Answer(status, JsonObject(found))
        raise _not_elasticsearch(f"{status} {str(found)[:80]!r} while {doing}")

    def _by_any_host(self, send: Callable[[], Any]) -> Any:
        """Go to the next host where one takes no connection: it has seen nothing of the request."""
        for _ in self.address.hosts[1:]:
            try:
                return send()
            except (elasticsearch.ConnectionError, elasticsearch.ConnectionTimeout) as error:
                if not isinstance(error.__cause__, ConnectTimeoutError):
                    raise
        return send()


class ReadCluster(Cluster):
    """For reads."""

    reader = RawPageReader
    classify = staticmethod(failures.classify_read)


def _not_elasticsearch(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"What answered is not Elasticsearch: {what}",
        why="a proxy answers by itself, or changes answers",
        todo="look into the proxy, or name the cluster itself in option url",
    )


def _contradictions(
    options: Mapping[str, Any], at: address.Address
) -> Iterator[checks.Contradiction]:
    for name in connections.tls_files(options):
        yield (
            not at.tls,
            f"Options url=http:// and {name} contradict each other",
            "http:// speaks no TLS",
            "write https:// in option url",
        )
    named = at.user or at.password or options.get("password") or options.get("passwordFile")
    yield (
        options["apiKey"] and named,
        "Options apiKey and user or password contradict each other",
        "both say who comes",
        "leave one of them out",
    )
