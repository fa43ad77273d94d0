"""An index that is followed, under the kit's rules of sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from demo.java import java_home
from integration.support.sources import index_of_elasticsearch

from sparkonce.tck.sources import SourceContract, StreamingSource


@pytest.mark.slow
class TestIndex(SourceContract):
    @pytest.fixture
    def source(self, elasticsearch_url: str, index: str, tmp_path: Path) -> StreamingSource:
        env = {"JAVA_HOME": str(java_home(tmp_path))}
        return index_of_elasticsearch(elasticsearch_url, index, env)
