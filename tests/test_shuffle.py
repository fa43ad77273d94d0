"""Where Spark may mix two computations of an epoch, a run says so, once."""

from __future__ import annotations

import pytest

from sparkonce.spark.shuffle import MANAGER, PUSH, SETTINGS, may_mix, warn


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


def test_a_run_is_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    for run in ("first", "first", "second"):
        warn(run, "orders@1", f"{PUSH}=true")
    assert caplog.text.count("Sink 'orders@1', run first: Spark may mix") == 1
    assert caplog.text.count("may mix") == 2
    assert all(f"{name}" in caplog.text for name in (*SETTINGS, f"{PUSH}=true", "What to do: "))
