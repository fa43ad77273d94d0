"""The Lua scripts: one file is one atomic step, or a library that stands before such a step."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

LIBRARIES = {
    ("hash", "upsert"): "hash_upsert",
    ("hash", "increment"): "hash_increment",
    ("hash", "delete"): "hash_delete",
}
"""The library that applies rows, for each model and write mode."""


@lru_cache
def script(*names: str) -> str:
    """The named files, one after the other, as one script."""
    lua = files("pyspark_redis") / "lua"
    return "\n".join((lua / f"{name}.lua").read_text(encoding="utf-8") for name in names)


def note() -> str:
    """Note a staged attempt."""
    return script("note")


def swap() -> str:
    """Compare-and-set of a record."""
    return script("names", "record", "swap")


def doom() -> str:
    """Compare-and-set of a record, and drop attempts."""
    return script("record", "drop", "doom")


def decide() -> str:
    """Compare-and-set of a record that decides an epoch whose chunks are there."""
    return script("record", "beside", "decide")


def discard() -> str:
    """Drop attempts."""
    return script("names", "drop", "discard")


def apply(model: str, mode: str) -> str:
    """Apply one chunk."""
    return script("refused", LIBRARIES[model, mode], "apply")


def publish(model: str, mode: str) -> str:
    """Decide, apply and finish a small epoch."""
    return script("record", "beside", "refused", LIBRARIES[model, mode], "publish")
