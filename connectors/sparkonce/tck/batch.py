"""`BatchContract`: black-box checks of any batch sink of Spark: in Python, by JDBC, by hand.

A third party adds one fixture::

    from sparkonce.tck.batch import BatchContract, BatchSink

    class TestMySink(BatchContract):
        @pytest.fixture
        def sink(self) -> BatchSink:
            return BatchSink(
                read=how_often_each_id_is_there,
                format="mine",
                options={...},
                named={"txnAppId": "{job}", "txnVersion": "{version}"},
            )

The notes of `sparkonce.tck.streaming` apply here, too: Java, the report, the seed, and
`run_contract` for use without pytest.
"""

from __future__ import annotations

import pytest

from sparkonce.tck.findings import Finding
from sparkonce.tck.on_spark import SparkContract
from sparkonce.tck.spark.run import run_contract
from sparkonce.tck.spark.sink import BatchSink

__all__ = ["BatchContract", "BatchSink", "Finding", "run_contract"]


class BatchContract(SparkContract):
    """The rules of a batch, alone and inside ``foreachBatch``."""

    @pytest.fixture
    def sink(self) -> BatchSink:
        """The sink under test; a subclass must override this fixture."""
        raise NotImplementedError("a subclass of BatchContract needs a fixture `sink`")

    def test_b01_every_row_takes_effect_once(self, sink: BatchSink) -> None:
        """Checks B01."""
        self.record.check("B01", sink)

    def test_b02_a_job_that_fails(self, sink: BatchSink) -> None:
        """Checks B02."""
        self.record.check("B02", sink)

    def test_b03_a_task_that_fails(self, sink: BatchSink) -> None:
        """Checks B03."""
        self.record.check("B03", sink)

    def test_b08_a_job_that_runs_again(self, sink: BatchSink) -> None:
        """Checks B08."""
        self.record.check("B08", sink)

    def test_b09_overwriting(self, sink: BatchSink) -> None:
        """Checks B09."""
        self.record.check("B09", sink)

    def test_b07_a_replay_of_other_rows_in_foreach_batch(self, sink: BatchSink) -> None:
        """Checks B07."""
        self.record.check("B07", sink)

    def test_b04_a_killed_driver(self, sink: BatchSink) -> None:
        """Checks B04."""
        self.record.check("B04", sink)

    def test_b10_a_killed_driver_in_foreach_batch(self, sink: BatchSink) -> None:
        """Checks B10."""
        self.record.check("B10", sink)

    def test_b05_a_lost_executor(self, sink: BatchSink) -> None:
        """Checks B05."""
        self.record.check("B05", sink)

    def test_b06_speculative_twins(self, sink: BatchSink) -> None:
        """Checks B06."""
        self.record.check("B06", sink)
