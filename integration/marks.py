"""Parameters of which `make test` tries some, and `make test-all` all."""

from __future__ import annotations

from typing import Any

import pytest


def also(*values: Any) -> list[Any]:
    """Values that repeat what another one shows: by a flavour, a mode, a fault, a seed."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]
