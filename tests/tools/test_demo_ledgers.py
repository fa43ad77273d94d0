"""What the demo tells of a stream that was killed. No server and no Spark runs here."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from demo.ledgers import Caught, Ledgers, Stream
from tests.ledgers import ledger_of

from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.protocol import Manifest, Part, Staged

PARTS = (Part(0, "a", (10,) * 4, (99,) * 4), Part(1, "b", (10,) * 4, (99,) * 4))
APPLYING = Manifest("q@t", 1, "q", 6, "token", "t", {}, PARTS)
CHUNKS = (Staged("a", "q", 6, 3, 0.0), Staged("b", "q", 6, 4, 0.0), Staged("old", "q", 5, 9, 0.0))


class FakeAdmin:
    """Gives the sinks that it is made with."""

    def __init__(self, *sinks: SinkStatus) -> None:
        self._sinks = list(sinks)

    def sinks(self) -> list[SinkStatus]:
        return self._sinks


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """Of a flights stream that Spark has begun up to epoch 6 and committed up to epoch 5."""
    for log, epochs in (("offsets", (5, 6)), ("commits", (4, 5))):
        directory = tmp_path / "flights" / log
        directory.mkdir(parents=True)
        for epoch in epochs:
            (directory / str(epoch)).touch()
            (directory / f".{epoch}.crc").touch()
    (tmp_path / "flights" / "metadata").write_text('{"id": "q"}')
    return tmp_path


def ledgers(checkpoints: Path, epoch: int, *staged: Staged, applying: bool = False) -> Ledgers:
    manifest = APPLYING if applying else None
    ledger = ledger_of(
        name="q@t",
        query_id="q",
        target="t",
        epoch=epoch,
        manifest=manifest,
        rows=100,
        epochs=epoch + 1,
    )
    stranger = SinkStatus("x@t", ledger_of("x@t", "x", "t", rows=7), ())
    admin = FakeAdmin(stranger, SinkStatus("new@t", None, ()), SinkStatus("q@t", ledger, staged))
    return Ledgers(cast("Admin", admin), checkpoints)


@pytest.mark.parametrize(
    ("epoch", "staged", "applying", "found"),
    [
        (5, (), False, "nothing yet"),
        (5, CHUNKS, False, "7 chunks, undecided"),
        (6, CHUNKS, True, "decided, 1 of 8 applied"),
        (6, (), False, "all; Spark did not know"),
    ],
)
def test_it_tells_what_redis_had_of_the_epoch_that_is_replayed(
    checkpoints: Path, epoch: int, staged: tuple[Staged, ...], applying: bool, found: str
) -> None:
    caught = ledgers(checkpoints, epoch, *staged, applying=applying).caught()
    assert caught["flights"] == Caught(100, 6, found)


def test_between_two_epochs_nothing_is_replayed(checkpoints: Path) -> None:
    (checkpoints / "flights" / "commits" / "6").touch()
    assert ledgers(checkpoints, 6).caught()["flights"] == Caught(100, None, "")


def test_a_stream_without_ledger_has_nothing_yet(checkpoints: Path) -> None:
    assert ledgers(checkpoints, 6).caught()["airports"] == Caught(0, None, "nothing yet")
    assert ledgers(checkpoints, 6).read()["airports"] == Stream()


def test_a_stream_is_as_far_as_its_own_ledger_says(checkpoints: Path) -> None:
    assert ledgers(checkpoints, 5, *CHUNKS).read()["flights"] == Stream(100, 6, False, True)


def test_a_stream_is_applying_once_a_part_of_its_epoch_is_in(checkpoints: Path) -> None:
    def applying(*staged: Staged) -> bool:
        return ledgers(checkpoints, 6, *staged, applying=True).read()["flights"].applying

    assert applying(*CHUNKS)
    assert not applying(*CHUNKS, Staged("c", "q", 6, 1, 0.0))
    assert not applying(CHUNKS[-1])
