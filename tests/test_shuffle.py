"""Where Spark may mix two computations of an epoch, a run says so, once."""

from __future__ import annotations

import pytest

from sparkonce.shuffle import SETTINGS, may_mix, warn


@pytest.mark.parametrize(
    ("release", "values", "mixes"),
    [
        ("4.3.0", {}, False),
        ("4.2.1", {}, False),
        ("4.10.0.dev1", {}, False),
        ("4.1.4", {}, True),
        ("4.0.2", {}, True),
        ("of a platform", {}, False),
        ("4.3.0", {SETTINGS[1]: "false"}, True),
        ("4.3.0", {SETTINGS[0]: "FALSE"}, True),
        ("4.1.4", {SETTINGS[1]: "true"}, True),
        ("4.1.4", dict.fromkeys(SETTINGS, "true"), False),
    ],
)
def test_both_settings_must_be_on(release: str, values: dict[str, str], mixes: bool) -> None:
    assert may_mix(values.get, release) is mixes


def test_a_run_is_warned_once(caplog: pytest.LogCaptureFixture) -> None:
    for run in ("first", "first", "second"):
        warn(run)
    assert caplog.text.count("may mix") == 2
    assert all(name in caplog.text for name in SETTINGS)
