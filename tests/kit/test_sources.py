"""The suite for sources of streams, as far as it needs no Spark."""

from __future__ import annotations

import base64
import json
import pickle
from pathlib import Path

import pytest
from tests.kit.log_source import LogReader
from tests.kit.source_mutants import MUTANTS

from sparkonce.tck.findings import BROKEN, HELD, LEFT_OUT, Finding
from sparkonce.tck.sources import StreamingSource
from sparkonce.tck.spark import run
from sparkonce.tck.spark.bench import Bench
from sparkonce.tck.spark.offset_log import foreign, offsets, respelt, write_anew
from sparkonce.tck.spark.records import Delivery, Records, views
from sparkonce.tck.spark.source_trial import SourceTrial
from sparkonce.tck.spark.trial import WrongDoing


def described(**more: object) -> StreamingSource:
    return StreamingSource(format="fake", **{"append": list, **more})  # type: ignore[arg-type]


def found(tmp_path: Path, source: StreamingSource, *epochs: str) -> dict[str, int]:
    """What took effect where "1" was changed once; epochs are told as "0:1,2"."""
    trial = SourceTrial(source, tmp_path, "tag")
    trial.change(["1"])
    for told in epochs:
        epoch, ids = told.split(":")
        trial.records.add(Delivery(int(epoch), ids.split(",")))
    return dict(trial.found())


def test_every_rule_has_a_mutant_and_every_mutant_is_listed() -> None:
    assert {rule for rule, _ in MUTANTS.values()} == {*run.SOURCE_CHECKS}
    assert [*MUTANTS] == [kind.__name__ for kind in LogReader.__subclasses__()]


# -- what was delivered


def test_an_epoch_counts_as_it_was_first_and_as_it_was_last(tmp_path: Path) -> None:
    records = Records(tmp_path / "records")
    for delivery in (Delivery(0, ["1"]), Delivery(1, ["2"]), Delivery(0, ["1", "3", "3"])):
        records.add(delivery)
    first, last = views(records.deliveries())
    assert first == {"1": 1, "2": 1}
    assert last == {"1": 1, "2": 1, "3": 2}
    assert [one.ids for one in records.of(0)] == [["1"], ["1", "3", "3"]]
    assert records.ids() == {"1", "2", "3"}


def test_a_changed_row_comes_once_more(tmp_path: Path) -> None:
    source = described(change=list)
    assert found(tmp_path / "a", source, "0:1,2", "1:1") == {"1": 1, "2": 1}
    assert found(tmp_path / "b", source, "0:1,2", "0:2", "1:1") == {"1": 0, "2": 1}
    assert found(tmp_path / "c", source, "0:1,2", "0:1,2,1", "1:1") == {"1": 2, "2": 1}


def test_a_row_that_moves_when_it_is_changed_comes_once_or_twice(tmp_path: Path) -> None:
    source = described(change=list, newest=True)
    assert found(tmp_path / "a", source, "0:1,2", "0:2", "1:1") == {"1": 1, "2": 1}
    assert found(tmp_path / "b", source, "0:1,2", "0:2") == {"1": 0, "2": 1}
    assert found(tmp_path / "c", source, "0:1,1,2", "0:2", "1:1") == {"1": 2, "2": 1}


def test_rows_trickle_until_it_is_enough(tmp_path: Path) -> None:
    written: list[str] = []
    trial = SourceTrial(described(append=written.extend), tmp_path, "tag")
    with trial.trickle() as rows:
        while len(rows) < 3:
            pass
    assert rows == written
    assert len(set(rows)) == len(rows)


def test_an_append_that_fails_is_told(tmp_path: Path) -> None:
    trial = SourceTrial(described(append=lambda _: 1 / 0), tmp_path, "tag")
    with pytest.raises(ZeroDivisionError), trial.trickle():
        pass


# -- offsets


@pytest.mark.parametrize("text", ['{"a": 1, "b": {"d": [1, {"x": 2, "y": "z"}], "c": null}}', "5"])
def test_an_offset_in_another_spelling_means_the_same(text: str) -> None:
    again = respelt(text)
    assert json.loads(again) == json.loads(text)
    if text != "5":
        assert [*json.loads(again)] == ["b", "a"]
        assert again != text
    assert respelt("-") == "-"


def test_all_offsets_of_a_checkpoint_are_spelt_anew(tmp_path: Path) -> None:
    log = tmp_path / "offsets"
    log.mkdir()
    for epoch in (2, 10):
        (log / f"{epoch}").write_text(f'v1\n{{"time":1}}\n-\n{{"b":{epoch},"a":[]}}')
        (log / f".{epoch}.crc").touch()
    write_anew(tmp_path)
    assert [*offsets(tmp_path)] == [{"a": [], "b": 2}, {"a": [], "b": 10}]
    lines = (log / "2").read_text().splitlines()
    assert lines[:3] == ["v1", '{"time":1}', "-"]
    assert lines[3] == '{"a" :  [] ,  "b" :  2}'
    assert not [*log.glob(".*.crc")]


PICKLE = pickle.dumps(Path("x"))


@pytest.mark.parametrize(
    "text", [base64.b64encode(PICKLE).decode(), PICKLE.hex(), PICKLE.decode("latin-1")]
)
def test_a_pickle_is_found_however_it_became_text(text: str) -> None:
    assert [one[:8] for one in foreign({"a": [{"b": text}]})] == ["a pickle"]


@pytest.mark.parametrize(
    "text", ["80", "8004", "gCar", "gASV", "/no/such/file", "x" * 9999, "ü", ""]
)
def test_what_only_begins_as_a_pickle_is_none(text: str) -> None:
    assert [*foreign({text: [text]})] == []


def test_a_path_that_is_there_is_found(tmp_path: Path) -> None:
    assert [*foreign([str(tmp_path)])] == [f"a path of this machine: {tmp_path}"]


# -- findings


def test_what_a_subject_does_not_give_is_left_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "bench", seed=1)
    limited = described(limits={"F05": "no limits"})
    for source, rule, why in (
        (described(), "F04", "the subject has no `latest`"),
        (described(), "F07", "the subject has no `lose`"),
        (limited, "F05", "no limits"),
    ):
        finding = run.run_check(bench, rule, source)
        assert (finding.outcome, finding.seen) == (LEFT_OUT, why)


def checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Exception | str) -> Finding:
    def check(_: Bench, trial: SourceTrial) -> str:
        trial.records.add(Delivery(0, trial.append(3)))
        if isinstance(done, Exception):
            raise done
        return done

    monkeypatch.setitem(run.SOURCE_CHECKS, "F01", check)
    return run.run_check(Bench(tmp_path / "bench", seed=1), "F01", described())


def test_a_check_is_judged_by_what_was_delivered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = checked(tmp_path, monkeypatch, "done")
    assert (finding.outcome, finding.said) == (HELD, "3 sent, 0 lost, 0 doubled; done")


def test_what_a_source_must_not_do_breaks_the_rule_whatever_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = checked(tmp_path, monkeypatch, WrongDoing("it did not end"))
    assert (finding.outcome, finding.said) == (BROKEN, "it did not end")
