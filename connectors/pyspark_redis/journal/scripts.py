"""The Lua scripts: each file is one atomic step, or a library that precedes a step."""

from __future__ import annotations

from functools import lru_cache, partial
from importlib.resources import files


@lru_cache
def script(*names: str) -> str:
    """The named files, for example ``journal/lua/swap``, joined in order as one script."""
    own = files("pyspark_redis")
    return "\n".join((own / f"{name}.lua").read_text(encoding="utf-8") for name in names)


stage = partial(script, "journal/lua/stage")
swap = partial(script, "journal/lua/record", "journal/lua/swap")
doom = partial(script, "journal/lua/record", "journal/lua/doom")
decide = partial(script, "journal/lua/record", "journal/lua/decide")
discard = partial(script, "journal/lua/record", "journal/lua/discard")
clear = partial(script, "journal/lua/clear")
read_bad_rows = partial(script, "journal/lua/bad_rows", "journal/lua/read_bad_rows")
put_aside = partial(script, "journal/lua/bad_rows", "journal/lua/put_aside")
rewind = partial(script, "journal/lua/bad_rows", "journal/lua/rewind")


def publish(model: str) -> str:
    """Decide, apply and finish a small epoch."""
    return script("journal/lua/record", "write/rows", f"write/{model}", "journal/lua/publish")


def apply(model: str) -> str:
    """Apply one chunk."""
    return script("write/rows", f"write/{model}", "journal/lua/bad_rows", "journal/lua/apply")


def apply_to_lanes(model: str) -> str:
    """Apply segments of a chunk to the lanes of one node."""
    return script("cluster/lua/lane", "write/rows", f"write/{model}", "cluster/lua/apply")


fence = partial(script, "cluster/lua/fence")
read_chunk = partial(script, "cluster/lua/read_chunk")
settle = partial(script, "journal/lua/bad_rows", "cluster/lua/settle")
lane_states = partial(script, "cluster/lua/lane", "cluster/lua/states")
bury = partial(script, "cluster/lua/bury")
expire_lanes = partial(script, "cluster/lua/lane", "cluster/lua/expire")
forget = partial(script, "cluster/lua/forget")
