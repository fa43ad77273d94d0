"""Finds a Python of each release: on this machine, or from Debian in a separate tree.

`python -m tools.matrix.pythons 3.14` prints the path of the interpreter.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from integration.support.servers.cache import tree
from integration.support.servers.finder import UnavailableError

DEBIANS = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
"""The release of Debian with each Python; Debian has no other one from 3.10 on."""

# Python derives the place of its libraries from its own path, so it must start from the tree.
WRAPPER = """#!/bin/sh
exec {tree}/lib64/ld-linux-x86-64.so.2 --argv0 "$0" \\
  --library-path {tree}/usr/lib/x86_64-linux-gnu {tree}/usr/bin/python{release} "$@"
"""


def python(release: str) -> Path:
    """The interpreter of a release, for example `3.12`."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    on_path = shutil.which(f"python{release}")
    for found in (on_path, *root.glob(f"versions/{release}.*/bin/python")):
        if found and _runs(Path(found), release):
            return Path(found)
    if release not in DEBIANS:
        raise UnavailableError(f"no python{release} on PATH, in pyenv or in Debian")
    home = tree(f"python{release}", f"python{release}", DEBIANS[release])
    interpreter = home / "usr/bin" / "python-from-outside"
    interpreter.write_text(WRAPPER.format(tree=home, release=release))
    interpreter.chmod(0o755)
    if not _runs(interpreter, release):
        raise UnavailableError(f"the python{release} of {DEBIANS[release]} does not run here")
    return interpreter


def _runs(found: Path, release: str) -> bool:
    """Whether the path is a Python of this release; pyenv has stubs on PATH for inactive ones."""
    ask = [found, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    done = subprocess.run(ask, capture_output=True, text=True, check=False)
    return done.stdout.strip() == release


if __name__ == "__main__":
    try:
        print(python(sys.argv[1]))
    except UnavailableError as absent:
        sys.exit(str(absent))
