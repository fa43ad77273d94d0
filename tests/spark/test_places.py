"""Where Spark keeps a checkpoint that no option names, and which of them follow on each other."""

from __future__ import annotations

import pytest

from sparkonce.spark.session import CHECKPOINTS, SparkSettings
from sparkonce.spark.storage import without_refresh


@pytest.mark.parametrize(
    ("conf", "option", "name", "place"),
    [
        ("s3a://b/all", None, "orders", "s3a://b/all/orders"),
        ("/data/all/", None, "orders", "/data/all/orders"),
        ("/data/all", "/data/own", "orders", "/data/own"),
        ("/data/all", None, None, None),  # Spark draws a name, anew at each start
        (None, None, "orders", None),
    ],
)
def test_a_checkpoint_lies_where_spark_puts_it(
    conf: str | None, option: str | None, name: str | None, place: str | None
) -> None:
    session = SparkSettings.seen_by({CHECKPOINTS: conf}.get, "4.3.0")
    assert session.place(option, name) == place


@pytest.mark.parametrize(
    ("location", "shared"),
    [
        ("/data/p/_checkpoints/counts/daily/0", "/data/p/_checkpoints/counts/daily"),
        ("s3://b/p/_checkpoints/counts/daily/12", "s3://b/p/_checkpoints/counts/daily"),
        ("/p/_checkpoints/team/counts/daily/1", "/p/_checkpoints/team/counts/daily"),  # team.counts
        ("/data/_checkpoints/counts/daily", "/data/_checkpoints/counts/daily"),
        ("/data/counts/daily/0", "/data/counts/daily/0"),
        ("/data/_checkpoints/a/b/0/c", "/data/_checkpoints/a/b/0/c"),
        (None, None),
    ],
)
def test_the_checkpoints_of_a_flow_share_a_place(location: str | None, shared: str | None) -> None:
    assert without_refresh(location) == shared
