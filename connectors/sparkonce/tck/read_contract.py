"""The suite for connectors that read. A third party inherits `ReadContract`::

class TestMyReads(ReadContract):
    @pytest.fixture
    def reading(self) -> ReadSubject:
        return MySubject()
"""

from __future__ import annotations

from sparkonce.tck.reading import ReadSubject
from sparkonce.tck.suites.reads import ReadRules

__all__ = ["ReadContract", "ReadSubject"]


class ReadContract(ReadRules):
    """Every rule for reads of a store."""
