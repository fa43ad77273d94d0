"""A client of the cluster that sends each request once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

from pyspark_elasticsearch.server import address, failures
from pyspark_elasticsearch.server.dialect import Dialect
from pyspark_elasticsearch.server.library import Library, Login, Reply, Unanswered
from sparkonce import checks, connections
from sparkonce.connections import SharedClient, shared
from sparkonce.errors import StoreError, StoreUnreachable
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
OF_404 = "error", "found", "num_freed", "pits"  # the last two of a point in time


class AllDone(NamedTuple):
    """The items of a bulk answer in which every operation took effect."""

    operations: int
    index_name: str = ""  # the index of all of them; empty if the answer does not name it


def parsed(data: bytes) -> Any:
    """The value of a JSON text.

    The items of a bulk answer become `AllDone`, without a Python object for each, under two
    conditions. Each item has only the status of a successful operation, and the same index or none
    (`bulk.OUTCOMES` selects these fields). The answer has only items.
    """
    if _ALL_DONE.fullmatch(data):
        return {"items": AllDone(data.count(b'"status":'))}
    if created := _ALL_CREATED.fullmatch(data):
        return {"items": AllDone(data.count(b'"status":'), created[1].decode())}
    return json.loads(data)


def parsed_or_page(data: bytes) -> Any:
    """The same, except for a page of a point in time, which stays as it is (`RAW_PAGE`)."""
    return {RAW_PAGE: data} if _PAGE.match(data) else parsed(data)


RAW_PAGE = "raw page"
_PAGE = re.compile(rb'\{"pit_id":"[^"]*","took":')


class Answer(NamedTuple):
    """An answer of the cluster."""

    status: int
    body: Any


class JsonObject(dict[str, Any]):
    """An object of an answer. If a member is missing, another server has answered."""

    def __missing__(self, name: str) -> Any:
        raise _not_of_cluster(f"an answer without {name!r}")


def by_name(body: Mapping[str, Any]) -> dict[str, JsonObject]:
    """An answer that has an object for each name, for example for each index."""
    if not body or not all(isinstance(one, Mapping) for one in body.values()):
        raise _not_of_cluster(f"{str(body)[:80]!r}")
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

    parse = staticmethod(parsed)
    classify = staticmethod(failures.classify)

    def __init__(self, options: Mapping[str, Any], dialect: Dialect) -> None:
        self.options, self.address, self.dialect = options, address.parse(options), dialect
        self.timeout = float(options["timeout"])
        self.parallelism = int(options.get("parallelism", 1))
        checks.refuse(_contradictions(options, self.address))
        connections.require_files(connections.tls_files(options))

    @property
    def _lent(self) -> SharedClient[Library]:
        """The client of this process, with the current password: secret files are rotated."""
        api_key, user = self.options["apiKey"] or "", None
        if not api_key and self.address.user:
            secret = self.address.password or password(self.options)
            user = self.address.user, secret or ""
        files = tuple(connections.tls_files(self.options).items())
        by = (self.dialect.name, self.address.hosts, api_key, user, files)
        key = (*by, self.timeout, self.parallelism)
        return shared(key, lambda: SharedClient(lambda: self._connected(api_key, user)))

    def _connected(self, api_key: str, user: tuple[str, str] | None) -> Library:
        files = connections.tls_files(self.options)  # read again: files are renewed
        tls = connections.tls_context(files) if self.address.tls else None
        hosts, many = tuple(self.address.hosts), self.parallelism + 2
        return self.dialect.client(Login(hosts, self.timeout, many, api_key, user, tls))

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
        data = body if body is None or isinstance(body, bytes) else _json(body)
        with failures.translated(doing, self.dialect.name), self._lent.client() as client:
            status, answer, is_json = self._by_any_host(
                lambda: client.send(method, target, params, headers, data)
            )
        found: Any = None
        if is_json and answer:
            with suppress(ValueError):
                found = self.parse(answer)
        if found is None:
            found = answer.decode(errors="replace")
        if not 200 <= status < 299 and status not in allow and (method, status) != ("HEAD", 404):
            raise self.error_of(status, _error(found), doing)
        if status in OF_PROXIES or method == "HEAD":
            return Answer(status, found)
        if isinstance(found, Mapping) and (
            status != 404 or not found or any(name in found for name in OF_404)
        ):
            return Answer(status, JsonObject(found))
        raise _not_of_cluster(f"{status} {str(found)[:80]!r} while {doing}")

    def require_fit(self, *, may_hide: bool = False) -> None:
        """Reject a server that the connector or its client does not support.

        With `may_hide`, a user who may not see the version passes: reads need no such right.
        """
        allow = (400, 403, 404) if may_hide else (400,)
        try:
            status, body = self.ask("asking for the server's version", "GET", "/", allow=allow)
        except StoreUnreachable as error:
            if not may_hide or isinstance(error.__context__, Unanswered):
                raise
            return  # a front end has answered
        if status in (200, 400):
            self.dialect.require_fit(status, body, for_reads=may_hide)

    def error_of(self, status: int, error: Any, doing: str) -> StoreError:
        """The error for an answer that reports a failure."""
        told = f"{status} {failures.message(error)}"
        return self.classify(status, error).error(self.dialect.name, doing, told)

    def _by_any_host(self, send: Callable[[], Reply]) -> Reply:
        """Try the next host if one accepts no connection, and so has not seen the request."""
        for _ in self.address.hosts[1:]:
            try:
                return send()
            except Unanswered as error:
                if error.was_sent:
                    raise
        return send()


def _error(found: Any) -> Any:
    """The error of an answer, or the first one of a delete by query."""
    if isinstance(found, Mapping):
        failed = (one.get("cause") or one.get("reason") for one in found.get("failures", ()))
        for error in (found.get("error"), *failed):
            if error:
                return error
    return str(found)[:200]


def _json(body: Any) -> bytes:
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


class ReadCluster(Cluster):
    """The cluster for reads."""

    parse = staticmethod(parsed_or_page)
    classify = staticmethod(failures.classify_read)


def _not_of_cluster(what: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"The cluster did not send this answer: {what}",
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
