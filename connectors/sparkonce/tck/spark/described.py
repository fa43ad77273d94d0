"""What a third party says of anything that is checked on Spark: a sink, or a source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Described:
    """What is to be checked, whoever wrote it.

    Attributes:
        name: what reports call it; by default its format or its function.
        format: the format's name.
        options: the options of the format, or those that ``attach`` is given.
        attach: ``module:function``, for what a format's name does not say; see the subclasses. It
            is imported by the driver, a process of its own, along the ``sys.path`` of this one.
        limits: what it can't do: the number of a rule, and the reason.
        settings: Spark settings of the session.
        env: environment variables for the processes of Spark.
    """

    name: str = ""
    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    attach: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.format) == bool(self.attach):
            kind = type(self).__name__
            raise ValueError(f"a {kind} needs a format, or else a function to attach it")

    @property
    def title(self) -> str:
        """The name in reports."""
        return self.name or self.format or self.attach

    def left_out(self, number: str) -> str:
        """Why a rule is not checked; nothing if it is."""
        return self.limits.get(number, "")
