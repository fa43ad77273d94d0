"""What is read of a checkpoint directory, and what is said where it can't be read."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparkonce.errors import CheckpointUnreadable, UnsupportedQuery
from sparkonce.exactly_once.driver import Offsets
from sparkonce.spark.checkpoint import (
    Checkpoint,
    View,
    local_path,
    require_planned,
    require_readable,
)
from sparkonce.spark.session import CHECKPOINTS, SparkSettings
from sparkonce.spark.storage import Unreadable, canonical_location, without_refresh

QUERY = "5f1c9c1e-8d3a-4a4e-9c1d-0123456789ab"
FIRST, SECOND = b'v1\n{"batchWatermarkMs":0}\n0', b'v1\n{"batchWatermarkMs":0}\n7'
DEAD = View(trouble="the server is dead")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint as Spark lays it out."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_bytes(FIRST)
    (tmp_path / "offsets" / "1").write_bytes(SECOND)
    (tmp_path / "metadata").write_text(f'{{"id":"{QUERY}"}}')
    return tmp_path


@pytest.fixture(params=["{}", "file:{}", "file://{}", "{}/", "file:{}/"])
def location(request: pytest.FixtureRequest, checkpoint: Path) -> str:
    """The spellings that Spark takes for a local path."""
    return str(request.param).format(checkpoint)


def place(location: str | None) -> str | None:
    return Checkpoint(location).place


def test_each_place_has_one_spelling(location: str, checkpoint: Path) -> None:
    assert place(location) == place(str(checkpoint))


def test_a_link_and_dots_lead_to_the_same_place(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(checkpoint)
    monkeypatch.chdir(checkpoint.parent)
    spelled = [str(link), f"{checkpoint}/offsets/..", checkpoint.name, f"./{checkpoint.name}"]
    assert {place(location) for location in spelled} == {place(str(checkpoint))}


def test_the_spelling_is_the_same_on_the_next_host(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelled = set()
    for host in ("driver-1", "driver-2"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        spelled.add(place(str(checkpoint)))
    assert len(spelled) == 1


def test_a_mount_is_read_for_the_place_that_it_shows(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sparkonce.spark.storage.MOUNT", str(checkpoint.parent))
    found = Checkpoint(f"dbfs:/{checkpoint.name}")
    assert found.query_id() == QUERY
    assert found.place == f"dbfs:/{checkpoint.name}" == place(str(checkpoint))


@pytest.mark.parametrize("location", ["dbfs:/Volumes/main/a", "dbfs:///Volumes/main//a/"])
def test_a_volume_is_read_under_its_own_path(location: str) -> None:
    assert local_path(location) == Path("/Volumes/main/a")


# -- what is there, what is not there, and what nobody can tell


def test_an_epoch_has_the_offsets_of_its_own_file(location: str) -> None:
    assert Checkpoint(location).query_id() == QUERY
    assert Checkpoint(location).offsets(1) == Offsets(SECOND)
    assert Checkpoint(location).look(QUERY, 1) == View(Offsets(SECOND), Offsets(FIRST))


def test_the_first_epoch_has_none_before_it(location: str) -> None:
    assert Checkpoint(location).look(QUERY, 0) == View(Offsets(FIRST))


def test_a_file_that_is_not_there_is_none(location: str, tmp_path: Path) -> None:
    assert Checkpoint(location).offsets(2) is None
    assert Checkpoint(str(tmp_path / "missing")).query_id() is None
    assert Checkpoint(str(tmp_path / "metadata")).offsets(0) is None


def test_a_file_that_cannot_be_read_is_not_taken_for_none(checkpoint: Path) -> None:
    (checkpoint / "offsets" / "1").unlink()
    (checkpoint / "offsets" / "1").mkdir()
    found = Checkpoint(str(checkpoint))
    with pytest.raises(Unreadable, match=r"Is a directory: .*offsets/1"):
        found.offsets(1)
    assert "Is a directory" in found.look(QUERY, 2).trouble


@pytest.mark.parametrize("torn", [b"", b"v1", b"v1\n", b"{}\n{}"])
def test_offsets_that_are_not_whole_are_not_taken_for_others(checkpoint: Path, torn: bytes) -> None:
    """A file system that caches may show a file before what is in it."""
    (checkpoint / "offsets" / "1").write_bytes(torn)
    with pytest.raises(Unreadable, match="offsets/1 exists, but is incomplete"):
        Checkpoint(str(checkpoint)).offsets(1)


@pytest.mark.parametrize(
    ("metadata", "trouble"),
    [
        ('{"id":"another"}', "its file metadata names query another"),
        ("", "its file metadata is missing, or names no query"),
    ],
)
def test_a_checkpoint_of_another_query_is_not_that_of_this_one(
    checkpoint: Path, metadata: str, trouble: str
) -> None:
    """A folder on the driver may have the path of Spark's checkpoint in another file system."""
    (checkpoint / "metadata").write_text(metadata)
    assert Checkpoint(str(checkpoint)).look(QUERY, 1) == View(trouble=trouble)


@pytest.mark.parametrize("nowhere", [None, ""])
def test_a_checkpoint_that_nothing_places_is_not_read(nowhere: str | None) -> None:
    assert place(nowhere) is None
    assert Checkpoint(nowhere).look(QUERY, 0).trouble == "no option names its location"


# -- what is made of it


def test_an_epoch_that_adds_rows_is_refused_where_the_checkpoint_cannot_be_read() -> None:
    with pytest.raises(CheckpointUnreadable) as refused:
        require_readable(DEAD, "orders@1", "s3://b/orders", warn=False)
    assert (
        "Sink 'orders@1': Python on the driver can't read its checkpoint (s3://b/orders)"
        in refused.value.what
    )
    assert "the server is dead" in refused.value.what
    assert "drop new ones" in refused.value.why
    assert "onUnreadableCheckpoint=warn" in refused.value.todo


def test_a_warning_tells_each_trouble_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        require_readable(DEAD, "orders@1", "s3://b/orders", warn=True)
    assert len(caplog.records) == 1
    assert (
        "Sink 'orders@1': Python on the driver can't read its checkpoint (s3://b/orders)"
        in caplog.text
    )
    assert "the server is dead" in caplog.text
    assert "What to do: " in caplog.text
    require_readable(View(trouble="no right"), "orders@1", "s3://b/orders", warn=True)
    assert len(caplog.records) == 2


def test_a_checkpoint_without_the_offsets_of_its_epoch_is_refused() -> None:
    with pytest.raises(UnsupportedQuery, match="has no offsets/7"):
        require_planned(View(), 7, "/data/orders")
    require_planned(DEAD, 7, "/data/orders")
    require_planned(View(Offsets(FIRST)), 7, "/data/orders")


# -- each place has one spelling


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
def test_a_location_is_spelled_as_its_place(location: str, one: str) -> None:
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


# -- where Spark keeps a checkpoint that no option names, and which of them follow on each other


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
