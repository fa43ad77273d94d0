"""What a list of names leaves out: `orders,-orders-copy-*`."""

from __future__ import annotations

import re

from pyspark_elasticsearch.server.client import Cluster, path
from sparkonce.option_values import Parser


def places(forbidden: str, meaning: str = "names") -> Parser:
    """Reads a list of names.

    Args:
        forbidden: characters that a name can't have, beside spaces and commas.
        meaning: what they are.
    """

    def parse(text: str) -> str:
        names = text.split(",")
        known = all(re.fullmatch(rf"[^\s{forbidden}]+", name) for name in names)
        if not known or sorted(names, key=_is_left_out) != names or _is_left_out(names[0]):
            raise ValueError(
                f"{meaning} with commas between, without spaces, and what is left out (-name) last"
            )
        return text

    return parse


def _is_left_out(name: str) -> bool:
    return name.startswith("-")


def asked(index: str) -> str:
    """The list as any cluster takes it: some refuse `-name` where no pattern stands before it."""
    names = [name for name in index.split(",") if not _is_left_out(name)]
    return index if any("*" in name for name in names) else ",".join(names)


def left_out(cluster: Cluster, index: str) -> frozenset[str]:
    """All indices that stand behind the names with a minus.

    The cluster itself leaves names out that a pattern brings, and no index that an alias brings.
    """
    names = [name[1:] for name in index.split(",") if _is_left_out(name)]
    if not names:
        return frozenset()
    params = {
        "filter_path": "*.settings.index.uuid",
        "features": "settings",
        "expand_wildcards": "all",
        "ignore_unavailable": "true",
    }
    told = cluster.ask("asking what is left out", "GET", path(",".join(names)), params=params)
    return frozenset(told.body)
