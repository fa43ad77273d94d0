"""A query or a batch, as a suite describes it to a driver in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """The computation between the files and the sink.

    Attributes:
        partitions: in how many tasks the rows reach the sink.
        random: random numbers, not ids, spread the rows over the tasks.
        choose: each row's id gets ``.a`` or ``.b`` at its end, at random.
        watched: tasks report the rows that pass, and a plan can hit them after their last row.
        pause: seconds between two small batches of rows, if watched.
    """

    partitions: int = 2
    random: bool = False
    choose: bool = False
    watched: bool = False
    pause: float = 0.0


WATCHED = Shape(watched=True, pause=0.01)


@dataclass(frozen=True)
class DescribedQuery:
    """One run of a streaming query over a directory of files: one file is one epoch.

    If ``mode`` is set (``append`` or ``overwrite``), it is a batch of one file's rows instead.
    """

    input: str
    checkpoint: str
    format: str
    options: Mapping[str, str]
    attach: str
    columns: Sequence[str]
    shape: Shape
    mode: str = ""


@dataclass(frozen=True)
class FollowedQuery:
    """One run of a streaming query over a source; `StreamingSource` describes the other fields.

    Attributes:
        records: a directory for the rows that it delivers.
        ends: whether it ends after the rows that exist at its start (``availableNow``).
    """

    checkpoint: str
    records: str
    format: str
    options: Mapping[str, str]
    attach: str
    schema: str
    column: str
    ends: bool


@dataclass(frozen=True)
class Status:
    """The status of a query.

    Attributes:
        running: whether it runs.
        error: the error with which it failed, or nothing.
    """

    running: bool
    error: str


@dataclass(frozen=True)
class Progress:
    """Spark's progress of the epochs of a query, as JSON; only the last ones, if there are many."""

    epochs: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Known:
    """Whether Spark knows a setting."""

    known: bool
