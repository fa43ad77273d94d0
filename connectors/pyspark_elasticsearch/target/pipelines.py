"""Ingest pipelines, which may redirect a row or change its version.

Index, id and routing identify a repeated row, and the version an older one. A pipeline may write
each of them, under every name that the server has for them: ``_version``, ``_source._id``,
``{{a value}}``. So `WRITES` lists processors that provably leave them unchanged. All others are
rejected, also processors of future releases. For pipelines that nobody could check beforehand,
`placement` checks the answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark_elasticsearch.server.client import Cluster, path
from pyspark_elasticsearch.server.reads import batches
from sparkonce.errors import OptionError, StoreRefused

if TYPE_CHECKING:
    from pyspark_elasticsearch.write.documents import Documents

DEFAULT, FINAL, NONE = "index.default_pipeline", "index.final_pipeline", "_none"
PAGE = 20  # pipelines in a request: its line is at most 4 KB (``http.max_initial_line_length``)
Definition = Mapping[str, Any]
Settings = Mapping[str, Any]
Writes = Callable[[Settings], Iterable[Any]]
"""Returns the fields that a processor writes or removes; an empty name is an unknown field."""

UNKNOWN = ""
ADDRESS = (
    *("_index", "_id", "_routing", "_type", "_version", "_version_type", "_if_seq_no"),
    *("_if_primary_term", "_dynamic_templates"),
)
"""Metadata of a document that a pipeline can write, in all releases until now."""

READS = ("field", "fields", "source_field")
"""Settings that name fields to read, except in some kinds of processors."""


def of(documents: Documents, settings: Settings) -> list[str]:
    """The pipelines that a row passes through, without those that they call."""
    if documents.mode.verb == "delete":
        return []
    through = dict(of_index(settings))
    first = documents.pipeline or through.get(DEFAULT)
    return [name for name in (first, through.get(FINAL)) if name]


def of_index(settings: Settings) -> list[tuple[str, str]]:
    """The settings of an index that name a pipeline, each with that name."""
    named = ((option, str(settings.get(option, NONE))) for option in (DEFAULT, FINAL))
    return [(option, name) for option, name in named if name != NONE]


def tree(cluster: Cluster, first: Iterable[str]) -> dict[str, Definition]:
    """The definitions of pipelines and of those that they call; empty if one is missing."""
    found: dict[str, Definition] = {}
    names = set(first)
    while names:
        level = read(cluster, names)
        found |= level
        called = (one["name"] for about in level.values() for one in _calls(about))
        # A name from a row calls no pipeline here: `require_kept` rejects it.
        names = {str(name) for name in called if "{{" not in name} - found.keys()
    return found


def read(cluster: Cluster, names: Iterable[str]) -> dict[str, Definition]:
    """The current definitions of these pipelines; empty if one is missing."""
    found, doing = dict[str, Definition](), "reading ingest pipelines"
    for page in batches(sorted(names), PAGE):
        target = path("_ingest", "pipeline", ",".join(page))
        status, body = cluster.ask(doing, "GET", target, allow=(404,))
        found |= {name: body.get(name, {}) if status == 200 else {} for name in page}
    return found


def require_kept(documents: Documents, found: Mapping[str, Definition]) -> None:
    """Reject pipelines that are missing, or may change the metadata of a document.

    No column may have the name of such metadata, either.
    """
    if documents.pipeline and found.get(documents.pipeline) == {}:
        raise OptionError(
            f"Option pipeline: ingest pipeline {documents.pipeline!r} does not exist",
            why="the cluster would reject every row, after the decision of its epoch",
            todo="create it, or correct the option",
        )
    if found and (taken := [name for name in documents.columns if name in ADDRESS]):
        raise OptionError(
            f"Column {taken[0]!r} can't go through ingest pipeline {min(found)!r}",
            why="a pipeline rejects every document with such a field, after the decision of its"
            " epoch",
            todo="rename the column before the sink, or write into an index without a pipeline",
        )
    for name in _lacking(found):
        raise OptionError(
            f"Ingest pipeline {name!r}, named by {documents.index} or a pipeline, does not exist",
            why="the cluster would reject every row for it, after the decision of its epoch",
            todo="create it, or remove its name there",
        )
    for name, about in found.items():
        for kind, settings in _processors(about):
            if effect := touched(kind, settings):
                raise StoreRefused(
                    f"Ingest pipeline {name!r} of {documents.index} has {kind!r}, {effect}",
                    why="index, id and routing identify a repeated row, and the version an older"
                    " one. If they changed, a row could be stored twice, or undo a newer one. So a"
                    " pipeline may use only processors that provably leave them unchanged",
                    todo="do that work in the query, or by a processor that docs/elasticsearch.md"
                    ' lists ("Ingest pipelines"), with literal names of fields that do not begin'
                    " with _; then restart the query",
                )


def _lacking(found: Mapping[str, Definition]) -> list[str]:
    """The missing pipelines, without those whose callers allow that."""
    calls = [one for about in found.values() for one in _calls(about)]
    may = {one["name"] for one in calls if one.get("ignore_missing_pipeline")}
    must = {one["name"] for one in calls if not one.get("ignore_missing_pipeline")}
    return [name for name, about in found.items() if about == {} and name not in may - must]


def _calls(about: Definition) -> Iterator[Settings]:
    return (settings for kind, settings in _processors(about) if kind == "pipeline")


def _processors(about: Definition) -> Iterator[tuple[str, Settings]]:
    """The processors of a pipeline, and those within processors."""
    inner: Iterable[Mapping[str, Any]] = [
        *about.get("processors", ()),
        *about.get("on_failure", ()),
        *([about["processor"]] if "processor" in about else ()),
    ]
    for one in inner:
        for kind, given in one.items():
            # The short form of a script is its text alone.
            settings = given if isinstance(given, Mapping) else {"source": given}
            yield kind, settings
            yield from _processors(settings)


def touched(kind: str, settings: Settings) -> str | None:
    """What a processor does that is not proven harmless, in words; None if harmless.

    This ignores processors within it, and pipelines that it calls.
    """
    writes = WRITES.get(kind)
    if writes is None:
        return "which may change the id, index, routing or version of a document"
    bad = [field for field in (*writes(settings), *_named(settings)) if not is_plain(field)]
    if not bad:
        return None
    if kind == "script":
        return "whose script uses ctx for more than names of fields"
    return f"which may write {bad[0]!r}" if bad[0] else "which takes names of fields from the row"


def is_plain(field: Any) -> bool:
    """Whether a field belongs to the document's source, or to ``_ingest`` of the pipeline.

    In every release the metadata of a document begins with ``_``, and so does the server's name for
    the source.
    """
    if not isinstance(field, str) or not field or "{{" in field:
        return False
    return not field.startswith("_") or field.startswith("_ingest.")


def _named(settings: Settings) -> Iterable[Any]:
    """The fields that settings name, without those that the processor only reads.

    A processor may write several (``precision_field``), or remove the one that it reads
    (``remove_binary``).
    """
    removes = any(name.startswith("remove") for name in settings)
    for name, value in settings.items():
        if name.endswith(("field", "fields")) and (name not in READS or removes):
            yield from _listed(value)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _changed(settings: Settings) -> Iterable[Any]:
    return [settings.get("target_field", settings.get("field"))]


def _parsed(settings: Settings) -> Iterable[Any]:
    to_root = str(settings.get("add_to_root", False)).lower() != "false"
    return [UNKNOWN] if to_root else _changed(settings)


def _expanded(settings: Settings) -> Iterable[Any]:
    field, within = settings.get("field"), settings.get("path")
    return [UNKNOWN] if field == "*" else [field, *([within] if within else [])]


def _dissected(settings: Settings) -> Iterable[Any]:
    for key in re.findall(r"%\{([^}]*)\}", str(settings.get("pattern", "%{*}"))):
        name = re.sub(r"(?:/\d+)?(?:->)?$", "", key.lstrip("+?"))
        if name:
            yield UNKNOWN if name[0] in "*&" else name


def _grokked(settings: Settings) -> Iterable[Any]:
    own = settings.get("pattern_definitions") or {}
    for text in [*_listed(settings.get("patterns", [":_"])), *own.values()]:
        # Names of fields follow these characters, in a pattern and in an expression.
        yield from re.findall(r"[:<'(]\s*(_[^:}>'!]*)", str(text))


_NAME = r"[A-Za-z]\w*(?!\w)(?!\s*(?:\(|/[*/]))"
_TEXT = r"""(?:'[^'"\\_][^'"\\]*'|"[^'"\\_][^'"\\]*")"""
_METHODS = "containsKey|get|getOrDefault|put|putIfAbsent|remove"
_NAMED = re.compile(
    rf"(?<![\w.])ctx\s*(?:\??\.\s*(?:{_NAME}|(?:{_METHODS})\(\s*{_TEXT}\s*[,)])|\[\s*{_TEXT}\s*\])"
)
"""Uses of a document that name a field of its source, with nothing hidden in between."""

_OTHERS = re.compile(r"ctx|\bmetadata\b|\bfield\b\s*[(/]|\$\s*[(/]", re.IGNORECASE)
"""The names by which a Painless script accesses a document."""


def _scripted(settings: Settings) -> Iterable[Any]:
    """No field if the script only names fields of a document's source; else an unknown one."""
    source = settings.get("source")
    if settings.get("lang", "painless") != "painless" or not isinstance(source, str):
        return [UNKNOWN]
    return [UNKNOWN] if _OTHERS.search(_NAMED.sub(" ", source)) else ()


WRITES: Mapping[str, Writes] = {
    # No field, or fields of the server's choice, none of them metadata.
    **dict.fromkeys(("drop", "fail", "terminate", "registered_domain"), lambda _: ()),
    **dict.fromkeys(
        ("append", "foreach", "redact", "set", "set_security_user"), lambda one: [one.get("field")]
    ),
    **dict.fromkeys(
        (
            *("bytes", "circle", "convert", "geo_grid", "gsub", "html_strip", "join"),
            *("lowercase", "sort", "split", "trim", "uppercase", "urldecode"),
        ),
        _changed,
    ),
    **dict.fromkeys(
        (
            *("attachment", "community_id", "date", "fingerprint", "geoip", "ip_location"),
            *("network_direction", "uri_parts", "user_agent"),
        ),
        # The server chooses the target unless it is given.
        lambda one: [one["target_field"]] if one.get("target_field") else [],
    ),
    **dict.fromkeys(("enrich", "kv"), lambda one: [one.get("target_field")]),
    "csv": lambda one: _listed(one.get("target_fields")),
    "dissect": _dissected,
    "dot_expander": _expanded,
    "grok": _grokked,
    "json": _parsed,
    "pipeline": lambda one: [one.get("name")],
    # With ``keep`` the server removes fields of the source only.
    "remove": lambda one: () if one.get("keep") else _listed(one.get("field")),
    "rename": lambda one: [one.get("field"), one.get("target_field")],
    "script": _scripted,
}
"""The fields that a processor writes, by its kind."""
