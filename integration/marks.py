"""Parameters of which `make test` tries some, and `make test-all` all."""

from __future__ import annotations

from typing import Any

import pytest


def also(*values: Any) -> list[Any]:
    """Values that repeat what another one shows: by a flavour, a mode, a fault, a seed."""
    return each(*((value,) for value in values))


def each(*rows: tuple[Any, ...]) -> list[Any]:
    """The same of several parameters at once."""
    return [pytest.param(*row, marks=pytest.mark.long) for row in rows]
