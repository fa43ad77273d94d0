"""Cases of a parametrized test that `make test` leaves to `make slow`."""

from __future__ import annotations

from typing import Any

import pytest


def slow_cases(*values: Any) -> list[Any]:
    """Values that repeat another case with a flavour, a mode, a fault or a seed."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def slow_rows(*rows: tuple[Any, ...]) -> list[Any]:
    """The same for a test with several parameters."""
    return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]
