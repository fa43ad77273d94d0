"""What a third party says of its sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class StreamingSink:
    """A sink to be checked, whoever wrote it: how to attach it to a query, and how to read it back.

    The queries have two columns: ``id``, a string that no other row has, and ``n``, a bigint
    that is always 1. The target must be the suite's own while it runs. Each check is a query with
    a checkpoint of its own: where a target takes the rows of one query only, the fixture gives a
    new one each time.

    Attributes:
        read: how often each id has taken effect in the target: a multiset, never a set.
        name: what reports call the sink; by default its format or its function.
        format: the format's name, as for ``writeStream.format``.
        options: the options of the format, or those that ``attach`` is given.
        attach: ``module:function``, for a sink that a format's name does not say: it takes a
            `DataStreamWriter` and the options, and returns the writer. It is imported by the
            driver, a process of its own, along the ``sys.path`` of this one.
        columns: SQL expressions that make the sink's columns out of ``id`` and ``n``.
        limits: what the sink can't do: the number of a rule, and the reason.
        settings: Spark settings for the queries.
        env: environment variables for the processes of Spark.
    """

    read: Callable[[], Counter[str]]
    name: str = ""
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    attach: str = ""
    columns: Sequence[str] = ("id", "n")
    limits: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.format) == bool(self.attach):
            raise ValueError("a StreamingSink needs a format, or else a function to attach it")

    @property
    def title(self) -> str:
        """The name in reports."""
        return self.name or self.format or self.attach
