"""``model=hash``: a row is a hash, each of its columns a field."""

from __future__ import annotations

from pyspark_redis.models.model import Fields, Model
from sparkonce import checks
from sparkonce.change import Delete, Increment, Names, Upsert
from sparkonce.errors import OptionError

MOST_FIELDS = 5000


def written(free: Fields, _beside: Fields) -> Names:
    """All columns.

    Raises:
        OptionError: there are too many for Lua, or one has no text.
    """
    return _few(checks.require_texts(free, "Redis"))


def _added(beside: Fields) -> Names:
    adds = "Redis adds 64-bit integers and binary floats only"
    return _few(checks.require_addable(beside, checks.is_number, adds))


def _few(names: list[str]) -> Names:
    if len(names) > MOST_FIELDS:
        raise OptionError(
            f"The query has {len(names):,} columns to write",
            why=f"the loop that writes a hash in Redis can have {MOST_FIELDS:,} at most",
            todo="collect some of them in a struct, an array or a map",
        )
    return tuple(names)


HASH = Model(
    "hash",
    (Upsert, Increment, Delete),
    written,
    _added,
    takes=("opColumn", "sequenceColumn", "nulls"),
)
