"""The text of an operation: fixed by a plan, but for what its row holds, and for marks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

from pyspark_elasticsearch.write.documents import Documents, Guard, Way, script

# What is not known yet when a task stages. No JSON text has these control characters in it raw.
VERSION_MARK = "\x01"  # the version of the chunk
NAME_MARK = "\x02"  # the name of the chunk, with which an id made from it begins
SCRIPT_MARK = "\x03"  # `begun_script`
STAMP_MARK = "\x04"  # tells of which decision a document is

# _gte: a chunk that is sent again has the same version, and is no conflict.
FENCED = f',"version":{VERSION_MARK},"version_type":"external_gte"'


class Slot(NamedTuple):
    """What a row puts into its line.

    Attributes:
        what: names its document, or is the JSON of a column: ``value``, and ``left``, a member that
            is left out where it is null.
        column: which one.
    """

    what: str
    column: str = ""


ID, INDEX, VERSION, ROUTING = Slot("id"), Slot("index"), Slot("version"), Slot("routing")
Line: TypeAlias = tuple[str | Slot, ...]


def written(documents: Documents) -> Line:
    """The lines of a row that deletes nothing by its operation."""
    way = documents.way
    action = _action(documents, way.verb)
    if way.verb == "delete":
        return (*action, "}}\n")
    if way.guard is Guard.SCRIPT:
        # Chunks in parallel may change one document, so the node retries. By scripted_upsert the
        # script writes its guard into a new document, too.
        retried = ',"retry_on_conflict":20}}\n'
        begun = retried + f'{{"scripted_upsert":true,"script":{{{SCRIPT_MARK}"a":{{'
        new = ('}}},"upsert":{', *_members(documents.key), "}}\n")
        return (*action, begun, *_changes(documents), *new)
    stamp = f"{STAMP_MARK}," if documents.alias else ""
    return (*action, "}}\n{" + stamp, *_members(documents.columns), "}\n")


def deleted(documents: Documents) -> Line:
    """The line of a row that deletes by its operation."""
    return (*_action(documents, "delete"), "}}\n")


def begun_script(way: Way, sink: str, fence: int, ordinal: int) -> str:
    """What a chunk's script begins with, up to the member ``a`` that each row brings: its changes.

    Args:
        way: of the write mode.
        sink: whose decision it is.
        fence: of the decision.
        ordinal: of the chunk in it.
    """
    if not way.script:
        return ""
    source, name = json.dumps(script(way)), json.dumps(sink)
    return f'"lang":"painless","source":{source},"params":{{"s":{name},"f":{fence},"o":{ordinal},'


def member(name: str) -> str:
    """What stands before the value of a column."""
    return f"{json.dumps(name, ensure_ascii=False)}:"


def _action(documents: Documents, verb: str) -> Line:
    """What names a document, and its version where the write mode gives one."""
    line = [f'{{"{verb}":{{', *(('"_index":"', INDEX, '",') if documents.parts else ())]
    line += ['"_id":"' if documents.key else f'"_id":"{NAME_MARK}', ID, '"']
    if documents.routing:
        line += [',"routing":', ROUTING]
    if documents.is_fenced:
        line.append(FENCED)
    elif documents.order:
        # Not _gte: of rows with equal versions the first to arrive stays.
        line += [',"version":', VERSION, ',"version_type":"external"']
    return tuple(line)


def _changes(documents: Documents) -> Line:
    """What the script gets; the key, never null, comes before what is left out where it is null."""
    if not documents.keeps:
        return _members(documents.added or documents.columns)
    rest = [name for name in documents.columns if name not in documents.key]
    return (*_members(documents.key), *(Slot("left", name) for name in rest))


def _members(columns: Iterable[str]) -> Line:
    """These columns as members of a JSON object."""
    line: list[str | Slot] = []
    for name in columns:
        line += [f",{member(name)}" if line else member(name), Slot("value", name)]
    return tuple(line)
