"""Offsets that a checkpoint has lost are put back as the sink decided them, or not at all."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from sparkonce import lost_offsets
from sparkonce.checkpoint import LONGEST, Offsets
from sparkonce.errors import SparkonceError
from sparkonce.ledger import Ledger

KAFKA = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":17}}')
FILES = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"logOffset":3}')
LEDGER = Ledger("s@1", "q", "t", epoch=4, offsets_text=KAFKA.packed, decided_at=time.time())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A checkpoint whose epoch 4 was planned anew after a crash."""
    for log in ("offsets", "commits", "sources/0"):
        (tmp_path / log).mkdir(parents=True)
    (tmp_path / "metadata").write_text(json.dumps({"id": "q"}))
    (tmp_path / "offsets" / "4").write_text("planned anew")
    (tmp_path / "offsets" / ".4.crc").write_text("its checksum")
    (tmp_path / "offsets" / "3").write_text("v1\n{}\n{}")
    (tmp_path / "commits" / "3").touch()
    return tmp_path


def _message(home: Path, ledger: Ledger | None) -> str:
    with pytest.raises(SparkonceError) as error:
        lost_offsets.restore(str(home), "s@1", ledger)
    assert error.value.why
    return str(error.value)


def refused(home: Path, ledger: Ledger | None = LEDGER) -> str:
    before = (home / "offsets" / "4").read_text()
    message = _message(home, ledger)
    assert (home / "offsets" / "4").read_text() == before
    return message


def test_offsets_are_put_back_and_what_was_there_is_kept(home: Path) -> None:
    [kept] = lost_offsets.restore(str(home), "s@1", LEDGER)
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text
    assert sorted(path.name for path in (home / "offsets").iterdir()) == ["3", "4"]
    assert kept.read_text() == "planned anew"
    assert lost_offsets.restore(str(home), "s@1", LEDGER) == []


def test_offsets_that_are_gone_are_put_back(home: Path) -> None:
    (home / "offsets" / "4").unlink()
    assert lost_offsets.restore(home.as_uri(), "s@1", LEDGER) == []
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text


@pytest.mark.parametrize("ledger", [None, replace(LEDGER, offsets_text=None)])
def test_a_ledger_without_offsets_says_so(home: Path, ledger: Ledger | None) -> None:
    assert "keeps no offsets" in refused(home, ledger)


def test_the_checkpoint_of_another_query_is_left_alone(home: Path) -> None:
    (home / "metadata").write_text(json.dumps({"id": "other"}))
    assert "not the checkpoint of query q" in refused(home)
    (home / "metadata").unlink()
    assert "not the checkpoint of query q" in refused(home)
    with pytest.raises(SparkonceError, match="not the checkpoint"):
        lost_offsets.restore("s3a://bucket/checkpoint", "s@1", LEDGER)


@pytest.mark.parametrize("later", ["commits/4", "commits/5", "offsets/5"])
def test_a_checkpoint_that_has_gone_on_is_left_alone(home: Path, later: str) -> None:
    (home / later).touch()
    assert later in refused(home)


@pytest.mark.parametrize("noted", [True, False])
def test_files_that_a_crash_has_left_empty_are_lost(home: Path, noted: bool) -> None:
    (home / "offsets" / "4").write_bytes(b"")
    if noted:
        (home / "commits" / "4").write_bytes(b"")
    lost_offsets.restore(str(home), "s@1", LEDGER)
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text
    assert not (home / "commits" / "4").exists()


def test_the_epoch_before_comes_back_with_it(home: Path) -> None:
    for epoch in ("3", "4"):
        (home / "offsets" / epoch).unlink()
    (home / "offsets" / "1").touch()
    assert "lacks offsets/3" in _message(home, LEDGER)
    before = Offsets(b'v1\n{"batchWatermarkMs":0}\n{"orders":{"0":12}}')
    lost_offsets.restore(str(home), "s@1", replace(LEDGER, offsets_before=before.packed))
    assert (home / "offsets" / "3").read_bytes() == before.text
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text


def test_a_first_epoch_has_none_before(home: Path) -> None:
    for path in (home / "offsets" / "3", home / "offsets" / "4", home / "commits" / "3"):
        path.unlink()
    lost_offsets.restore(str(home), "s@1", replace(LEDGER, epoch=0))
    assert (home / "offsets" / "0").read_bytes() == KAFKA.text


def test_offsets_of_another_form_are_refused(home: Path) -> None:
    strange = Offsets(b"v3\n{}\n{}")
    assert "version 'v3'" in refused(home, replace(LEDGER, offsets_text=strange.packed))


def test_a_folder_that_can_not_be_changed_is_an_error_of_ours(home: Path) -> None:
    shutil.rmtree(home / "offsets")
    assert "can't be written" in _message(home, replace(LEDGER, epoch=0))


# -- a file source, whose offset is a number of its own log


def noted(home: Path, name: str, at: float) -> None:
    path = home / "sources" / "0" / name
    path.touch()
    os.utime(path, (at, at))


FROM_FILES = replace(LEDGER, offsets_text=FILES.packed)


@pytest.mark.parametrize("newest", ["3", "3.compact"])
def test_a_file_source_whose_log_is_older_than_the_decision_is_what_it_was(
    home: Path, newest: str
) -> None:
    for name in ("2", newest):
        noted(home, name, LEDGER.decided_at - 1)
    noted(home, "4", LEDGER.decided_at + 60)
    lost_offsets.restore(str(home), "s@1", FROM_FILES)
    assert (home / "offsets" / "4").read_bytes() == FILES.text


def test_a_file_source_that_has_noted_other_files_since_is_refused(home: Path) -> None:
    noted(home, "3", LEDGER.decided_at + 60)
    assert "sources/0/3" in refused(home, FROM_FILES)
    named = Offsets(b'v2\n{"batchWatermarkMs":0}\n0:{"logOffset":3}')
    assert "sources/0/3" in refused(home, replace(LEDGER, offsets_text=named.packed))


def test_a_file_source_whose_log_is_gone_is_refused(home: Path) -> None:
    noted(home, "2", LEDGER.decided_at - 1)
    assert "sources/0/3" in refused(home, FROM_FILES)


# -- how a ledger keeps them


def test_offsets_come_back_as_they_were() -> None:
    assert KAFKA.packed is not None
    assert Offsets.unpacked(KAFKA.packed) == KAFKA


def test_offsets_that_are_very_long_are_not_kept() -> None:
    many = {str(number): number * 7919 for number in range(5_000)}
    assert Offsets(json.dumps({"topic": many}).encode()).packed is not None
    noise = os.urandom(LONGEST).hex()
    assert Offsets(noise.encode()).packed is None
    assert re.fullmatch("[0-9a-f]{64}", Offsets(noise.encode()).digest)
