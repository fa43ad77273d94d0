"""`StreamingContract`: black-box checks of any streaming sink of PySpark.

A third party adds one fixture::

    from sparkonce.tck.streaming import StreamingContract, StreamingSink

    class TestMySink(StreamingContract):
        @pytest.fixture
        def sink(self) -> StreamingSink:
            return StreamingSink(read=how_often_each_id_is_there, format="mine", options={...})

Spark must be able to start: set JAVA_HOME if there is no ``java`` on the PATH. If the environment
variable SPARKONCE_TCK_REPORT names a directory, each class writes a report into it: a table, and
JSON. SPARKONCE_TCK_SEED, a number, selects other moments for kills and stops. Without pytest,
`run_contract` returns the findings, and `sparkonce.tck.report` formats them as a table.
"""

from __future__ import annotations

import pytest

from sparkonce.tck.findings import Finding
from sparkonce.tck.on_spark import SparkContract
from sparkonce.tck.spark.run import run_contract
from sparkonce.tck.spark.sink import StreamingSink

__all__ = ["Finding", "StreamingContract", "StreamingSink", "run_contract"]


class StreamingContract(SparkContract):
    """The rules of a streaming query."""

    @pytest.fixture
    def sink(self) -> StreamingSink:
        """The sink under test; a subclass must override this fixture."""
        raise NotImplementedError("a subclass of StreamingContract needs a fixture `sink`")

    def test_q01_every_row_takes_effect_once(self, sink: StreamingSink) -> None:
        """Checks Q01."""
        self.record.check("Q01", sink)

    def test_q02_a_replayed_epoch(self, sink: StreamingSink) -> None:
        """Checks Q02."""
        self.record.check("Q02", sink)

    def test_q03_a_task_that_fails(self, sink: StreamingSink) -> None:
        """Checks Q03."""
        self.record.check("Q03", sink)

    def test_q07_another_parallelism(self, sink: StreamingSink) -> None:
        """Checks Q07."""
        self.record.check("Q07", sink)

    def test_q08_a_replay_of_other_rows(self, sink: StreamingSink) -> None:
        """Checks Q08."""
        self.record.check("Q08", sink)

    def test_q09_a_stopped_query(self, sink: StreamingSink) -> None:
        """Checks Q09."""
        self.record.check("Q09", sink)

    def test_q04_a_killed_driver(self, sink: StreamingSink) -> None:
        """Checks Q04."""
        self.record.check("Q04", sink)

    def test_q05_a_lost_executor(self, sink: StreamingSink) -> None:
        """Checks Q05."""
        self.record.check("Q05", sink)

    def test_q06_speculative_twins(self, sink: StreamingSink) -> None:
        """Checks Q06."""
        self.record.check("Q06", sink)

    def test_q10_rows_that_are_drawn_again(self, sink: StreamingSink) -> None:
        """Checks Q10."""
        self.record.check("Q10", sink)
