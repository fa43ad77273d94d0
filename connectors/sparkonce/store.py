"""The interface of a connector, and its lookup: by its path (Spark), or by a URL (the CLI).

`sparkonce.protocol` defines the records and manifests that a connector receives.
"""

from __future__ import annotations

import importlib
import logging
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from sparkonce.errors import MissingExtra, OptionError, StoreUnreachable, this_python
from sparkonce.option_values import suggestion
from sparkonce.protocol import (
    Advance,
    Applied,
    Chunk,
    Encoder,
    Finish,
    Manifest,
    P,
    Part,
    Plan,
    Proposal,
    Record,
    Staged,
    no_progress,
)
from sparkonce.urls import spelled

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Option, Options


class Store(Protocol):
    """The steps that a connector implements; each one is atomic in the store.

    A step raises `StoreUnreachable` after a broken connection or without a reply, even if it may
    have taken effect: the core learns the outcome by moving the revision. A step must not resend
    a request that is not idempotent.
    """

    def check(self, plan: P) -> P:
        """Reject a server that cannot keep the guarantee; runs before every epoch.

        Returns the plan with what tasks must know of the target, to judge whether it can hold a
        value. They receive it from the writer that Spark creates for the epoch.

        Args:
            plan: of the query, whose target is checked, too; None without a query.
        """

    def read(self, name: str) -> Record:
        """The record as last written (never a stale copy); ``Record()`` if it does not exist."""

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """Write a record by compare-and-set; return the record that the store has then.

        Args:
            name: of the record.
            new: the new record. One of revision 0 removes the record, and `names` lists it no
                longer, unless its sink has staged chunks.
            over: the stamp that the present record must have; empty if none may exist.
            applied: how many chunks of the present decision must be applied. A failover may restore
                a decision without the rows that were applied after it, and nobody may finish that
                epoch.
        """

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """Write `new` as `swap` does, and on success discard these attempts of the sink `name`.

        In one atomic step where the store can, and then the attempts first: a full store may accept
        only writes that free memory. Otherwise first the record, then `discard` under its stamp.
        Returns the record that the store has then.
        """

    def names(self) -> list[str]:
        """The names of all records, and of all sinks that have staged chunks."""

    def unfinished(self, kin: str) -> list[str]:
        """The sinks of one target that have decided an epoch and not finished it.

        A batch asks for them, so the cost must not grow with the number of the other sinks.

        Args:
            kin: the suffix of their names, see `ledger.kin_of`.
        """

    def decided_after(self, name: str) -> list[str]:
        """The sinks of the same target whose last decision is newer than this one's.

        By the order in which the store wrote the decisions, not by a clock: after a failover the
        clock belongs to another host.

        Args:
            name: of a sink with an unfinished decision.
        """

    def stage(self, chunk: Chunk) -> None:
        """Append one chunk to the log. A repetition changes nothing.

        Raises:
            ChunkTooLarge: the chunk exceeds the limit of the store; no part of it is stored.
        """

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """The attempts in the log of a sink; with `fresh` also the most recent chunks."""

    def prepare(self, manifest: Manifest) -> Manifest:
        """Add what applying needs: a fence, or the index behind an alias; often nothing."""

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        """Decide, apply and finish in one atomic step; None if this epoch needs several steps.

        The step changes nothing unless the present stamp is the one that the proposal names.
        Returns the record that the store has then. The chunks may stay: the commit discards them
        afterwards.

        Raises:
            StagedDataMissing: a chunk is missing or has another size; nothing changed.
        """

    def decide(self, proposal: Proposal) -> Record:
        """Write a decision as `swap` does, if the log has each chunk of its manifest complete.

        In one atomic step, as a failover may lose the newest chunks. A store without transactions
        checks right before it writes. Returns the record that the store has then.

        Raises:
            StagedDataMissing: a chunk is missing or has another size; nothing was written.
        """

    def apply(
        self, manifest: Manifest, advance: Advance = no_progress, since: float | None = None
    ) -> Applied:
        """Apply the decided chunks; each takes effect once, however often this is called.

        Returns the outcome of all rows of the epoch, including rows from earlier calls. It holds
        nothing (no lock, no open transaction) while `advance` runs.

        Args:
            manifest: the decision.
            advance: receives the number of newly applied rows.
            since: when this process prepared the decision, by `time.monotonic`, if the store
                acknowledged it and this is the first call. None if others may have applied some of
                it.

        Raises:
            RowRefused: the server rejected a row, or too many; a later call resumes there.
            StoreLostData: the store lost a chunk that was not applied.
        """

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        """Discard staged attempts from the log, if the stamp of the sink's record is `over`.

        In one atomic step: a failover may restore a decision that holds them. A store without
        transactions checks right before it discards.

        Args:
            sink: name of the record.
            attempts: to discard; missing ones are ignored.
            over: the stamp, empty if no record may exist. None for attempts that no decision can
                hold, since nobody has their receipts.
            parts: the known chunks of some of them. A store whose search may lag behind finds these
                without a search.
        """


@runtime_checkable
class Overwriting(Protocol):
    """A connector that can replace all rows of the target by the rows of a batch."""

    def overwriting(self, plan: Plan[Any], options: Options) -> Plan[Any]:
        """A plan with which a decided batch first empties its target.

        Raises:
            OptionError: these options do not allow that.
        """


class Connector(Protocol):
    """A kind of store. One object without state, which driver and tasks share.

    Attributes:
        name: the name of the format and of the extra that installs its client.
        options: all options of its sinks.
    """

    name: str
    options: Sequence[Option]

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Any]:
        """Check options against the schema, and return the plan.

        Raises:
            OptionError: they do not fit.
        """

    def encoder(self, plan: Plan[Any], store: Any) -> Encoder:
        """The function that encodes rows as chunks for this plan.

        Args:
            plan: as `Store.check` returned it.
            store: of the task, for what only the rows tell: the tables that they name.
        """

    def connect(self, options: Options) -> Store:
        """A store for these options; it connects at its first use."""


@runtime_checkable
class KeepsTables(Protocol):
    """A connector with its own tables."""

    def ddl(self) -> list[str]:
        """Statements that create them, for users without the right to do so."""


GROUP = "sparkonce.connectors"
"""The group of entry points for connectors, also of third parties; their names are URL schemes."""


def load(path: str) -> Connector:
    """The connector at ``module:Class``.

    Raises:
        MissingExtra: its client library is missing, or has an incompatible release.
    """
    module, _, name = path.partition(":")
    try:
        connector: Connector = getattr(importlib.import_module(module), name)()
    except ImportError as error:
        raise _misfit(extra(path), error) from None
    return connector


def _misfit(needed: str, error: ImportError) -> MissingExtra:
    only_a_folder = error.name and not error.path  # for example a checkpoint of the same name
    if isinstance(error, ModuleNotFoundError) or only_a_folder:
        return MissingExtra(
            f'format("{needed}") needs the Python package {error.name!r} ({this_python()})',
            why="only the extra of a store installs its client",
            todo=f"install the wheel of sparkonce with extra [{needed}] on the driver and every"
            " executor (docs/deploy.md)",
        )
    return MissingExtra(
        f'format("{needed}") can\'t use the installed Python package: {error}',
        why="sparkonce does not support its release",
        todo=f"install the wheel of sparkonce with extra [{needed}] on the driver and every"
        " executor (docs/deploy.md); pip then changes the package to a supported release",
    )


def extra(path: str) -> str:
    """The extra that installs what the connector at ``module:Class`` needs."""
    return path.partition(".")[0].removeprefix("pyspark_")


def names() -> list[str]:
    """The names of the installed connectors."""
    return sorted(set(map(extra, _schemes().values())))


def _schemes() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}


def for_name(name: str) -> Connector:
    """The connector for ``format(name)`` or for the scheme of a URL.

    Raises:
        OptionError: no installed connector has that name.
    """
    schemes = _schemes()
    if name not in schemes:
        raise OptionError(
            f"No connector is named {name!r}",
            why=f"installed are {', '.join(names())}",
            todo=suggestion(name, sorted(schemes)) or "name one of them",
        )
    return load(schemes[name])


def for_url(url: str) -> Connector:
    """The connector for a URL, such as ``redis://localhost:6379``.

    Raises:
        OptionError: no installed connector knows its scheme.
    """
    scheme, found, _ = spelled(url).removeprefix("jdbc:").partition("://")
    scheme, schemes = scheme if found else "", _schemes()
    if scheme not in schemes:
        shown = scheme if re.fullmatch(r"[\w+.-]*", scheme) else "***"
        raise OptionError(
            f"No connector knows the URL scheme {shown!r}",
            why=f"URLs begin with {', '.join(f'{known}://' for known in sorted(schemes))}",
            todo="check the URL, for example redis://localhost:6379/0",
        )
    return load(schemes[scheme])


log = logging.getLogger("sparkonce")
T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """The retries of an unreachable store.

    Attributes:
        max_retries: tries after the first one.
        first: seconds before the first retry; each next wait is twice as long.
        longest: most seconds of a single wait.
    """

    max_retries: int = 8
    first: float = 0.1
    longest: float = 5.0

    def wait(self, tried: int) -> float:
        """Seconds to wait after this number of failed tries."""
        return min(self.longest, self.first * 2.0 ** (tried - 1))

    def run(self, step: Callable[[], T]) -> T:
        """Call an idempotent `step` until the store replies.

        Raises:
            StoreUnreachable: the store did not reply to any try.
        """
        tried = 0
        while True:
            try:
                return step()
            except StoreUnreachable as error:  # any other error is a reply
                tried += 1
                if tried > self.max_retries:
                    raise
                log.warning("%s; try %d of %d", error.what, tried + 1, self.max_retries + 1)
                time.sleep(self.wait(tried))
