"""A query or a batch, as a suite describes it to a driver in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """What is computed between the files and the sink.

    Attributes:
        partitions: in how many tasks the rows reach the sink.
        random: rows are spread over the tasks by what is drawn when they are computed, not by
            their ids.
        choose: each row's id gets ``.a`` or ``.b`` at its end, as it is drawn.
        watched: tasks tell what passes, and are open to faults once their last row has.
        pause: seconds between two handfuls of rows, where they are watched.
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

    Where ``mode`` says how (``append`` or ``overwrite``), it is a batch of one file's rows instead.
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
    """One run of a streaming query over a source; see `StreamingSource` for what is not told here.

    Attributes:
        records: a directory for what it delivers.
        ends: whether it ends with what is there when it begins (``availableNow``).
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
    """How a query is doing.

    Attributes:
        running: whether it is.
        error: why it failed, or nothing.
    """

    running: bool
    error: str


@dataclass(frozen=True)
class Progress:
    """What Spark says of the epochs of a query, as JSON; of the last ones, if there are many."""

    epochs: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Known:
    """Whether Spark knows what it was asked for."""

    known: bool
