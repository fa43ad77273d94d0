"""What the docs say is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from sparkonce import __version__, errors
from sparkonce.exactly_once import guards

ROOT = Path(__file__).parents[2]


def test_files_and_names_in_the_protocol_page_exist() -> None:
    page = (ROOT / "docs" / "protocol.md").read_text()
    for name in re.findall(r"`(guards\.\w+)`", page):
        assert hasattr(guards, name.removeprefix("guards."))
    promises = (ROOT / "docs" / "model" / "promises.tla").read_text()
    promised = set(re.findall(r"^(\w+) +==", promises, re.MULTILINE))
    for name in re.findall(r"`([A-Z][a-z]+[A-Z]\w+)`", page):
        assert hasattr(errors, name) or name in promised | {"DefaultSource"}, name
    for path in re.findall(
        r"`((?:sparkonce|pyspark_redis|pyspark_mysql|pyspark_elasticsearch)/[\w/.]+)`", page
    ):
        assert (ROOT / "connectors" / path).exists(), path


def test_changelog_has_a_place_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text or f"## [{__version__}]" in text


def test_code_in_contributing_is_code_that_there_is() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text()
    found = re.findall(r"From\s`([\w/.]+)`:\n\n```python\n(.*?)```", page, re.DOTALL)
    assert len(found) == 3
    for path, code in found:
        there = (ROOT / "connectors" / path).read_text()
        assert "".join(code.split()) in "".join(there.split()), path
