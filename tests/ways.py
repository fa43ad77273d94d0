"""Ways to get a server that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.support.servers.finder import Finder, Server

if TYPE_CHECKING:
    from contextlib import ExitStack

    from integration.support.servers.finder import Way


class Fake:
    """Ways to get a fake server, and a record of what was tried, started and stopped."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def works(self, how: str) -> Way:
        def way(stack: ExitStack) -> Server:
            self.events.append(f"start {how}")
            stack.callback(self.events.append, f"stop {how}")
            return Server("fake", "1.2", how, f"fake://{how}")

        return way

    def fails(self, how: str, error: Exception) -> Way:
        start = self.works(how)

        def way(stack: ExitStack) -> Server:
            start(stack)
            raise error

        return way

    def finder(self, **ways: Way) -> Finder:
        return Finder("fake", ways)
