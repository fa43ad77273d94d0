"""The suite's end of a driver: a process that runs what the suite commands."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparkonce.tck.spark.processes import Session
from sparkonce.tck.spark.query import DescribedQuery, FollowedQuery, Status

START, ANSWER = 300.0, 300.0


class SparkTrouble(Exception):
    """Spark itself, not the sink, failed to do what the suite needs."""


class RemoteDriver:
    """A driver process, and the query that it runs."""

    def __init__(self, home: Path, settings: Mapping[str, str], env: Mapping[str, str]) -> None:
        home.mkdir(parents=True, exist_ok=True)
        (home / "settings.json").write_text(json.dumps(dict(settings)))
        reading, writing = os.pipe()
        program = [sys.executable, "-m", "sparkonce.tck.spark.driver"]
        command = [*program, str(home / "settings.json"), str(writing)]
        try:
            self.session = Session(command, home / "driver.log", env, fds=(writing,))
        finally:
            os.close(writing)
        self._replies = os.fdopen(reading)
        self._ready = False

    def start(self, query: DescribedQuery | FollowedQuery) -> Status:
        """Start a query; stop one that still runs."""
        call = "follow" if isinstance(query, FollowedQuery) else "start"
        return self._ask(call, query=asdict(query))

    def wait(self, seconds: float = 0.0) -> Status:
        """The status of the query, at its end or after this time."""
        deadline = time.monotonic() + seconds
        # In small steps: a driver whose suite has ended must see the end of its input.
        while True:
            left = max(0.05, min(0.5, deadline - time.monotonic()))
            status = self._ask("wait", seconds=left)
            if not status.running or time.monotonic() >= deadline:
                return status

    def stop(self) -> Status:
        """Stop the query, in any state."""
        return self._ask("stop")

    def epochs(self) -> Sequence[Mapping[str, Any]]:
        """Spark's progress of the last epochs of the query."""
        epochs: Sequence[Mapping[str, Any]] = self._call("progress")["epochs"]
        return epochs

    def knows(self, setting: str) -> bool:
        """Whether this Spark knows the setting, whatever its value."""
        return bool(self._call("knows", setting=setting)["known"])

    def kill(self) -> None:
        """SIGKILL; the Python workers detect it themselves."""
        self.session.kill_group()
        self.close()

    def close(self) -> None:
        """Stop all processes."""
        self.session.close()
        self._replies.close()

    def _ask(self, call: str, **arguments: Any) -> Status:
        return Status(**self._call(call, **arguments))

    def _call(self, call: str, **arguments: Any) -> dict[str, Any]:
        if not self._ready:
            self._answer(START)
            self._ready = True
        with suppress(BrokenPipeError):  # then no reply follows, which the code below reports
            self.session.send(json.dumps([call, arguments]))
        return self._answer(ANSWER)

    def _answer(self, patience: float) -> dict[str, Any]:
        ready, _, _ = select.select([self._replies], [], [], patience)
        line = self._replies.readline() if ready else ""
        if not line:
            why = "did not reply" if self.session.alive else "ended"
            raise SparkTrouble(f"the driver {why}; its log ends:\n{self.session.last_words()}")
        answer: dict[str, Any] = json.loads(line)
        return answer
