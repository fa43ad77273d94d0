"""Drivers that die at a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def dies(*_: Any) -> None:
    raise KeyboardInterrupt


def dies_of(step: Callable[[], object]) -> bool:
    try:
        step()
    except KeyboardInterrupt:
        return True
    return False
