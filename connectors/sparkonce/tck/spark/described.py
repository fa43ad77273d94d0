"""A third party's description of a sink or a source to check on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Described:
    """The description of a sink or a source.

    Attributes:
        name: its name in reports; by default its format or its function.
        format: the format's name.
        options: the options of the format, or those passed to ``attach``.
        attach: ``module:function``, if a format's name is not enough; see the subclasses. The
            driver, a separate process, imports it along the ``sys.path`` of this process.
        limits: rules that it can't keep: the number of a rule, and the reason.
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
        """The reason why a rule is not checked; empty if it is."""
        return self.limits.get(number, "")
