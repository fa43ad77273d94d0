"""Elasticsearch, by Elastic's client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import elasticsearch
from elasticsearch.serializer import JsonSerializer, NdjsonSerializer
from urllib3.exceptions import ConnectTimeoutError

from pyspark_elasticsearch.server.dialect import Dialect
from pyspark_elasticsearch.server.library import (
    Login,
    OtherProduct,
    Reply,
    TimedOut,
    Unanswered,
    Untrusted,
    is_json,
)
from sparkonce.errors import StoreRefused

EVERY = tuple(range(299, 1000))
"""The statuses for which the client would raise errors of its own."""


OLDEST = 8
CLIENTS = {8: "elasticsearch>=8.15,<9", 9: "elasticsearch>=9,<10"}
"""The client to install, by major release of the server."""


class _Json(JsonSerializer):
    """Leaves bodies as they are: the connector reads and writes them."""

    def loads(self, data: bytes) -> Any:
        return data

    def dumps(self, data: Any) -> bytes:
        return bytes(data)


class _Lines(NdjsonSerializer):
    def dumps(self, data: Any) -> bytes:
        return bytes(data)


class ElasticsearchLibrary:
    """See `Library`."""

    def __init__(self, login: Login) -> None:
        given: dict[str, Any] = {"api_key": login.api_key} if login.api_key else {}
        given |= {"basic_auth": login.user} if login.user else {}
        given |= {"ssl_context": login.tls} if login.tls else {}
        self._client = elasticsearch.Elasticsearch(
            list(login.hosts),
            **given,
            request_timeout=login.timeout,
            max_retries=0,
            retry_on_timeout=False,
            retry_on_status=(),
            connections_per_node=login.connections,
            serializers={one.mimetype: one for one in (_Json(), _Lines())},
        ).options(ignore_status=EVERY)

    def send(
        self,
        method: str,
        target: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Reply:
        """See `Library.send`."""
        try:
            reply = self._client.perform_request(
                method, target, params=params, headers=headers, body=body
            )
        except elasticsearch.UnsupportedProductError as error:
            raise OtherProduct(error.message) from None
        except elasticsearch.SSLError as error:
            raise Untrusted(str(error.message)) from error
        except elasticsearch.ConnectionTimeout as error:
            raise TimedOut(_words(error), was_sent=_was_sent(error)) from error
        except elasticsearch.TransportError as error:
            raise Unanswered(_words(error), was_sent=_was_sent(error)) from error
        return Reply(reply.meta.status, _bytes(reply.body), is_json(reply.meta.mimetype))

    def close(self) -> None:
        """See `Library.close`."""
        self._client.close()


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {getattr(error, 'message', error)}"


def _was_sent(error: Exception) -> bool:
    return not isinstance(error.__cause__, ConnectTimeoutError)


def _bytes(body: Any) -> bytes:
    if isinstance(body, bool) or body is None:  # of a HEAD request
        return b""
    return body if isinstance(body, bytes) else str(body).encode()


def require_fit(status: int, body: Mapping[str, Any], *, for_reads: bool = False) -> None:
    """Reject a server that this client does not support, and Elasticsearch Serverless.

    Raises:
        StoreRefused: it is such a server.
    """
    client = elasticsearch.__version__[0]
    if status == 400:  # the server does not know the headers of a newer client
        raise _versions(f"older than {client}", client, OLDEST)
    if body["version"].get("build_flavor") == "serverless" and not for_reads:
        raise StoreRefused(
            "The server is Elasticsearch Serverless",
            why="it hides settings of indices that the guarantee depends on, and rejects changes to"
            " them, such as index.translog.durability and index.gc_deletes",
            todo="use a self-managed cluster, or a hosted deployment of Elastic Cloud",
        )
    version = str(body["version"]["number"])
    major = int(version.partition(".")[0])
    if not OLDEST <= major <= client + 1 or client > major:
        raise _versions(version, client, min(major, max(CLIENTS)))


def _versions(server: str, client: int, fit: int) -> StoreRefused:
    # `fit` is the major release of a client that supports the server.
    todo = "look for a newer sparkonce"
    if fit < OLDEST:
        todo = f"upgrade the servers to release {OLDEST} or newer"
    elif fit != client:
        todo = f"pip install '{CLIENTS[fit]}' on the driver and every executor"
    return StoreRefused(
        f"The server's release is {server}, and the Python client's is {client}",
        why="a client supports servers of its own major release and of the next one, 8 and newer",
        todo=todo,
    )


ELASTICSEARCH = Dialect(
    name="Elasticsearch",
    client=ElasticsearchLibrary,
    require_fit=require_fit,
    point_path=("_pit",),
    opening={},
    point_id="id",
    closing=lambda point: {"id": point},
    primary="_only_nodes:{}",
    is_on=lambda point, node: True,  # noqa: ARG005
    tie="_shard_doc",
    has_ties=False,
    searching={},
    settings_only={"features": "settings"},
    own_settings={"mode": "standard"},
    map_field={"type": "flattened", "ignore_above": 8000},  # its terms include the key
)
