"""Makes docs/live.gif and docs/live.png from a run of `make live`.

What the page is told during the run is recorded, and then shown to Chromium, frame by frame.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import HTTPServer
from io import BytesIO
from pathlib import Path
from threading import Thread
from typing import Any

from demo.live import PORT, handler

DOCS = Path(__file__).parents[1] / "docs"
STATE = f"http://127.0.0.1:{PORT}/state"
SIZE = (860, 440)
OFFLINE = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

State = dict[str, Any]


def chromium() -> str | None:
    """The browser, by the names that it has."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return next(filter(None, map(shutil.which, names)), None)


def seen(url: str, *how: str) -> bytes:
    """What Chromium prints of a page, after its scripts had time."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = [str(chromium()), *OFFLINE, f"--user-data-dir={home}", *how, url]
        command.insert(-1, "--virtual-time-budget=1500")
        return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout


@contextmanager
def served(state: Callable[[], State]) -> Iterator[str]:
    """The page at a URL, told these states."""
    with HTTPServer(("127.0.0.1", 0), handler(state)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def recorded() -> list[State]:
    """What the page was told during a run."""
    states: list[State] = []
    with subprocess.Popen([sys.executable, "-m", "demo.live", "--once"]) as run:
        while run.poll() is None:
            try:
                with urllib.request.urlopen(STATE, timeout=2) as answer:
                    states.append(json.load(answer))
            except OSError:
                pass
            time.sleep(0.1)
    return states


def frames(states: list[State]) -> Iterator[tuple[State, int]]:
    """The states in which something changed, and for how many milliseconds each is shown."""
    last: State | None = None
    for state in states:
        if state["rows"] or state["kills"]:
            if last is not None and state != last:
                waits = last["state"] != "running"
                yield last, 1800 if waits else 350
            last = state
    if last is not None:
        yield last, 4000


def main() -> None:
    from PIL import Image

    pictures, durations = [], []
    shown: list[State] = [{}]
    with served(lambda: shown[0]) as url, tempfile.TemporaryDirectory() as home:
        for state, duration in frames(recorded()):
            shown[0] = state
            file = Path(home) / "frame.png"
            seen(url, f"--window-size={SIZE[0]},{SIZE[1]}", f"--screenshot={file}")
            pictures.append(Image.open(BytesIO(file.read_bytes())).convert("RGB"))
            durations.append(duration)
    pictures[-1].save(DOCS / "live.png", optimize=True)
    few = [picture.quantize(48) for picture in pictures]
    few[0].save(
        DOCS / "live.gif",
        save_all=True,
        append_images=few[1:],
        duration=durations,
        loop=0,
        optimize=True,
    )


if __name__ == "__main__":
    main()
