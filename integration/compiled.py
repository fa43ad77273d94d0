"""`python -m integration.compiled`: PySpark's zip gets what Python compiles its modules to.

Spark's Python workers take PySpark from a zip of sources. Python keeps nothing that it compiles
from a zip, so the first worker of each kind compiles for a second, and a streaming query has five
kinds. Compiled modules that lie beside the sources are taken in their place, by a Python of the
same release: https://docs.python.org/3/library/zipimport.html

They are not compared with the sources. Who changes those brings the zip as it was back by
`pip install --force-reinstall --no-deps pyspark`.
"""

from __future__ import annotations

import compileall
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from py_compile import PycInvalidationMode
from zipfile import ZIP_DEFLATED, ZipFile

import pyspark

TESTS = re.compile(r"/pyspark/(.*/)?tests/")


def main() -> None:
    """Compile, unless it is done, or the PySpark of this environment has no zip."""
    archive = Path(pyspark.__file__).parent / "python" / "lib" / "pyspark.zip"
    if not (archive.is_file() and archive.is_relative_to(sys.prefix)):
        sys.exit(f"{archive} is no zip of {sys.prefix}")
    with ZipFile(archive) as sources, tempfile.TemporaryDirectory() as made:
        if not any(name.endswith(".pyc") for name in sources.namelist()):
            sources.extractall(made)
            _compile(Path(made), archive)
            _add(Path(made), archive)


def _compile(folder: Path, archive: Path) -> None:
    compileall.compile_dir(
        folder,
        quiet=1,
        rx=TESTS,
        legacy=True,  # beside its source: an import from a zip does not look into __pycache__
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        stripdir=str(folder),
        prependdir=str(archive),
    )


def _add(folder: Path, archive: Path) -> None:
    """Replace the archive by one with more behind the rest: who reads the old one can go on."""
    new = archive.with_suffix(f".{os.getpid()}")
    shutil.copy(archive, new)
    with ZipFile(new, "a", ZIP_DEFLATED) as more:
        for one in sorted(folder.rglob("*.pyc")):
            more.write(one, one.relative_to(folder))
    new.rename(archive)


if __name__ == "__main__":
    main()
