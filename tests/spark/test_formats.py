"""How formats get into sessions that don't look them up."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sparkonce.spark.source import installed

CONNECTORS = Path(__file__).parents[2] / "connectors"
PROGRAM = """
import sparkonce
from types import SimpleNamespace

known = []
print(sparkonce.register(SimpleNamespace(dataSource=SimpleNamespace(register=known.append))))
"""


def registered_from(packed: Path) -> str:
    """What a driver says that has this project's packages from such a file alone."""
    with zipfile.ZipFile(packed, "w") as file:
        for path in CONNECTORS.rglob("*.py"):
            file.write(path, path.relative_to(CONNECTORS))
    program = f"import sys\nsys.path.insert(0, {str(packed)!r})\n{PROGRAM}"
    command = [sys.executable, "-E", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def test_packages_in_a_zip_are_registered(tmp_path: Path) -> None:
    said = registered_from(tmp_path / "sparkonce.zip")
    for name in ("redis", "mysql", "elasticsearch"):
        assert f"'{name}'" in said, said
        assert f"'sparkonce_{name}'" in said, said


def test_packages_in_a_wheel_that_is_not_installed_are_refused(tmp_path: Path) -> None:
    said = registered_from(tmp_path / "sparkonce-0.1.0-py3-none-any.whl")
    assert "UnsupportedQuery: sparkonce was imported from sparkonce-0.1.0-py3-none-any.whl" in said
    assert "under a name with .zip" in said


def test_a_package_of_others_that_cannot_be_imported_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Because of it Spark finds no format of Python by itself."""
    (tmp_path / "pyspark_broken.py").write_text("raise RuntimeError('I am broken')")
    monkeypatch.syspath_prepend(tmp_path)
    assert {"redis", "mysql", "elasticsearch"} <= {one.name() for one in installed()}
    assert "pyspark_broken can't be imported, and is left out: I am broken" in caplog.text
