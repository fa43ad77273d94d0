"""A task of a path: stages chunk by chunk, and may fail behind the last."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tools.model.puppets import Puppet, Stage

from sparkonce.exactly_once.staging import ChunkSize
from sparkonce.protocol import Receipt, Task
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.rows import Rows
from sparkonce.tck.simulation import actors
from sparkonce.tck.simulation.oracles import WITNESS

A_ROW = ChunkSize(rows=1, bytes=1 << 20)


class Failed(Exception):
    """What a task raises that can't compute its rows."""


class Staging:
    """One attempt.

    Args:
        task: whose.
        size: how many chunks, each of one row.
        stage: for its puppet.
        converging: whether all chunks change the same row.
    """

    def __init__(self, task: Task, size: int, stage: Stage, converging: bool) -> None:
        self.task, self._size, self._converging = task, size, converging
        self.puppet = Puppet(f"task {task.attempt}", stage, self._work)

    def claimed(self) -> Receipt:
        """What names its chunks to who drops them, though it is not through."""
        return Receipt(self.task, (1,) * self._size, (1,) * self._size)

    def _work(self, puppet: Puppet) -> Any:
        rows: Any = self._rows(puppet)
        return actors.stage(puppet.client, self.task, rows, _encode, A_ROW, actors.QUICK)  # type: ignore[attr-defined]

    def _rows(self, puppet: Puppet) -> Iterator[Rows]:
        task = self.task
        for number in range(self._size):
            row = f"{task.query_id}/{task.epoch}#{task.attempt}.{number}"
            yield Rows([WITNESS if self._converging else row])
        puppet.carry(Request(puppet.actor, "end", _nothing))

    def receipt(self) -> Receipt:
        """What it gives once it is through."""
        while self.puppet.pending is not None:
            self.puppet.go(lambda one: one.step())
        receipt: Receipt = self.puppet.answer
        return receipt

    def fail(self) -> None:
        """Let it fail where it is."""
        self.puppet.go(_fails)


def _fails(_: Request) -> Any:
    raise Failed


def _nothing() -> None:
    """What the end of its rows asks of the store."""


def _encode(rows: Any) -> bytes:
    return json.dumps(list(rows)).encode()
