"""Spark's own source of files, with a file for each row."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from sparkonce.tck.sources import StreamingSource


class Files:
    """A folder; Spark reads files in the order of their times."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._written = 0

    def append(self, ids: Sequence[str]) -> None:
        for one in ids:
            self._written += 1
            hidden = self.home / f".{one}"
            hidden.write_text(json.dumps({"id": one}))
            os.utime(hidden, (1e9 + self._written, 1e9 + self._written))
            hidden.rename(self.home / f"{self._written:06d}-{one}.json")

    def lose(self, ids: Sequence[str]) -> None:
        for one in ids:
            for path in self.home.glob(f"*-{one}.json"):
                path.unlink()


def source(home: Path, env: Mapping[str, str]) -> StreamingSource:
    """Describe the source to the kit, with its own folder."""
    files = Files(home)
    return StreamingSource(
        name="Spark's source of files",
        format="json",
        options={"path": str(home)},
        schema="id string",
        append=files.append,
        limit="maxFilesPerTrigger",
        ordered=True,
        change=files.append,
        lose=files.lose,
        tolerant={"ignoreMissingFiles": "true"},
        jvm=True,
        env=env,
    )
