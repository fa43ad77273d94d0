"""What updates and increments ask of an index: their scripts keep a guard in its documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pyspark_elasticsearch import kept
from pyspark_elasticsearch.chunks import unpacked
from pyspark_elasticsearch.client import Cluster, path
from pyspark_elasticsearch.failures import of_answer
from sparkonce.errors import StoreRefused, StoreUnsafe
from sparkonce.protocol import Chunk

GUARD = "sparkonce"
"""The field in which documents of updates and increments keep what they have seen."""

GUARDED = {"properties": {GUARD: {"type": "object", "enabled": False}}}
"""Its mapping."""

SCRIPTED = ("update", "increment")
"""The write modes that need it."""

PIPELINES = ("default_pipeline", "final_pipeline")

_INDEX = re.compile(rb'^\{"update":\{"_index":"([^"]+)"', re.MULTILINE)


def prepare(
    cluster: Cluster, name: str, settings: Mapping[str, Any], mappings: Mapping[str, Any]
) -> None:
    """See that an index that is there is fit, and that the guard of its documents has its mapping.

    Raises:
        StoreUnsafe: a script would lose something there.
    """
    _require_whole_source(name, settings, mappings)
    _require_no_pipeline(name, settings)
    fields = mappings.get("properties", {})
    if GUARD not in fields or fields[GUARD].get("enabled") is not False:
        doing = f"adding field {GUARD} to the mapping of {name}"
        cluster.ask(doing, "PUT", path(name, "_mapping"), body=GUARDED)


def ensure(cluster: Cluster, index: str) -> None:
    """Make an index unless it is there, and let it be fit.

    Raises:
        StoreError: it is none, or can't be made.
    """
    found = _looked_at(cluster, index)
    if found is None:
        doing = f"making index {index}"
        made = cluster.ask(doing, "PUT", path(index), body={"mappings": GUARDED}, allow=(400,))
        error = made.body.get("error", {}) if made.status == 400 else {}
        if error and error.get("type") != "resource_already_exists_exception":
            raise of_answer(made.status, error, doing)
        found = _looked_at(cluster, index) or {}
    prepare(cluster, index, found.get("settings", {}), found.get("mappings", {}))


def named_in(lines: bytes) -> set[str]:
    """The indices that the lines of scripted rows name."""
    return {name.decode() for name in _INDEX.findall(lines)}


class Outlook:
    """Looks at the indices that a task's rows name, while nothing is decided yet."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._attempt, self._seen = "", set[str]()

    def require_fit(self, chunk: Chunk) -> None:
        """Refuse rows for what is there and not fit. What is not there is made once it is decided.

        Raises:
            StoreError: it says what.
        """
        if chunk.task.attempt != self._attempt:
            self._attempt, self._seen = chunk.task.attempt, set()
        for name in named_in(unpacked(chunk.payload).lines) - self._seen:
            found = _looked_at(self.cluster, name)
            if found is not None:
                _require_whole_source(name, found["settings"], found["mappings"])
                _require_no_pipeline(name, found["settings"])
            self._seen.add(name)


def _looked_at(cluster: Cluster, name: str) -> Mapping[str, Any] | None:
    """Settings and mappings of an index; None if there is none.

    Raises:
        StoreRefused: the name is that of something else.
    """
    doing, params = f"looking at index {name}", {"flat_settings": "true"}
    answer = cluster.ask(doing, "GET", path(name), params=params, allow=(404,))
    if answer.status == 404:
        return None
    if name not in answer.body:
        raise StoreRefused(
            f"Rows go to {name}, and that is an alias or data stream of"
            f" {', '.join(sorted(answer.body))}",
            why="an update or increment of a template goes to indices alone: an alias may lead"
            " elsewhere by the time a row is sent again, which would then be added twice",
            todo="choose names for option index that no alias has, or drop the alias",
        )
    found: Mapping[str, Any] = answer.body[name]
    return found


def _require_whole_source(
    name: str, settings: Mapping[str, Any], mappings: Mapping[str, Any]
) -> None:
    """Refuse an index that keeps a part of each document: a script would not see its guard."""
    kept.require_numbered(name, settings)
    part = kept.flaw(settings, mappings)
    if not part:
        return
    raise StoreUnsafe(
        f"Index {name} keeps {part}",
        why="an update or increment writes back what is kept of a document: other fields would be"
        f" lost or changed, and field {GUARD!r}, without which a repeated row is added again",
        todo="write into an index of index.mode=standard, without includes, excludes, enabled and"
        " mode of _source",
    )


def _require_no_pipeline(name: str, settings: Mapping[str, Any]) -> None:
    """Refuse what could drop a row, and be answered as if all were well."""
    for option in PIPELINES:
        pipeline = str(settings.get(f"index.{option}", "_none"))
        if pipeline != "_none":
            raise StoreUnsafe(
                f"Index {name} has index.{option}={pipeline}",
                why="of the row of an update or increment an ingest pipeline sees the key alone,"
                " and what it drops changes nothing, unseen",
                todo=f'PUT {name}/_settings {{"index.{option}": "_none"}}, or write into an index'
                " without a pipeline",
            )
