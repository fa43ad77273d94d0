"""A subject built from a connector and its options, as a query would pass them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import pyarrow as pa

from sparkonce import options
from sparkonce.protocol import Encoder, Plan
from sparkonce.store import Connector, Store
from sparkonce.tck.subject import SCHEMA, Subject


class ConnectorSubject(Subject):
    """A connector under test. A subclass adds `took_effect` and its limits.

    Args:
        connector: under test.
        raw: options as a user sets them, for rows of `sparkonce.tck.subject.SCHEMA`.
        nowhere: options with an address where no server answers, for `unreachable`.
    """

    def __init__(
        self,
        connector: Connector,
        raw: Mapping[str, str],
        nowhere: Mapping[str, str] | None = None,
    ) -> None:
        self.connector, self.raw, self.nowhere = connector, dict(raw), nowhere
        if nowhere is None:
            self.limits = {**self.limits, "unreachable": "the subject names no such address"}

    @cached_property
    def plan(self) -> Plan[Any]:
        """See `Subject.plan`."""
        return self.connector.plan(self._parsed(self.raw), SCHEMA)

    def connect(self) -> Store:
        """See `Subject.connect`."""
        return self.connector.connect(self._parsed(self.raw))

    def unreachable(self) -> Store:
        """See `Subject.unreachable`."""
        return self.connector.connect(self._parsed({**self.raw, **(self.nowhere or {})}))

    def encode(self, rows: pa.RecordBatch) -> bytes:
        """See `Subject.encode`."""
        return self._encoder(rows)

    def _parsed(self, raw: Mapping[str, str]) -> options.Options:
        return options.parse(self.connector.options, raw)

    @cached_property
    def _encoder(self) -> Encoder:
        return self.connector.encoder(self.plan, self.connect())
