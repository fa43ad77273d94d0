"""A server that accepts events like Meta's Conversions API, and counts them by id."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class EventServer:
    """Listens on 127.0.0.1 while it is entered.

    Args:
        refused: the number, from 1, of the post that gets reply 503.
    """

    def __init__(self, refused: int = 0) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._posts, self._refused = 0, refused
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v19.0/1/events"

    def events(self) -> Counter[str]:
        """The number of times that each event arrived."""
        with self._lock:
            return Counter(self._counts)

    def take(self, body: dict[str, Any]) -> bool:
        with self._lock:
            self._posts += 1
            if self._posts != self._refused:
                self._counts.update(event["event_id"] for event in body["data"])
            return self._posts != self._refused

    def __enter__(self) -> EventServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        take = self.take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                taken = take(body)
                answer = json.dumps({"events_received": len(body["data"]) if taken else 0})
                self.send_response(200 if taken else 503)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer.encode())

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler
