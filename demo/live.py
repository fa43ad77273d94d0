"""`python -m demo.live`: the demo with a web page that reads Redis while it runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from rich.console import Console

from demo.__main__ import main
from demo.check import AIRPORT, FIGURES, Target
from demo.ledgers import Ledgers
from demo.show import Board

PAGE = Path(__file__).with_name("live.html")
PORT = 8013


class LiveBoard(Board):
    """A board that also serves its figures to a page."""

    def __init__(
        self,
        console: Console,
        expected: Mapping[str, int],
        url: str,
        ledgers: Ledgers,
        port: int = PORT,
    ) -> None:
        super().__init__(console, sum(expected.values()))
        self.expected, self.target, self.ledgers = expected, Target(url), ledgers
        self.server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self.page = f"http://127.0.0.1:{self.server.server_port}/"
        Thread(target=self.server.serve_forever, daemon=True).start()
        console.print(f"\n  [bold]page   {self.page}[/]\n")

    def figures(self) -> dict[str, Any]:
        """The figures of the page."""
        counted = {name: self._counted(name) for name in self.expected}
        # After the counters: the ledger has then decided at least the rows that they include.
        decided, rows = self.ledgers.read()["airports"].rows, sum(counted.values())
        return {
            "airports": [
                {"name": name, "counted": counted[name], "expected": expected}
                for name, expected in sorted(self.expected.items())
            ],
            "rows": rows,
            "kills": int(bool(self.caught)),
            "replayed": sum(one.epoch is not None for one in self.caught.values()),
            "twice": max(0, rows - decided),
            "state": self.state,
            "events": [{"seconds": at, "text": text} for at, text in self.events],
        }

    def _counted(self, airport: str) -> int:
        return int(self.target.client.hget(AIRPORT + airport, FIGURES[0]) or 0)


def _handler(board: LiveBoard) -> type[BaseHTTPRequestHandler]:
    """Serves the page and its figures."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/state":
                kind, body = "application/json", json.dumps(board.figures()).encode()
            else:
                kind, body = "text/html; charset=utf-8", PAGE.read_bytes()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def live() -> int:
    """The demo, and a page that stays until Ctrl-C."""
    boards: list[LiveBoard] = []

    def board(console: Console, frame: Any, url: str, ledgers: Ledgers) -> Board:
        expected = frame.groupby("origin").size().to_dict()
        boards.append(LiveBoard(console, expected, url, ledgers))
        return boards[-1]

    def stay() -> None:
        boards[0].state = "done"
        boards[0].console.print(f"  The page stays at {boards[0].page} until Ctrl-C.")
        while "--once" not in sys.argv:
            time.sleep(1)
        boards[0].server.shutdown()

    return main(board, stay)


if __name__ == "__main__":
    sys.exit(live())
