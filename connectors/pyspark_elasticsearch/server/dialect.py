"""What differs between the servers that have the API of Elasticsearch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark_elasticsearch.server.library import Library, Login


class RequireFit(Protocol):
    """Rejects a server; see `Dialect`."""

    def __call__(self, status: int, body: Mapping[str, Any], *, for_reads: bool = False) -> None:
        """`StoreRefused` if the connector does not support the server."""


@dataclass(frozen=True)
class Dialect:
    """One kind of server.

    Attributes:
        name: of the product.
        client: makes a client.
        require_fit: rejects a server by status and body of its answer to ``GET /``, and by whether
            it is for reads only.
        point_path: the path of points in time, behind an index or alone.
        opening: parameters of a request that opens one; without all shards it must fail.
        point_id: the member of its answer that names the point.
        closing: makes the body of a request that closes one.
        primary: the preference of a search for the primary of a shard, on this node.
        is_on: whether a point in time is on a node, where `primary` does not ensure it.
        tie: the sort value of documents in a point in time.
        has_ties: whether documents of several shards may have the same one.
        searching: parameters of each search.
        settings_only: parameters for an answer with the settings of indices only.
        own_settings: settings of the connector's own indices, beside those of all dialects.
        map_field: the mapping of a column that is a map.
        shows_ignored: whether a search finds all fields whose values the index ignores.
    """

    name: str
    client: Callable[[Login], Library]
    require_fit: RequireFit
    point_path: tuple[str, ...]
    opening: Mapping[str, str]
    point_id: str
    closing: Callable[[str], Mapping[str, Any]]
    primary: str
    is_on: Callable[[str, str], bool]
    tie: str
    has_ties: bool
    searching: Mapping[str, str]
    settings_only: Mapping[str, str]
    own_settings: Mapping[str, Any]
    map_field: Mapping[str, Any]
    shows_ignored: bool = True
