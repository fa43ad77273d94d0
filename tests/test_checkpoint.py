"""What is read of a checkpoint directory, and how its place is spelled."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparkonce.offsets import Offsets
from sparkonce.spark.checkpoint import canonical, offsets, query_id, warn_if_unreadable


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint as Spark lays it out."""
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_bytes(b'v1\n{"batchWatermarkMs":0}\n0')
    (tmp_path / "offsets" / "1").write_bytes(b'v1\n{"batchWatermarkMs":0}\n7')
    (tmp_path / "metadata").write_text('{"id":"5f1c9c1e-8d3a-4a4e-9c1d-0123456789ab"}')
    return tmp_path


@pytest.fixture(params=["{}", "file:{}", "file://{}", "{}/", "file:{}/"])
def location(request: pytest.FixtureRequest, checkpoint: Path) -> str:
    """The spellings that Spark takes for a local path."""
    return str(request.param).format(checkpoint)


def test_each_place_has_one_spelling(location: str, checkpoint: Path) -> None:
    assert canonical(location) == canonical(str(checkpoint))


def test_a_link_and_dots_lead_to_the_same_place(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(checkpoint)
    monkeypatch.chdir(checkpoint.parent)
    spelled = [str(link), f"{checkpoint}/offsets/..", checkpoint.name, f"./{checkpoint.name}"]
    assert {canonical(location) for location in spelled} == {canonical(str(checkpoint))}


def test_two_places_have_two_spellings(tmp_path: Path) -> None:
    assert canonical(str(tmp_path / "a")) != canonical(str(tmp_path / "b"))
    assert canonical("s3a://bucket/a") != canonical("s3a://bucket/b")


@pytest.mark.parametrize(
    "location", ["s3a://bucket/a", "hdfs://name/a", "dbfs:/a", "abfss://c@s/a"]
)
def test_places_of_other_file_systems_keep_their_name(location: str) -> None:
    assert canonical(location) == location
    assert canonical(location + "/") == location


@pytest.mark.parametrize("location", [None, ""])
def test_no_place_is_none(location: str | None) -> None:
    assert canonical(location) is None
    assert offsets(location, 0) is None
    assert query_id(location) is None


def test_the_spelling_is_the_same_on_the_next_host(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spelled = set()
    for host in ("driver-1", "driver-2"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        spelled.add(canonical(str(checkpoint)))
    assert len(spelled) == 1


# -- offsets


def test_the_digest_of_an_epoch_is_that_of_its_offsets(location: str) -> None:
    text = b'v1\n{"batchWatermarkMs":0}\n7'
    assert offsets(location, 1) == Offsets(text)
    assert offsets(location, 0) != offsets(location, 1)


def test_offsets_that_are_not_there_have_no_digest(location: str, tmp_path: Path) -> None:
    assert offsets(location, 2) is None
    assert offsets(str(tmp_path / "missing"), 0) is None


@pytest.mark.parametrize("location", ["s3a://bucket/a", "hdfs://name/a", "dbfs:/a"])
def test_other_file_systems_cannot_be_read_from_here(location: str) -> None:
    assert offsets(location, 0) is None
    assert query_id(location) is None


# -- the query


def test_the_query_is_named_in_the_metadata(location: str) -> None:
    assert query_id(location) == "5f1c9c1e-8d3a-4a4e-9c1d-0123456789ab"


def test_without_metadata_there_is_no_query(tmp_path: Path) -> None:
    assert query_id(str(tmp_path)) is None
    (tmp_path / "metadata").write_text("")
    assert query_id(str(tmp_path)) is None


def test_a_checkpoint_that_cannot_be_read_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    warn_if_unreadable.cache_clear()
    for _ in range(3):
        warn_if_unreadable("s3://bucket/checkpoints/orders", "orders@1")
    assert len(caplog.records) == 1
    assert "Sink 'orders@1'" in caplog.text
    assert "What to do: " in caplog.text
    assert "s3://bucket/checkpoints/orders" in caplog.text
