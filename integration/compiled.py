"""`python -m integration.compiled`: PySpark's zip gets what Python compiles its modules to.

Spark's Python workers take PySpark from a zip of sources. Python keeps nothing that it compiles
from a zip, so the first worker of each kind compiles for a second, and a streaming query has five
kinds. Compiled modules that lie beside the sources are taken in their place, by a Python of the
same release:
https://docs.python.org/3/library/zipimport.html
"""

from __future__ import annotations

import compileall
import re
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from py_compile import PycInvalidationMode
from zipfile import ZIP_DEFLATED, ZipFile

TESTS = re.compile(r"/tests/")


def main() -> int:
    """Give the exit status: 0 if the zip has them."""
    found = find_spec("pyspark")
    archive = Path(str(found and found.origin)).parent / "python" / "lib" / "pyspark.zip"
    with ZipFile(archive) as sources:
        if any(name.endswith(".pyc") for name in sources.namelist()):
            return 0
        with tempfile.TemporaryDirectory() as made:
            sources.extractall(made)
            return 0 if _compile(Path(made), archive) else 1


def _compile(folder: Path, archive: Path) -> bool:
    compiled = compileall.compile_dir(
        folder,
        quiet=2,
        rx=TESTS,
        legacy=True,  # beside its source, not in __pycache__, where an import from a zip looks
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        stripdir=str(folder),
        prependdir=str(archive),
    )
    new = archive.with_suffix(".new")
    shutil.copy(archive, new)
    with ZipFile(new, "a", ZIP_DEFLATED) as more:
        for one in sorted(folder.rglob("*.pyc")):
            more.write(one, one.relative_to(folder))
    new.rename(archive)  # for a worker that starts meanwhile
    return bool(compiled)


if __name__ == "__main__":
    sys.exit(main())
