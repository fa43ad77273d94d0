"""Which indices keep a document as it was sent, in releases that are there and in later ones."""

from __future__ import annotations

from typing import Any

import pytest

from pyspark_elasticsearch.target.lookup import Target
from pyspark_elasticsearch.write.fitness import kept_instead, require_own
from sparkonce.errors import StoreUnsafe

MODE, SOURCE = "index.mode", "index.mapping.source.mode"


def index(settings: dict[str, Any], source: dict[str, Any] | None = None) -> Target:
    return Target("x", settings, {"_source": source or {}}, "", None)


@pytest.mark.parametrize(
    ("settings", "source"),
    [
        ({}, {}),
        ({}, {"enabled": True, "includes": ["*"], "excludes": []}),
        ({MODE: "standard", SOURCE: "STORED"}, {}),
        ({MODE: "lookup"}, {}),
        ({MODE: "logsdb", SOURCE: "stored"}, {}),
        ({}, {"mode": "stored"}),
    ],
)
def test_index_that_keeps_documents_whole_has_no_flaw(
    settings: dict[str, Any], source: dict[str, Any]
) -> None:
    assert not kept_instead(index(settings, source))


@pytest.mark.parametrize(
    ("settings", "source", "words"),
    [
        ({}, {"enabled": False}, "no _source"),
        ({}, {"mode": "disabled"}, "no _source"),
        ({}, {"includes": ["a"]}, "a part of each _source"),
        ({MODE: "logsdb"}, {}, "may be rebuilt from fields: index.mode=logsdb"),
        ({MODE: "columnar"}, {}, "may be rebuilt from fields: index.mode=columnar"),
        ({MODE: "columnar", SOURCE: "COLUMNAR"}, {}, "rebuilt from fields"),
        ({SOURCE: "SYNTHETIC"}, {}, "rebuilt from fields"),
        ({MODE: "logsdb"}, {"mode": "synthetic"}, "rebuilt from fields"),
    ],
)
def test_index_that_keeps_less_or_something_else_is_named(
    settings: dict[str, Any], source: dict[str, Any], words: str
) -> None:
    assert words in kept_instead(index(settings, source))


@pytest.mark.parametrize("said", ["true", True])
def test_index_without_sequence_numbers_is_refused(said: object) -> None:
    require_own(index({"index.disable_sequence_numbers": "false"}))
    with pytest.raises(StoreUnsafe, match=r"disable_sequence_numbers=true .*columnar"):
        require_own(index({"index.disable_sequence_numbers": said, MODE: "columnar"}))
