"""Declarative pipelines: a full refresh gives a flow a new checkpoint, beside the one before.

Spark keeps them in ``<storage>/_checkpoints/<table or sink>/<flow>/<number>`` and takes the next
number for a refresh, see ``FlowSystemMetadata`` in Spark's ``SystemMetadata.scala``.
"""

from __future__ import annotations

import re

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
