"""``model=counter``: a row is added to the number that is the string of its key."""

from __future__ import annotations

from pyspark_redis.write.model import Fields, Model
from sparkonce import checks
from sparkonce.change import Increment, Names
from sparkonce.errors import OptionError


def _added(beside: Fields) -> Names:
    adds = "Redis adds 64-bit integers and binary floats only"
    names = checks.require_addable(beside, checks.is_number, adds)
    if len(names) > 1:
        raise OptionError(
            f"Option model=counter needs one column beside the key's, and the query has {names}",
            why="a counter is one number",
            todo="select one of them; model=hash adds several",
        )
    return tuple(names)


COUNTER = Model("counter", (Increment,), lambda _free, _beside: (), _added)
