"""The files of docs/writing-a-connector.md, and the kit over them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "writing-a-connector.md"


def files() -> dict[str, str]:
    """The files of the tutorial; a file may be told in several blocks."""
    found: dict[str, str] = {}
    for name, code in re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE.read_text(), re.S):
        found[name] = found.get(name, "") + code + "\n"
    return found


def run(
    home: Path, *tests: str, broken: tuple[str, str] = ("", ""), **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the kit as the page says; with a fault put into the connector."""
    for name, code in files().items():
        (home / name).write_text(code.replace(*broken) if broken[0] else code)
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q"]
    command += ["-p", "no:cacheprovider", "-p", "no:randomly"]  # which its readers may not have
    return subprocess.run(
        [*command, "--rootdir", str(home), "--basetemp", str(home / "tmp"), "-rs", *tests],
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(home), **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
