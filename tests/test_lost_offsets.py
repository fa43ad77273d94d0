"""Offsets that a checkpoint has lost are put back as the sink decided them, or not at all."""

from __future__ import annotations

import json
import os
import re
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
    (tmp_path / "commits" / "3").touch()
    return tmp_path


def refused(home: Path, ledger: Ledger | None = LEDGER) -> str:
    before = (home / "offsets" / "4").read_text()
    with pytest.raises(SparkonceError) as error:
        lost_offsets.restore(str(home), "s@1", ledger)
    assert (home / "offsets" / "4").read_text() == before
    assert error.value.why
    return str(error.value)


def test_offsets_are_put_back_and_what_was_there_is_kept(home: Path) -> None:
    kept = lost_offsets.restore(str(home), "s@1", LEDGER)
    assert (home / "offsets" / "4").read_bytes() == KAFKA.text
    assert sorted(path.name for path in (home / "offsets").iterdir()) == ["4"]
    assert kept is not None
    assert kept.read_text() == "planned anew"


def test_offsets_that_are_gone_are_put_back(home: Path) -> None:
    (home / "offsets" / "4").unlink()
    assert lost_offsets.restore(home.as_uri(), "s@1", LEDGER) is None
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
