"""`SourceContract`: black-box checks of any streaming source of PySpark, in Python or in the JVM.

A third party adds one fixture::

    from sparkonce.tck.sources import SourceContract, StreamingSource

    class TestMySource(SourceContract):
        @pytest.fixture
        def source(self) -> StreamingSource:
            return StreamingSource(
                format="mine",
                options={"table": new_table, "startingPosition": "earliest"},
                append=write_a_row_for_each_of_these_ids,
                latest={"startingPosition": "latest"},
                limit="maxRowsPerBatch",
            )

The store is new for each check. The kit leaves out a check for which the subject lacks the means,
and the report says so. The notes of `sparkonce.tck.streaming` apply here, too: Java, the report,
and `run_contract` for use without pytest.
"""

from __future__ import annotations

import pytest

from sparkonce.tck.findings import Finding
from sparkonce.tck.on_spark import SparkContract
from sparkonce.tck.spark.run import run_contract
from sparkonce.tck.spark.source import StreamingSource

__all__ = ["Finding", "SourceContract", "StreamingSource", "run_contract"]


class SourceContract(SparkContract):
    """The rules of a source."""

    @pytest.fixture
    def source(self) -> StreamingSource:
        """The source under test; a subclass must override this fixture."""
        raise NotImplementedError("a subclass of SourceContract needs a fixture `source`")

    def test_f01_every_row_arrives_once(self, source: StreamingSource) -> None:
        """Checks F01."""
        self.record.check("F01", source)

    def test_f02_a_replayed_range(self, source: StreamingSource) -> None:
        """Checks F02."""
        self.record.check("F02", source)

    def test_f03_a_query_that_was_down(self, source: StreamingSource) -> None:
        """Checks F03."""
        self.record.check("F03", source)

    def test_f04_where_a_query_begins(self, source: StreamingSource) -> None:
        """Checks F04."""
        self.record.check("F04", source)

    def test_f05_a_limit(self, source: StreamingSource) -> None:
        """Checks F05."""
        self.record.check("F05", source)

    def test_f06_available_now(self, source: StreamingSource) -> None:
        """Checks F06."""
        self.record.check("F06", source)

    def test_f07_rows_that_vanish(self, source: StreamingSource) -> None:
        """Checks F07."""
        self.record.check("F07", source)

    def test_f08_offsets_are_json(self, source: StreamingSource) -> None:
        """Checks F08."""
        self.record.check("F08", source)

    def test_f09_nothing_new(self, source: StreamingSource) -> None:
        """Checks F09."""
        self.record.check("F09", source)

    def test_f11_a_stop(self, source: StreamingSource) -> None:
        """Checks F11."""
        self.record.check("F11", source)

    def test_f12_progress(self, source: StreamingSource) -> None:
        """Checks F12."""
        self.record.check("F12", source)

    def test_f13_a_store_that_lost_the_newest_rows(self, source: StreamingSource) -> None:
        """Checks F13."""
        self.record.check("F13", source)

    def test_f14_a_part_left_out_for_a_time(self, source: StreamingSource) -> None:
        """Checks F14."""
        self.record.check("F14", source)

    def test_f10_a_task_that_fails_and_a_driver_that_is_killed(
        self, source: StreamingSource
    ) -> None:
        """Checks F10."""
        self.record.check("F10", source)
