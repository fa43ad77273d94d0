"""The sink that options describe: the same on the driver and in every task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sparkonce import checks, options
from sparkonce.errors import OptionError, UnsupportedQuery
from sparkonce.exactly_once.bad_rows import NONE
from sparkonce.exactly_once.commit import Committer
from sparkonce.exactly_once.driver import Policy
from sparkonce.exactly_once.staging import ChunkSize, stage
from sparkonce.options import Options
from sparkonce.protocol import BadRowSplitter, Encoder, Plan, Receipt, Task
from sparkonce.store import Connector, Overwriting, Patience, Store, load
from sparkonce.values.rows import naming_rows

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Sink:
    """A connected sink, with everything derived from its options.

    Attributes:
        encoder: creates the encoder of chunks for a plan.
        may_be_unreadable: whether a warning is enough if the checkpoint is unreadable.
    """

    options: Options
    store: Store
    plan: Plan[Any]
    encoder: Callable[[Plan[Any]], Encoder | BadRowSplitter]
    policy: Policy
    patience: Patience
    size: ChunkSize
    may_be_unreadable: bool

    def check(self) -> Sink:
        """Reject an unfit server or target; returns the sink with the plan for them."""
        return replace(self, plan=self.patience.run(lambda: self.store.check(self.plan)))

    def committer(self) -> Committer:
        """The commit algorithm over this sink."""
        return Committer(self.store, self.plan, self.policy, self.patience)

    def write(self, task: Task, batches: Iterable[pa.RecordBatch]) -> Receipt:
        """Stage the rows of one task."""
        encode, began = self.encoder(self.plan), time.monotonic()
        receipt = stage(self.store, task, batches, encode, self.size, self.patience)
        return replace(receipt, shape=self.plan.shape, seconds=time.monotonic() - began)


def open_sink(
    connector: str, raw: Mapping[str, str], schema: pa.Schema, *, overwrite: bool = False
) -> Sink:
    """The sink for these options; a process keeps it and its connection for later epochs.

    With `overwrite`, the rows replace all rows of the target.

    Raises:
        OptionError: an option is wrong, or does not fit the schema.
        MissingExtra: the client library is not installed.
        UnsupportedQuery: the connector can't overwrite.
    """
    # As bytes, since Arrow ignores metadata, with Spark's types, when it compares schemas.
    return _open(connector, frozenset(raw.items()), schema.serialize().to_pybytes(), overwrite)


@lru_cache(maxsize=64)
def _open(path: str, raw: frozenset[tuple[str, str]], schema: bytes, overwrite: bool) -> Sink:
    import pyarrow as pa

    connector = load(path)
    parsed = options.parse(connector.options, dict(raw))
    checks.refuse(checks.version(parsed))
    plan = connector.plan(parsed, pa.ipc.read_schema(pa.py_buffer(schema)))
    if overwrite:
        plan = _overwriting(connector, plan, parsed)
    sorts = parsed.get("onBadRow") == "deadLetter"

    store = connector.connect(parsed)

    def encoder(plan: Plan[Any]) -> Encoder | BadRowSplitter:
        made = connector.encoder(plan, store)
        return made if sorts else naming_rows(made, plan.key)

    # Without offsets to compare, rows may be applied again: harmless for a repeatable plan.
    unreadable = "warn" if plan.repeatable else "fail"
    rows = parsed["chunkRows"] or max(20, min(plan.rows, plan.cells // max(1, plan.columns)))
    return Sink(
        options=parsed,
        store=store,
        plan=plan,
        encoder=encoder,
        policy=Policy(
            plan.repeatable,
            parsed["onNewCheckpoint"],
            parsed["onLostCommit"],
            parsed["maxBadRows"] if sorts else NONE,
            parsed["ownKeys"],
        ),
        patience=Patience(parsed["maxRetries"]),
        size=ChunkSize(rows, plan.bytes),
        may_be_unreadable=(parsed["onUnreadableCheckpoint"] or unreadable) == "warn",
    )


def _overwriting(connector: Connector, plan: Plan[Any], options: Options) -> Plan[Any]:
    if not isinstance(connector, Overwriting):
        raise UnsupportedQuery(
            f'format("{connector.name}") can\'t write in mode overwrite',
            why="its connector has no step that empties a target and fills it, all or nothing",
            todo="empty the target by hand, then write in mode append",
        )
    if options["ownKeys"]:
        raise OptionError(
            "Mode overwrite and option ownKeys contradict each other",
            why="an overwrite removes the rows of every writer of the target",
            todo="omit ownKeys",
        )
    return replace(connector.overwriting(plan, options), commutes=False, empties=True)
