"""How far both queries are, by the files of their checkpoints."""

from __future__ import annotations

import json
from pathlib import Path

from tools.chaos.target import QUERIES
from tools.chaos.topic import NAME, Ends


class Progress:
    """What Spark has noted of both queries.

    Args:
        checkpoints: the directory that holds the checkpoint of each.
    """

    def __init__(self, checkpoints: Path) -> None:
        self._homes = {name: checkpoints / name for name in QUERIES}

    def checkpoint(self, query: str) -> Path:
        return self._homes[query]

    def epochs(self) -> dict[str, int]:
        """The last epoch that each has committed; -1 before the first."""
        return {name: last(home / "commits") for name, home in self._homes.items()}

    def committed(self) -> dict[str, Ends]:
        """The offsets up to which each has committed."""
        epochs = self.epochs()
        return {name: _ends(home, epochs[name]) for name, home in self._homes.items()}


def last(log: Path) -> int:
    """The number of the last file of a query's log; -1 if there is none."""
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdigit()), default=-1)


def _ends(home: Path, epoch: int) -> Ends:
    if epoch < 0:
        return {}
    *_, last = (home / "offsets" / str(epoch)).read_text().splitlines()
    return {int(one): end for one, end in json.loads(last)[NAME].items()}
