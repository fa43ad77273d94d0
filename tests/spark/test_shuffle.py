"""Where Spark may mix two computations of an epoch, a run says so, once."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pyspark
import pytest

from sparkonce.spark.session import (
    CHECKSUM,
    MANAGER,
    NONE_HERE,
    PUSH,
    SETTINGS,
    lacks_checksums,
    may_mix,
    warn_of_mixing,
)


@pytest.mark.parametrize(
    ("release", "values", "why"),
    [
        ("4.3.0", {}, ""),
        ("4.2.1", {}, ""),
        ("4.10.0.dev1", {}, ""),
        ("4.1.4", {}, f"{SETTINGS[0]}=false"),
        ("4.0.2", {}, f"{SETTINGS[0]}=false"),
        ("of a platform", {}, ""),
        ("4.3.0", {SETTINGS[1]: "false"}, f"{SETTINGS[1]}=false"),
        ("4.3.0", {SETTINGS[0]: "FALSE"}, f"{SETTINGS[0]}=false"),
        ("4.1.4", {SETTINGS[0]: "true"}, f"{SETTINGS[1]}=false"),
        ("4.1.4", dict.fromkeys(SETTINGS, "true"), ""),
        ("4.3.0", {PUSH: "true"}, f"{PUSH}=true"),
        ("4.3.0", {PUSH: "false", MANAGER: "sort"}, ""),
        ("4.3.0", {MANAGER: "org.apache.spark.shuffle.sort.SortShuffleManager"}, ""),
        ("4.3.0", {MANAGER: "org.example.RemoteShuffle"}, f"{MANAGER}=org.example.RemoteShuffle"),
    ],
)
def test_checksums_must_be_on_and_be_those_of_sparks_own_shuffle(
    release: str, values: dict[str, str], why: str
) -> None:
    assert may_mix(values.get, release) == why


@pytest.mark.parametrize(
    ("named", "made_of", "known"),
    [
        ("spark-core_2.13-4.1.1.jar", CHECKSUM, True),
        ("spark-core_2.13-4.0.2.jar", "org/apache/spark/shuffle/ShuffleChecksumUtils.class", False),
        ("spark-core_2.13-4.0.2.jar", None, True),
        ("of-a-platform.jar", "x", True),
    ],
)
def test_a_spark_without_checksums_is_known_by_its_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, made_of: str | None, known: bool
) -> None:
    """There the settings can be set, and mean nothing. Jars that can't be read tell nothing."""
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / named).write_bytes(b"torn")
    if made_of:
        with ZipFile(tmp_path / "jars" / named, "w") as jar:
            jar.writestr(made_of, "")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert lacks_checksums() == ("" if known else NONE_HERE)


def test_the_spark_of_these_tests_has_checksums_by_its_settings_and_by_its_jars(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    jars = Path(pyspark.__file__).parent / "jars"
    (catalyst,) = jars.glob("spark-catalyst_*.jar")
    with ZipFile(catalyst) as packed:
        settings = packed.read("org/apache/spark/sql/internal/SQLConf$.class")
    assert (SETTINGS[0].encode() in settings) == (not lacks_checksums())


def test_a_run_is_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    for run in ("first", "first", "second"):
        warn_of_mixing(run, "orders@1", f"{PUSH}=true")
    assert caplog.text.count("Sink 'orders@1', run first: Spark may mix") == 1
    assert caplog.text.count("may mix") == 2
    assert all(f"{name}" in caplog.text for name in (*SETTINGS, f"{PUSH}=true", "What to do: "))
