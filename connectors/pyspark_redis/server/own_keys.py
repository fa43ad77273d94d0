"""Which keys are a sparkonce's own, of whatever ``keyPrefix``: none of them is part of a target.

`pyspark_redis.server.session` lists them.
"""

from __future__ import annotations

import re

PREFIX = r"[A-Za-z0-9._-]{1,64}"
"""What option ``keyPrefix`` may be."""

OWN = (
    rf"\{{{PREFIX}\}}:(?:names|decided|open|probe|(?:record|staged|log|letters|lanes|lettered):.*)"
    rf"|{PREFIX}:\{{[0-9]+\}}:[^:@]+@[0-9a-f]{{16}}(?::probe)?"
)
"""The names of all such keys; the last ones are those of a cluster's lanes."""

_OWN = re.compile(OWN.encode(), re.DOTALL)


def begins(prefix: str) -> tuple[bytes, bytes]:
    """What the keys of one sparkonce begin with: on any server, and on a cluster, too."""
    return f"{{{prefix}}}:".encode(), f"{prefix}:{{".encode()


def is_own(key: bytes, *reserved: bytes) -> bool:
    """Whether a key is a sparkonce's own, or begins with what is reserved for one."""
    return key.startswith(reserved) or _OWN.fullmatch(key) is not None
