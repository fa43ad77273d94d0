"""Each place has one spelling."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkonce.spark.storage import canonical_location

SPELLED = {
    "s3://bucket/a/b": [
        "s3a://bucket/a/b",
        "s3n://bucket/a/b/",
        "S3A://bucket//a/./b//",
        "s3://bucket/a/c/../b",
    ],
    "s3://bucket": ["s3a://bucket", "s3a://bucket/"],
    "dbfs:/a/b": ["dbfs:/a/b", "dbfs:///a/b/", "dbfs:/a//b", "/dbfs/a/b"],
    "/Volumes/main/a": ["/Volumes/main/a", "dbfs:/Volumes/main//a/", "/dbfs/Volumes/main/a"],
    "hdfs://name/a": ["hdfs://name/a", "hdfs://name//a/"],
    "hdfs:///a": ["hdfs:///a", "hdfs:/a"],
    "abfss://c@s/a": ["abfss://c@s/a", "abfs://c@s/a/"],
    "gs://bucket/a": ["gs://bucket/a"],
    "ftp://user@host/a": ["ftp://user:secret@host/a", "ftp://user@host/a"],
    "hdfs:///": ["hdfs:///", "hdfs:/"],
    "/data/a:b": ["/data/a:b"],
}


@pytest.mark.parametrize(
    ("location", "one"), [(them, one) for one, all_ in SPELLED.items() for them in all_]
)
def test_each_place_has_one_spelling(location: str, one: str) -> None:
    assert canonical_location(location) == one


def test_two_places_have_two_spellings() -> None:
    assert len({canonical_location(one) for one in SPELLED}) == len(SPELLED)
    assert (
        canonical_location("s3a://bucket/a")
        != canonical_location("s3a://Bucket/a")
        != canonical_location("s3a://bucket/A")
    )


@given(st.text("s3a:/.bdfs@-", max_size=30))
@example("a:/")
@example("a://b/")
def test_a_spelling_is_spelled_as_itself(location: str) -> None:
    assert canonical_location(canonical_location(location)) == canonical_location(location)
