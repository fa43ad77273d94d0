"""OpenSearch, by its own client, and all in which its API differs from that of Elasticsearch."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import opensearchpy
from opensearchpy import exceptions
from urllib3.exceptions import ConnectTimeoutError

from pyspark_elasticsearch.server.dialect import Dialect
from pyspark_elasticsearch.server.library import (
    Login,
    Reply,
    TimedOut,
    Unanswered,
    Untrusted,
    is_json,
)
from sparkonce.errors import StoreRefused

EVERY = range(299, 1000)
"""The statuses for which the client would raise errors of its own."""

OLDEST = 2, 9
"""The first release that runs a search without the default search pipeline of its index."""


class OpenSearchLibrary:
    """See `Library`."""

    def __init__(self, login: Login) -> None:
        headers = {}
        if login.user:  # the client encodes as Latin-1
            encoded = base64.b64encode(":".join(login.user).encode()).decode()
            headers["authorization"] = f"Basic {encoded}"
        if login.api_key:
            headers["authorization"] = f"ApiKey {login.api_key}"
        tls = {"ssl_context": login.tls, "use_ssl": True} if login.tls else {}
        self._timeout = login.timeout
        self._client = opensearchpy.OpenSearch(
            list(login.hosts),
            headers=headers,
            timeout=login.timeout,
            max_retries=0,
            retry_on_timeout=False,
            retry_on_status=(),
            pool_maxsize=login.connections,
            dead_timeout=1,  # a host that was slow once is not avoided for a minute
            **tls,
        )

    def send(
        self,
        method: str,
        target: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> Reply:
        """See `Library.send`."""
        # Not the transport's own request: it returns no status.
        transport = self._client.transport
        connection = transport.get_connection()
        try:
            status, answered, text = connection.perform_request(
                method,
                target,
                params and dict(params),
                body,
                timeout=self._timeout,
                ignore=EVERY,
                headers=dict(headers),
            )
        except exceptions.ConnectionError as error:
            transport.mark_dead(connection)
            raise _unanswered(error) from error
        transport.connection_pool.mark_live(connection)
        types = [value for name, value in answered.items() if name.lower() == "content-type"]
        return Reply(status, text.encode("utf-8", "surrogatepass"), is_json(*types or [None]))

    def close(self) -> None:
        """See `Library.close`."""
        self._client.close()


def _unanswered(error: exceptions.ConnectionError) -> Unanswered:
    cause, words = error.info, f"{type(error).__name__}: {error.info}"
    if isinstance(error, exceptions.SSLError):
        return Untrusted(words)
    was_sent = not isinstance(cause, ConnectTimeoutError)
    kind = TimedOut if isinstance(error, exceptions.ConnectionTimeout) else Unanswered
    return kind(words, was_sent=was_sent)


def require_fit(status: int, body: Mapping[str, Any], *, for_reads: bool = False) -> None:  # noqa: ARG001
    """Reject another product, and a release that is too old.

    Raises:
        StoreRefused: it is such a server.
    """
    version = body["version"] if status == 200 else {}
    if version.get("distribution") != "opensearch":
        raise StoreRefused(
            f"The server is not OpenSearch: it gives version {version.get('number', '')}",
            why="its answer has no distribution, or another one; setting"
            " compatibility.override_main_response_version hides it",
            todo='use format("elasticsearch"), or set that setting to false',
        )
    if tuple(map(int, str(version["number"]).split(".")[:2])) < OLDEST:
        raise StoreRefused(
            f"The server's release is {version['number']}",
            why="in older releases a search may pass through a pipeline that drops hits",
            todo="upgrade the servers",
        )


def is_on(point: str, node: str) -> bool:
    """Whether a point in time has a shard on this node.

    Its name has the names of nodes in Base64; see ``SearchContextId.encode`` of OpenSearch.
    """
    return node.encode() in base64.urlsafe_b64decode(point + "==")


OPENSEARCH = Dialect(
    name="OpenSearch",
    client=OpenSearchLibrary,
    require_fit=require_fit,
    point_path=("_search", "point_in_time"),
    opening={"allow_partial_pit_creation": "false"},
    point_id="pit_id",
    closing=lambda point: {"pit_id": [point]},
    # Not _only_nodes, which clusters with weighted routing reject, such as some of Amazon's.
    # It is the primary by the state of the node that is asked, which may be old.
    primary="_primary",
    is_on=is_on,
    tie="_doc",
    has_ties=True,
    searching={"search_pipeline": "_none"},  # an index may have a default one, which drops hits
    settings_only={},
    own_settings={"replication.type": "DOCUMENT"},
    # A flat_object rejects values of more than 32,766 bytes.
    map_field={"type": "object", "enabled": False},
    shows_ignored=False,
)
