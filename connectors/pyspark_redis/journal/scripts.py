"""The Lua scripts: one file is one atomic step, or a library that stands before such a step."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files


@lru_cache
def script(*names: str) -> str:
    """The named files, one after the other, as one script."""
    own = files("pyspark_redis")
    return "\n".join((own / _path(name)).read_text(encoding="utf-8") for name in names)


def _path(name: str) -> str:
    """Where it lies: what applies rows is named by model and write mode, ``hash_upsert``."""
    own = name.partition("_")[0] == "lane" or "_" not in name
    return f"{'journal/lua' if own else 'write'}/{name}.lua"


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


def apply(library: str) -> str:
    """Apply one chunk, by the library of a model and write mode."""
    return script("expiry", "fields", library, "rows", "notes", "apply")


def noted() -> str:
    """Read the rows of a chunk that can't be stored."""
    return script("notes", "noted")


def aside() -> str:
    """Make dead letters of the rows of a chunk that can't be stored."""
    return script("notes", "letters", "aside")


def rewind() -> str:
    """Take back the progress over chunks of which no row was stored."""
    return script("notes", "rewind")


def fence() -> str:
    """Draw the fence of a decision."""
    return script("fence")


def lane_apply(library: str) -> str:
    """Apply segments of a chunk to the lanes of one node."""
    return script("lane", "expiry", "fields", library, "rows", "lane_apply")


def lane_bury() -> str:
    """Note that lanes are about to be dropped."""
    return script("lane_bury")


def lane_chunk() -> str:
    """Read a staged chunk of a decision."""
    return script("lane_chunk")


def lane_drop() -> str:
    """Forget what lanes have seen."""
    return script("lane", "lane_drop")


def lane_forget() -> str:
    """Forget what is known of lanes."""
    return script("lane_forget")


def lane_settle() -> str:
    """Note that chunks are applied in their lanes, and make dead letters of their bad rows."""
    return script("letters", "lane_settle")


def lane_states() -> str:
    """Read what lanes have seen."""
    return script("lane", "lane_states")


def clear() -> str:
    """Delete keys that an overwrite replaces."""
    return script("clear")


def publish(library: str) -> str:
    """Decide, apply and finish a small epoch."""
    return script("record", "beside", "expiry", "fields", library, "rows", "publish")
