"""`python -m tools.spark_home FOLDER`: a Spark for tests, whose Python workers start quickly.

A Python worker takes PySpark from a zip of sources. Python keeps nothing that it compiles from a
zip, so the first worker of each kind compiles for a second, and a streaming query has five kinds.
Here the zip is a copy that has the compiled modules too, which a Python of the same release takes
in place of the sources: https://docs.python.org/3/library/zipimport.html
All else is links to the PySpark of this environment, which stays as pip has installed it.
"""

from __future__ import annotations

import compileall
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from py_compile import PycInvalidationMode
from zipfile import ZIP_DEFLATED, ZipFile

import pyspark

INSTALLED = Path(pyspark.__file__).parent
LIBRARIES = Path("python") / "lib"
TESTS = re.compile(r"/pyspark/(.*/)?tests/")


def main(home: Path) -> None:
    """Make it anew; two runs at once leave one of the two whole ones."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as made:
        new = Path(made) / "spark"
        (new / LIBRARIES).mkdir(parents=True)
        archive = INSTALLED / LIBRARIES / "pyspark.zip"
        _link(new, leaving_out=[INSTALLED / "python"])
        _link(new, "python", leaving_out=[INSTALLED / LIBRARIES])
        _link(new, str(LIBRARIES), leaving_out=[archive])
        shutil.copy(archive, new / LIBRARIES)
        _compile(new / LIBRARIES / archive.name, shown=home / LIBRARIES / archive.name)
        shutil.rmtree(home, ignore_errors=True)
        new.rename(home)


def _link(new: Path, folder: str = "", *, leaving_out: Iterable[Path]) -> None:
    for there in {*(INSTALLED / folder).iterdir()} - {*leaving_out}:
        (new / folder / there.name).symlink_to(there)


def _compile(archive: Path, shown: Path) -> None:
    """Add what its sources compile to; tracebacks name them by the place that is shown."""
    with tempfile.TemporaryDirectory() as scratch, ZipFile(archive, "a", ZIP_DEFLATED) as both:
        both.extractall(scratch)
        compileall.compile_dir(
            scratch,
            quiet=1,
            rx=TESTS,
            legacy=True,  # beside its source: an import from a zip does not look into __pycache__
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            stripdir=scratch,
            prependdir=str(shown),
        )
        for one in sorted(Path(scratch).rglob("*.pyc")):
            both.write(one, one.relative_to(scratch))


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
