"""The examples run, and count each row once; the notebook too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from examples.__main__ import EXAMPLES
from integration.support.servers import spark as local_spark
from integration.support.servers.redis import RedisProcess
from nbclient import NotebookClient

HOME = Path(__file__).parents[1] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_an_example_counts_each_row_once(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples", name],
        cwd=HOME.parent,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("exactly once\n")


@pytest.mark.slow
def test_the_notebook_runs(
    private_redis: Callable[..., RedisProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = private_redis()
    own = {"REDIS": server.url, "TMPDIR": str(tmp_path)}
    for name, value in {**local_spark.environment(tmp_path), **own}.items():
        monkeypatch.setenv(name, value)
    assert os.environ["REDIS"] == server.url
    notebook = nbformat.read(HOME / "replay.ipynb", as_version=4)
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    *_, last = (cell for cell in notebook.cells if cell.cell_type == "code")
    (output,) = last.outputs
    clicks, cents = eval(output["data"]["text/plain"])
    assert clicks == 10_000
    assert cents > 0
