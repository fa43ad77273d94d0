"""What a store's ledgers tell, as metrics for Prometheus.

Names follow https://prometheus.io/docs/practices/naming/. docs/monitoring.md has alert rules and a
dashboard over them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from threading import Lock
from typing import NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from sparkonce.errors import StoreError, in_one_line
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.exactly_once.pace import Pace
from sparkonce.operate.admin import GRACE, Admin, SinkStatus

log = logging.getLogger("sparkonce")

LABELS = ("sink", "target", "query")

Value = Callable[[SinkStatus], float | None]


class Figure(NamedTuple):
    """One metric of a sink.

    Attributes:
        value: None where the sink has none.
        counts: whether it only grows.
    """

    name: str
    about: str
    value: Value
    counts: bool = False


def _age(ledger: Ledger) -> float:
    return max(0.0, time.time() - ledger.decided_at)


def _decided(value: Callable[[Ledger], float | None]) -> Value:
    """Of a sink that has decided something."""
    return lambda sink: value(sink.ledger) if sink.ledger and sink.ledger.epochs else None


def _paced(value: Callable[[Pace], float]) -> Value:
    """Of a sink whose last epoch has left its pace."""
    return lambda sink: value(sink.ledger.pace) if sink.ledger and sink.ledger.pace else None


FIGURES = (
    Figure("sparkonce_epoch", "Last decided epoch.", _decided(lambda one: one.epoch)),
    Figure(
        "sparkonce_epoch_age_seconds",
        "Time since the last decision, of a stream.",
        # A batch knows no checkpoint, and nobody waits for its next one.
        _decided(lambda one: _age(one) if one.checkpoint else None),
    ),
    Figure(
        "sparkonce_epoch_unfinished",
        "1 while an epoch is decided and not finished, else 0.",
        _decided(lambda one: one.manifest is not None),
    ),
    Figure("sparkonce_epochs", "Decided epochs.", _decided(lambda one: one.epochs), counts=True),
    Figure("sparkonce_rows", "Decided rows.", _decided(lambda one: one.rows), counts=True),
    Figure(
        "sparkonce_dead_letters",
        "Rows among them that were put aside.",
        _decided(lambda one: one.aside),
        counts=True,
    ),
    Figure(
        "sparkonce_unstored_rows",
        "Rows that were put aside since the last one that was stored.",
        _decided(lambda one: one.unstored),
    ),
    Figure("sparkonce_last_epoch_rows", "Its rows.", _paced(lambda one: one.rows)),
    Figure("sparkonce_last_epoch_bytes", "Bytes of its chunks.", _paced(lambda one: one.bytes)),
    Figure("sparkonce_last_epoch_chunks", "Its chunks.", _paced(lambda one: one.chunks)),
    Figure(
        "sparkonce_last_epoch_stage_seconds",
        "Time that its longest task took.",
        _paced(lambda one: one.stage),
    ),
    Figure(
        "sparkonce_last_epoch_decide_seconds",
        "Time from the call of commit to its decision.",
        _paced(lambda one: one.decide),
    ),
    Figure(
        "sparkonce_last_epoch_apply_seconds",
        "Time from its decision until all rows had taken effect.",
        _paced(lambda one: one.apply),
    ),
    Figure(
        "sparkonce_record_damaged",
        "1 where a record of the sink can't be read, else 0.",
        lambda sink: sink.damage is not None,
    ),
    Figure("sparkonce_staged_attempts", "Attempts in the log.", lambda sink: len(sink.staged)),
    Figure(
        "sparkonce_staged_bytes",
        "Bytes of their chunks.",
        lambda sink: sink.staged_bytes,
    ),
    Figure(
        "sparkonce_leftover_attempts",
        "Attempts that sparkonce gc would drop.",
        lambda sink: len(sink.leftovers(GRACE)),
    ),
)


class Ledgers(Collector):
    """Asks the store at each scrape; one scrape at a time, as its connection serves one."""

    def __init__(self, admin: Admin) -> None:
        self.admin, self._one_at_a_time = admin, Lock()

    def describe(self) -> list[Metric]:
        """Nothing: a store that is not there yet is asked at the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics; of a store that does not answer only that."""
        up, sinks = 1.0, list[SinkStatus]()
        try:
            with self._one_at_a_time:
                sinks = self.admin.sinks()
        except StoreError as error:
            up = 0.0
            log.warning("%s", error)
        about = "1 if the store answered, and its ledgers can be read, else 0."
        yield GaugeMetricFamily("sparkonce_up", about, up)
        for figure in FIGURES:
            yield _family(figure, sinks)


def _family(figure: Figure, sinks: list[SinkStatus]) -> Metric:
    kind = CounterMetricFamily if figure.counts else GaugeMetricFamily
    family = kind(figure.name, figure.about, labels=LABELS)
    for sink in sinks:
        value = figure.value(sink)
        if value is not None:
            ledger = sink.ledger
            of = (ledger.target, ledger.query_id) if ledger else ("", "")
            family.add_metric([in_one_line(one) for one in (sink.name, *of)], float(value))
    return family
