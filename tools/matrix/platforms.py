"""What platforms ship, as their documentation says in November 2026, and the cells next to it."""

from __future__ import annotations

from dataclasses import dataclass

from tools.matrix.cells import JAVA21

BUILD = "its own build of Spark"


@dataclass(frozen=True)
class Platform:
    """A release of a platform.

    Attributes:
        cells: those with its Spark and its Python, or the nearest.
        only_read: what of it was read of, and not run.
    """

    name: str
    spark: str
    python: str
    java: str
    cells: tuple[str, ...]
    only_read: str


PLATFORMS = (
    Platform(
        "Amazon EMR, emr-spark-8.0.0",
        "4.0.2",
        "3.11 to 3.13",
        "not read",
        ("4.0.2/3.11", "4.0.2/3.12", "4.0.2/3.13"),
        f"{BUILD}, YARN, EMRFS",
    ),
    Platform(
        "Google Dataproc 3.0",
        "4.0.1",
        "3.12",
        "21",
        (f"4.0.1/3.12/{JAVA21}",),
        f"{BUILD}, YARN, the connector of Cloud Storage",
    ),
    Platform(
        "Databricks 17.3 LTS",
        "4.0, with later features",
        "not read",
        "not read",
        ("4.0.2/3.12",),
        f"{BUILD}, its access modes, volumes, serverless",
    ),
    Platform(
        "AWS Glue 6.0",
        "4.1.1",
        "3.13",
        "17",
        ("4.1.1/3.13",),
        f"{BUILD}, its file system",
    ),
    Platform(
        "Microsoft Fabric Runtime 2.0",
        "4.1.1",
        "3.13",
        "21",
        (f"4.1.1/3.13/{JAVA21}",),
        f"{BUILD}, OneLake",
    ),
    Platform(
        "Databricks 18 LTS",
        "4.1, with later features",
        "not read",
        "not read",
        ("4.1.4/3.12",),
        f"{BUILD}, its access modes, volumes, serverless",
    ),
    Platform(
        "Databricks 19",
        "4.2, with later features",
        "not read",
        "not read",
        ("4.2.1/3.12",),
        f"{BUILD}, its access modes, volumes, serverless",
    ),
)
