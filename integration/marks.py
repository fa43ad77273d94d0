"""Parameters of which `make test` tries some, and `make test-all` all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def also(*values: Any) -> list[Any]:
    """Values that repeat what another one shows: by a flavour, a mode, a fault, a seed."""
    return each(*((value,) for value in values))


def rarely(*values: Any) -> list[Any]:
    """Values that repeat what another one shows, and take long: `make conformance` tries them."""
    return [pytest.param(value, marks=pytest.mark.conformance) for value in values]


def some(rules: Iterable[str], long: Sequence[str]) -> list[Any]:
    """Rules of which `make test-all` checks some, and `make conformance` all."""
    return [
        pytest.param(rule, marks=pytest.mark.long if rule in long else pytest.mark.conformance)
        for rule in rules
    ]


def each(*rows: tuple[Any, ...]) -> list[Any]:
    """The same of several parameters at once."""
    return [pytest.param(*row, marks=pytest.mark.long) for row in rows]
