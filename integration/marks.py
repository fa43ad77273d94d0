"""Parameters of which `make test` tries some, and `make test-all` all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from sparkonce.tck.spark.checks import CHECKS

OF_STORES = ("Q06", "Q08")
"""Twins that both send their rows, and a replay of other rows."""


def also(*values: Any) -> list[Any]:
    """Values that repeat what another one shows: by a flavour, a mode, a fault, a seed."""
    return each(*((value,) for value in values))


def rules_of_a_stream() -> list[Any]:
    """Those of a second store: most of them say what the core and Spark do for all stores."""
    return some(CHECKS, OF_STORES)


def some(rules: Iterable[str], long: Sequence[str]) -> list[Any]:
    """Rules of which `make test-all` checks some, and `make conformance` all."""
    return [
        pytest.param(rule, marks=pytest.mark.long if rule in long else pytest.mark.conformance)
        for rule in rules
    ]


def each(*rows: tuple[Any, ...]) -> list[Any]:
    """The same of several parameters at once."""
    return [pytest.param(*row, marks=pytest.mark.long) for row in rows]
