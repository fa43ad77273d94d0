"""The statements that a step sends to MySQL through a proxy."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from integration.support.proxy import Proxy


def is_query(request: bytes) -> bool:
    return request[4:5] == b"\x03"


def queries_of(proxy: Proxy, step: Callable[[], object]) -> int:
    """How many statements a step sends through the proxy."""
    seen = []
    proxy.cut_request(lambda request: is_query(request) and seen.append(request) is not None)
    step()
    proxy.restore()
    return len(seen)
