"""A server that gives one answer to all, and a client of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from pyspark_elasticsearch.connector import ElasticsearchConnector
from pyspark_elasticsearch.server.client import Cluster
from pyspark_elasticsearch.server.elastic import ELASTICSEARCH
from sparkonce import options

Say = Callable[..., Cluster]
"""`say(200, {...}, product="Elasticsearch", asked=[])` gives the client; requests go to `asked`."""


@contextmanager
def saying() -> Iterator[Say]:
    """Start servers, and end them."""
    with ExitStack() as servers:

        def say(status: int, body: Any, **more: Any) -> Cluster:
            given = {"url": servers.enter_context(served(status, body, **more)), "index": "x"}
            return Cluster(options.parse(ElasticsearchConnector.options, given), ELASTICSEARCH)

        yield say


@contextmanager
def served(status: int, body: Any, **more: Any) -> Iterator[str]:
    """The address of a server that gives this answer."""
    server = HTTPServer(("127.0.0.1", 0), _handler(status, body, **more))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def _handler(
    status: int,
    body: Any,
    product: str | None = "Elasticsearch",
    asked: list[tuple[str, bytes]] | None = None,
) -> type[BaseHTTPRequestHandler]:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            if asked is not None:
                asked.append((self.headers["content-type"] or "", sent))
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            if product:
                self.send_header("X-Elastic-Product", product)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(text)

        do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    return Handler
