"""`python -m demo.live`: the demo with a page in the browser, that reads Redis while it runs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from rich.console import Console

from demo import show
from demo.__main__ import run_demo
from demo.ledgers import Caught, Ledgers
from demo.show import Streams
from demo.target import Target

PAGE = Path(__file__).with_name("live.html")
PORT = 8013


class LiveBoard(show.Board):
    """A board whose figures a page shows, too.

    Args:
        console: for the board itself.
        expected: how many flights each airport will have.
        url: of the Redis in which they are counted.
        ledgers: in that Redis.
        port: of the page; 0 for any that is free.
    """

    def __init__(
        self,
        console: Console,
        expected: Mapping[str, int],
        url: str,
        ledgers: Ledgers,
        port: int = PORT,
    ) -> None:
        super().__init__(console, sum(expected.values()))
        self.expected, self.target = dict(sorted(expected.items())), Target(url)
        self.ledgers = ledgers
        self.state = "Spark starts"
        self.events: list[dict[str, Any]] = []
        self.kills = self.replayed = 0
        self._start = time.monotonic()
        self.server = ThreadingHTTPServer(("127.0.0.1", port), handler(self.told))
        self.page = f"http://127.0.0.1:{self.server.server_port}/"

    def __enter__(self) -> LiveBoard:
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.console.print(f"\n  [bold]page   {self.page}[/]\n")
        super().__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        super().__exit__(*raised)
        self.state = "done"

    def event(self, text: str) -> None:
        super().event(text)
        seconds = time.monotonic() - self._start
        self.events.append({"seconds": round(seconds, 1), "text": text})

    def killed(self, caught: Mapping[str, Caught]) -> None:
        self.kills += 1
        self.replayed += sum(one.epoch is not None for one in caught.values())

    def update(self, streams: Streams, state: str) -> None:
        super().update(streams, state)
        self.state = state

    def told(self) -> dict[str, Any]:
        """What the page shows."""
        counted = self.target.counted(list(self.expected))
        # Behind the counters: what the ledger has decided by then is at least what they hold.
        decided = self.ledgers.read()["airports"].rows
        rows = sum(counted.values())
        return {
            "airports": [
                {"name": name, "counted": counted[name], "expected": expected}
                for name, expected in self.expected.items()
            ],
            "rows": rows,
            "kills": self.kills,
            "replayed": self.replayed,
            "twice": max(0, rows - decided),
            "state": self.state,
            "events": self.events,
        }


def handler(told: Callable[[], Any]) -> type[BaseHTTPRequestHandler]:
    """Answers with the page, and with what is told to it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/state":
                self._answer("application/json", json.dumps(told()).encode())
            elif self.path == "/":
                self._answer("text/html; charset=utf-8", PAGE.read_bytes())
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

        def _answer(self, kind: str, body: bytes) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def main() -> int:
    console = Console(highlight=False)
    boards: list[LiveBoard] = []

    def board(console: Console, frame: Any, url: str, ledgers: Ledgers) -> show.Board:
        expected = frame.groupby("origin").size().to_dict()
        boards.append(LiveBoard(console, expected, url, ledgers))
        return boards[-1]

    def stay() -> None:
        console.print(f"  The page stays at {boards[0].page} until Ctrl-C.")
        while "--once" not in sys.argv:
            time.sleep(1)
        boards[0].server.shutdown()

    return run_demo(console, board, stay)


if __name__ == "__main__":
    sys.exit(main())
