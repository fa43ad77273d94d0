"""Offsets that a checkpoint has lost are put back as the sink decided them, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.ledgers import ledger_of, with_fields

from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.driver import Offsets
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.spark import lost_offsets

KAFKA = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":17}}')
FILES = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"logOffset":3}')
LEDGER = ledger_of("s@1", "q", "t", epoch=4, offsets=KAFKA.digest, decided_at=time.time())
BEFORE = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":12}}')
KEPT = {4: KAFKA}
Kept = Mapping[int, Offsets]

ANEW = 'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":19}}'
WHOLE = {"commits": 'v1\n{"nextBatchWatermarkMs":0}', "offsets": KAFKA.text.decode()}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A checkpoint whose epoch 4 was planned anew after a crash."""
    for log in ("offsets", "commits", "sources/0"):
        (tmp_path / log).mkdir(parents=True)
    (tmp_path / "metadata").write_text(json.dumps({"id": "q"}))
    (tmp_path / "offsets" / "4").write_text(ANEW)
    (tmp_path / "offsets" / ".4.crc").write_text("its checksum")
    (tmp_path / "offsets" / "3").write_text("v1\n{}\n{}")
    (tmp_path / "commits" / "3").write_text(WHOLE["commits"])
    return tmp_path


def restore(home: Path, kept: Kept = KEPT, ledger: Ledger | None = LEDGER) -> list[Path]:
    return lost_offsets.restore(str(home), "s@1", ledger, kept)


def _message(home: Path, kept: Kept, ledger: Ledger | None = LEDGER) -> str:
    with pytest.raises(SparkonceError) as error:
        restore(home, kept, ledger)
    assert error.value.why
    return str(error.value)


def refused(home: Path, kept: Kept = KEPT, ledger: Ledger | None = LEDGER) -> str:
    before = (home / "offsets" / "4").read_text()
    message = _message(home, kept, ledger)
    assert (home / "offsets" / "4").read_text() == before
    return message


def test_offsets_are_put_back_and_what_was_there_is_kept(home: Path) -> None:
    [kept] = restore(home)
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text
    assert sorted(path.name for path in (home / "offsets").iterdir()) == ["3", "4"]
    assert kept.read_text() == ANEW
    assert restore(home) == []


def test_offsets_that_are_gone_are_put_back(home: Path) -> None:
    (home / "offsets" / "4").unlink()
    assert lost_offsets.restore(home.as_uri(), "s@1", LEDGER, KEPT) == []
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text


@pytest.mark.parametrize(("ledger", "kept"), [(None, {}), (LEDGER, {}), (LEDGER, {3: BEFORE})])
def test_a_store_without_offsets_says_so(home: Path, ledger: Ledger | None, kept: Kept) -> None:
    assert "keeps no offsets" in refused(home, kept, ledger)


def test_the_checkpoint_of_another_query_is_left_alone(home: Path) -> None:
    (home / "metadata").write_text(json.dumps({"id": "other"}))
    assert "not the checkpoint of query q" in refused(home)
    (home / "metadata").unlink()
    assert "not the checkpoint of query q" in refused(home)


def test_offsets_are_put_back_into_local_folders_only() -> None:
    with pytest.raises(SparkonceError, match="only local folders"):
        lost_offsets.restore("s3a://bucket/checkpoint", "s@1", LEDGER, KEPT)


@pytest.mark.parametrize("later", ["commits/4", "commits/5", "offsets/5"])
def test_a_checkpoint_that_has_gone_on_is_left_alone(home: Path, later: str) -> None:
    (home / "offsets" / "4").write_bytes(KAFKA.text)
    (home / later).write_text(WHOLE[later.partition("/")[0]])
    assert later in refused(home)


TORN = {
    "empty": lambda _: b"",
    "full of NUL": lambda text: bytes(len(text)),
    "half": lambda text: text[: len(text) // 2],
    "a line short": lambda text: text[: text.rindex(b"\n")],
    "its end is NUL": lambda text: text[:-4] + bytes(4),
}


@pytest.mark.parametrize("how", TORN)
@pytest.mark.parametrize("noted", [True, False])
def test_offsets_that_a_crash_has_torn_are_lost(home: Path, how: str, noted: bool) -> None:
    (home / "offsets" / "4").write_bytes(TORN[how](KAFKA.text))
    if noted:
        (home / "commits" / "4").write_text(WHOLE["commits"])
    kept = restore(home)
    assert len(kept) == 1 + noted
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text
    assert not (home / "commits" / "4").exists()
    assert restore(home) == []


@pytest.mark.parametrize("how", TORN)
@pytest.mark.parametrize("log", ["commits/4", "commits/3", "offsets/5"])
def test_other_files_that_a_crash_has_torn_are_put_aside(home: Path, how: str, log: str) -> None:
    """Spark starts with none of them there, and not with a torn one."""
    (home / "offsets" / "4").write_bytes(KAFKA.text)
    (home / log).write_bytes(TORN[how](WHOLE[log.partition("/")[0]].encode()))
    (kept,) = restore(home)
    assert not (home / log).exists()
    assert kept.name.startswith(f"{log.replace('/', '-')}-replaced-")
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text


@pytest.mark.parametrize("later", ["commits/5", "offsets/6"])
@pytest.mark.parametrize("how", TORN)
def test_a_torn_file_does_not_hide_that_spark_has_gone_on(home: Path, how: str, later: str) -> None:
    (home / "offsets" / "4").write_bytes(TORN[how](KAFKA.text))
    (home / later).write_text(WHOLE[later.partition("/")[0]])
    assert f"has {later}" in _message(home, KEPT)


@pytest.mark.parametrize("how", [*TORN, "gone"])
@pytest.mark.parametrize("noted", [True, False])
def test_offsets_that_are_lost_behind_those_of_the_next_epoch_come_back(
    home: Path, how: str, noted: bool
) -> None:
    """Spark reads both to plan the next epoch anew; it does not replay the last one."""
    torn = home / "offsets" / "4"
    torn.unlink() if how == "gone" else torn.write_bytes(TORN[how](KAFKA.text))
    (home / "offsets" / "5").write_text(ANEW)
    if noted:
        (home / "commits" / "4").write_text(WHOLE["commits"])
    restore(home)
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text
    assert (home / "offsets" / "5").read_text() == ANEW
    assert (home / "commits" / "4").exists() == noted


def test_whole_offsets_of_the_epoch_before_stay_as_they_are(home: Path) -> None:
    before = (home / "offsets" / "3").read_text()
    restore(home, {3: BEFORE, 4: KAFKA})
    assert (home / "offsets" / "3").read_text() == before


@pytest.mark.parametrize("text", ["", '{"id":', "\0\0\0", "[]", "{}", '"q"'])
def test_torn_metadata_is_told_with_what_it_must_hold(home: Path, text: str) -> None:
    (home / "metadata").write_text(text)
    assert 'write {"id":"q"} into it' in refused(home)


def test_the_epoch_before_comes_back_with_it(home: Path) -> None:
    for epoch in ("3", "4"):
        (home / "offsets" / epoch).unlink()
    (home / "offsets" / "1").write_bytes(KAFKA.text)
    assert "lacks offsets/3" in _message(home, KEPT)
    (home / "offsets" / "3").write_bytes(BEFORE.text[:9])
    assert "lacks offsets/3" in _message(home, KEPT)
    restore(home, {3: BEFORE, 4: KAFKA})
    assert (home / "offsets" / "3").read_bytes() == BEFORE.text
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text


def test_a_first_epoch_has_none_before(home: Path) -> None:
    for path in (home / "offsets" / "3", home / "offsets" / "4", home / "commits" / "3"):
        path.unlink()
    restore(home, {0: KAFKA}, with_fields(LEDGER, epoch=0))
    assert (home / "offsets" / "0").read_bytes() == KAFKA.text


def test_offsets_of_another_form_are_refused(home: Path) -> None:
    strange = Offsets(b"v3\n{}\n{}")
    assert "version 'v3'" in refused(home, {4: strange})


def test_a_folder_that_can_not_be_changed_is_an_error_of_ours(home: Path) -> None:
    shutil.rmtree(home / "offsets")
    (home / "commits" / "3").unlink()
    assert "can't be written" in _message(home, {0: KAFKA}, with_fields(LEDGER, epoch=0))


# -- a file source, whose offset is a number of its own log


ENTRY = 'v1\n{"path":"file:///in/1.json","timestamp":1,"batchId":3}'


def noted(home: Path, name: str, at: float, text: str = ENTRY) -> None:
    path = home / "sources" / "0" / name
    path.write_text(text)
    os.utime(path, (at, at))


FROM_FILES = {4: FILES}


@pytest.mark.parametrize("newest", ["3", "3.compact"])
def test_a_file_source_whose_log_is_older_than_the_decision_is_what_it_was(
    home: Path, newest: str
) -> None:
    for name in ("2", newest):
        noted(home, name, LEDGER.decision.decided_at - 1)
    noted(home, "4", LEDGER.decision.decided_at + 60)
    restore(home, FROM_FILES)
    assert (home / "offsets" / "4").read_bytes() == FILES.text


def test_a_file_source_that_has_noted_other_files_since_is_refused(home: Path) -> None:
    noted(home, "3", LEDGER.decision.decided_at + 60)
    assert "sources/0/3" in refused(home, FROM_FILES)
    named = Offsets(b'v2\n{"batchWatermarkMs":0}\n0:{"logOffset":3}')
    assert "sources/0/3" in refused(home, {4: named})


@pytest.mark.parametrize("how", TORN)
@pytest.mark.parametrize("name", ["3", "2"])
def test_a_file_source_whose_log_is_torn_is_refused(home: Path, how: str, name: str) -> None:
    for entry in ("2", "3"):
        noted(home, entry, LEDGER.decision.decided_at - 1)
    noted(home, name, LEDGER.decision.decided_at - 1, TORN[how](ENTRY.encode()).decode())
    assert f"sources/0/{name} is torn" in refused(home, FROM_FILES)


def test_a_file_source_whose_log_is_gone_is_refused(home: Path) -> None:
    noted(home, "2", LEDGER.decision.decided_at - 1)
    assert "sources/0/3" in refused(home, FROM_FILES)
