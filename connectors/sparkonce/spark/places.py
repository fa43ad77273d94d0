"""How the place of a checkpoint is spelled: one spelling each, whatever a user writes.

A ledger keeps that spelling, and a claim is named by it; see `sparkonce.exactly_once.registers`.
"""

from __future__ import annotations

import posixpath
import re

SAME = {"s3a": "s3", "s3n": "s3", "abfs": "abfss"}
"""Schemes by which Hadoop reaches the same places."""

MOUNT = "/dbfs"
"""Where Databricks shows the places of `dbfs:` as local ones."""

VOLUMES = "/Volumes/"
"""Places of Databricks that have this local path also with ``dbfs:`` before them."""


def split(location: str) -> tuple[str, str, str]:
    """The scheme, the authority and the path of a place; a plain path has neither of the first."""
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*):(?://([^/]*))?(.*)", location, re.DOTALL)
    if match is None:
        return "", "", location
    return match[1].lower(), match[2] or "", match[3]


def spelling(location: str) -> str:
    """The one spelling of a place of another file system; that of a local path as it is.

    As Hadoop reads it: doubled slashes, dots and a slash at the end say nothing.
    """
    scheme, authority, path = split(location)
    if not scheme:
        mounted = location.startswith(f"{MOUNT}/")
        return spelling(f"dbfs:{location[len(MOUNT) :]}") if mounted else location
    authority = re.sub(":[^@]*@", "@", authority)  # a password says nothing of the place
    named = SAME.get(scheme, scheme)
    slashes = f"//{authority}" if authority or (path.startswith("/") and named != "dbfs") else ""
    plain = posixpath.normpath(re.sub("/+", "/", path)) if path else ""
    if named == "dbfs" and plain.startswith(VOLUMES):
        return plain
    return f"{named}:{slashes}{'' if authority and plain == '/' else plain}"


FLOW = re.compile(r"(.+/_checkpoints(?:/[^/]+){2,})/\d+")
"""A sink's name may have dots, each of which makes a folder."""


def without_refresh(location: str | None) -> str | None:
    """The place that all checkpoints of a flow share; that of any other query as it is.

    A refresh that reads all rows again is so known as a checkpoint that another one replaces.

    Args:
        location: of a checkpoint, as `places.spelling` has it.
    """
    flow = FLOW.fullmatch(location or "")
    return flow[1] if flow else location
