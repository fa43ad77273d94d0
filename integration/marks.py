"""Parameters of which `make test` tries some, and `make test-all` all."""

from __future__ import annotations

from typing import Any

import pytest


def also(*values: Any) -> list[Any]:
    """Values that repeat what another one shows: by a flavour, a mode, a fault, a seed."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values]


RULES = [
    *("Q01", "Q02", "Q03", "Q04", "Q07", "Q08", "Q09"),
    *(pytest.param(rule, marks=pytest.mark.conformance) for rule in ("Q05", "Q06", "Q10")),
]
"""Of a stream into a second store: what executors and twins of tasks do to it lies before the
store, and is tried with the first."""
