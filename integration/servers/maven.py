"""Jars from Maven Central, kept between runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from integration.servers.finder import UnavailableError

KEPT = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "sparkonce" / "jars"


def jar(group: str, name: str, version: str) -> Path:
    """The jar with these coordinates.

    Raises:
        UnavailableError: there is no Maven here, or it can't load the jar.
    """
    found = KEPT / f"{name}-{version}.jar"
    if not found.exists():
        _load(f"{group}:{name}:{version}")
    return found


def _load(artifact: str) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise UnavailableError("no mvn on PATH")
    command = [maven, "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
    done = subprocess.run(
        [*command, f"-DoutputDirectory={KEPT}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UnavailableError(f"Maven could not load {artifact}: {done.stdout.strip()[-300:]}")
