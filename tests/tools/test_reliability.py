"""docs/reliability.md and README say what the records say, and records are of today's release."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tools.reliability import records
from tools.reliability.page import PAGE, page, summary

from sparkonce import __version__

README = Path(__file__).parents[2] / "README.md"
MADE = {"commit": "abc1234", "date": "2026-11-28", "machine": "2 cores"}


def test_page_and_readme_are_what_the_records_say() -> None:
    found = records.read()
    assert PAGE.read_text() == page(found), "run `make reliability`"
    assert summary(found) in " ".join(README.read_text().split())


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"good": False}, "redis is not good"),
        ({"versions": {"sparkonce": "0.1.0"}}, "redis is of release 0.1.0"),
        ({"made": {**MADE, "commit": "abc1234-dirty"}}, "redis is of no commit"),
        ({"made": {**MADE, "commit": "unknown"}}, "redis is of no commit"),
    ],
)
def test_a_record_that_proves_nothing_of_this_release_is_refused(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    good = {"good": True, "versions": {"sparkonce": __version__}, "made": MADE}
    (tmp_path / "chaos").mkdir()
    place = tmp_path / "chaos" / "redis.json"
    place.write_text(json.dumps(good))
    assert len(records.read(tmp_path).all) == 1
    place.write_text(json.dumps({**good, **change}))
    with pytest.raises(ValueError, match=why):
        records.read(tmp_path)
