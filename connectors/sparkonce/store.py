"""What a connector implements, and how it is found: by its path (Spark), or by a URL (the CLI).

The records and manifests that they are given are those of `sparkonce.protocol`.
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

    A step raises `StoreUnreachable` when the connection broke or no answer came, also if it may
    have taken effect: the core finds out by moving the revision. It must not resend by itself
    what is not idempotent.
    """

    def check(self, plan: P) -> P:
        """Refuse a server on which the guarantee can't be kept; runs before every epoch.

        Returns the plan, with what tasks must know of the target to see whether it can hold a
        value; they get it from the writer that Spark makes for the epoch.

        Args:
            plan: of the query, whose target is looked at, too; None where there is no query.
        """

    def read(self, name: str) -> Record:
        """The record as last written (never a stale copy); ``Record()`` if there is none."""

    def swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        """Write a record by compare-and-set; return what is there then.

        Args:
            name: of the record.
            new: to be written. One of revision 0 takes the record away: then there is none, and
                `names` lists it no more, unless something is staged.
            over: the stamp that must be there; empty where there must be no record.
            applied: how many chunks of the decision that is there must have been applied. A
                failover may bring a decision back, and not the rows that were applied after it;
                such an epoch must not be finished.
        """

    def doom(self, name: str, new: Record, over: str, attempts: Sequence[str]) -> Record:
        """Write `new` as `swap` does; if it is there then, drop these attempts of the sink `name`.

        In one atomic step where the store can, and then the attempts first: a full store may take
        no write but one that makes room. Else first the record, then `discard` while that is there.
        Returns what is there then.
        """

    def names(self) -> list[str]:
        """The names of all records, and of all sinks that have something staged."""

    def unfinished(self, kin: str) -> list[str]:
        """The sinks of one target that have a decision which is not wholly applied.

        A batch asks for them, so the cost must not grow with the number of the other sinks.

        Args:
            kin: how their names end, see `ledger.kin_of`.
        """

    def decided_after(self, name: str) -> list[str]:
        """The sinks of the same target that decided last after this one did.

        By the order in which the store wrote the decisions, not by a clock: after a failover the
        clock is another host's.

        Args:
            name: of a sink with an unfinished decision.
        """

    def stage(self, chunk: Chunk) -> None:
        """Append one chunk to the log. Repeating it changes nothing.

        Raises:
            ChunkTooLarge: the store takes only smaller ones; nothing of it is there.
        """

    def staged(self, sink: str, *, fresh: bool = False) -> list[Staged]:
        """The attempts in the log of a sink; with `fresh` also what was staged a moment ago."""

    def prepare(self, manifest: Manifest) -> Manifest:
        """Add what applying needs: a fence, the index that a name stands for; often nothing."""

    def publish(self, proposal: Proposal, finish: Finish) -> Record | None:
        """Decide, apply and finish in one atomic step; None if that can't be done with this epoch.

        Nothing is done unless the stamp that is there is the one of the decision. Returns what is
        there then.
        The chunks may stay: commit discards them once this is done.

        Raises:
            StagedDataMissing: a chunk is gone or has another size; nothing is done.
        """

    def decide(self, proposal: Proposal) -> Record:
        """Write a decision as `swap` does, if each chunk of its manifest is there, whole.

        In one atomic step: a failover may take back what was staged last. A store without
        transactions looks right before it writes. Returns what is there then.

        Raises:
            StagedDataMissing: a chunk is gone or has another size; nothing is written.
        """

    def apply(
        self, manifest: Manifest, advance: Advance = no_progress, since: float | None = None
    ) -> Applied:
        """Apply the decided chunks; each takes effect once, however often this is called.

        Returns what became of all rows of the epoch, also of those that were applied before.
        Nothing is held (no lock, no open transaction) while `advance` runs.

        Args:
            manifest: the decision.
            advance: told of rows as they are applied, not of those that were applied before.
            since: when this process prepared the decision, by `time.monotonic`, if it was
                acknowledged to it and is applied for the first time; None if others may have
                applied some of it.

        Raises:
            RowRefused: the server refused a row, or too many; a later call goes on from it.
            StoreLostData: a chunk is gone that was not applied.
        """

    def discard(
        self,
        sink: str,
        attempts: Sequence[str],
        over: str | None = None,
        parts: Sequence[Part] = (),
    ) -> None:
        """Drop staged attempts from the log, if the stamp of the sink's record is `over`.

        In one atomic step: a failover may bring a decision back that holds them. A store without
        transactions looks right before.

        Args:
            sink: name of the record.
            attempts: to be dropped; what is not there is left out.
            over: the stamp, empty where there is no record; None for attempts that no decision
                can hold, since nobody has their receipts.
            parts: what is known of some of them: a store that finds what is staged by a search,
                which may be late, finds these without.
        """


@runtime_checkable
class Overwriting(Protocol):
    """A connector that can put the rows of a batch in the place of all that is in the target."""

    def overwriting(self, plan: Plan[Any], options: Options) -> Plan[Any]:
        """The same plan, by which a decided batch first empties its target.

        Raises:
            OptionError: these options don't allow that.
        """


class Connector(Protocol):
    """A kind of store. One object without state, shared by driver and tasks.

    Attributes:
        name: the name of the format and of the extra that installs its client.
        options: every option that it knows.
    """

    name: str
    options: Sequence[Option]

    def plan(self, options: Options, schema: pa.Schema) -> Plan[Any]:
        """Check options against the schema and fix what will be done with rows.

        Raises:
            OptionError: they don't fit.
        """

    def encoder(self, plan: Plan[Any]) -> Encoder:
        """The function that turns rows into chunks for this plan."""

    def connect(self, options: Options) -> Store:
        """A store for these options; connects when first used."""


@runtime_checkable
class KeepsTables(Protocol):
    """A connector with tables of its own."""

    def ddl(self) -> list[str]:
        """Statements that make them, for users who may not."""


GROUP = "sparkonce.connectors"
"""Entry points of this group are named by URL schemes; a third party's connectors join so."""


def load(path: str) -> Connector:
    """The connector at ``module:Class``.

    Raises:
        MissingExtra: its client library is not installed, or is of a release that does not fit.
    """
    module, _, name = path.partition(":")
    try:
        connector: Connector = getattr(importlib.import_module(module), name)()
    except ImportError as error:
        raise _misfit(extra(path), error) from None
    return connector


def _misfit(needed: str, error: ImportError) -> MissingExtra:
    only_a_folder = error.name and not error.path  # as a checkpoint's may be, of the same name
    if isinstance(error, ModuleNotFoundError) or only_a_folder:
        return MissingExtra(
            f'format("{needed}") needs the Python package {error.name!r} ({this_python()})',
            why="sparkonce installs the client of a store only where its extra is asked for",
            todo=f"pip install 'sparkonce[{needed}]' on the driver and every executor",
        )
    return MissingExtra(
        f'format("{needed}") can\'t use the Python package that is installed: {error}',
        why="it is of a release that sparkonce does not know",
        todo=f"pip install --upgrade 'sparkonce[{needed}]' on the driver and every executor",
    )


def extra(path: str) -> str:
    """The extra that installs what the connector at ``module:Class`` needs."""
    return path.partition(".")[0].removeprefix("pyspark_")


def names() -> list[str]:
    """Those of the connectors that are installed."""
    return sorted(set(map(extra, _schemes().values())))


def _schemes() -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=GROUP)}


def for_name(name: str) -> Connector:
    """The connector that ``format(name)`` or a URL's scheme means.

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
            todo="check the URL; it looks like redis://localhost:6379/0",
        )
    return load(schemes[scheme])


log = logging.getLogger("sparkonce")
T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long to wait for a store that does not answer.

    Attributes:
        max_retries: tries after the first one.
        first: seconds before the first retry; each next wait is twice as long.
        longest: seconds that no single wait exceeds.
    """

    max_retries: int = 8
    first: float = 0.1
    longest: float = 5.0

    def wait(self, tried: int) -> float:
        """Seconds to wait after so many failed tries."""
        return min(self.longest, self.first * 2.0 ** (tried - 1))

    def run(self, step: Callable[[], T]) -> T:
        """Call an idempotent `step` until it answers.

        Raises:
            StoreUnreachable: it never did.
        """
        tried = 0
        while True:
            try:
                return step()
            except StoreUnreachable as error:  # any other error is an answer
                tried += 1
                if tried > self.max_retries:
                    raise
                log.warning("%s; try %d of %d", error.what, tried + 1, self.max_retries + 1)
                time.sleep(self.wait(tried))
