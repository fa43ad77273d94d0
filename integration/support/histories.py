"""Histories of changes with TRUNCATE, drawn from a seed, and the rows that they leave."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

OPERATIONS = ("c", "c", "u", "u", "d", "t", "s")


@dataclass
class History:
    """Changes of a few keys in some tables.

    Attributes:
        epochs: of each epoch the rows of each partition, with `id`, `name`, `op` and `place`.
        stored: of each table the rows that stay, by their keys.
    """

    epochs: list[list[list[dict[str, Any]]]] = field(default_factory=list)
    stored: dict[str, dict[int, str]] = field(default_factory=dict)


def drawn(seed: int, *places: str) -> History:
    """Some epochs of some partitions; later partitions have later changes."""
    draw = random.Random(seed)
    found = History(stored={place: {} for place in places})
    numbers = iter(range(10_000))
    for _ in range(draw.randint(2, 5)):
        parts = draw.randint(1, 3)
        found.epochs.append([[*_rows(draw, found, numbers)] for _ in range(parts)])
    return found


def _rows(draw: random.Random, found: History, numbers: Iterator[int]) -> Iterator[dict[str, Any]]:
    for _ in range(draw.randint(0, 12)):
        op, place = draw.choice(OPERATIONS), draw.choice([*found.stored])
        key, name = draw.randrange(8), f"n{next(numbers)}"
        stored = found.stored[place]
        if op in ("t", "s"):
            stored = stored if op == "s" else {}
            found.stored[place] = stored
            yield {"id": None, "name": None, "op": op, "place": place}
            continue
        if op == "d":
            stored.pop(key, None)
        else:
            stored[key] = name
        yield {"id": key, "name": name, "op": op, "place": place}
