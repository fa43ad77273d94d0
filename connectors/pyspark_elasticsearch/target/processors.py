"""Processors of ingest pipelines that can be seen to leave alone what addresses a document.

A row that is sent again is told by its index, id and routing, and an older one by its version; and
a pipeline may write each of them, by as many names as the server has for them: ``_version``,
``_source._id``, ``{{a value}}``. So this is a list of what is proven harmless. What is not in it is
refused: also the processors of a release to come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Settings = Mapping[str, Any]
Writes = Callable[[Settings], Iterable[Any]]
"""The fields that a processor writes or removes; an empty name stands for what nobody knows."""

UNKNOWN = ""

ADDRESS = (
    *("_index", "_id", "_routing", "_type", "_version", "_version_type", "_if_seq_no"),
    *("_if_primary_term", "_dynamic_templates"),
)
"""What releases until now keep of a document beside its source, and let a pipeline write."""


READS = ("field", "fields", "source_field")
"""Settings that name fields which are read, unless the processor's kind says otherwise."""


def touched(kind: str, settings: Settings) -> str | None:
    """What a processor does that is not proven harmless, in words; None if all of it is.

    Processors within it are not looked at, nor are pipelines that it calls.
    """
    writes = WRITES.get(kind)
    if writes is None:
        return "which is not known to leave alone what addresses a document"
    bad = [field for field in (*writes(settings), *_named(settings)) if not is_plain(field)]
    if not bad:
        return None
    if kind == "script":
        return "whose script does more with ctx than name its fields"
    return f"which may write {bad[0]!r}" if bad[0] else "which takes names of fields from a row"


def _named(settings: Settings) -> Iterable[Any]:
    """The fields that any setting names, but for those that are only read.

    A processor may write several (``precision_field``), or remove the one that it reads
    (``remove_binary``).
    """
    removes = any(name.startswith("remove") for name in settings)
    for name, value in settings.items():
        if name.endswith(("field", "fields")) and (name not in READS or removes):
            yield from _listed(value)


def is_plain(field: Any) -> bool:
    """Whether a field is of the document's source, or of the pipeline's own notes (``_ingest.``).

    All that addresses a document begins with ``_`` in every release, and so does the name by which
    the server leads to the source itself.
    """
    if not isinstance(field, str) or not field or "{{" in field:
        return False
    return not field.startswith("_") or field.startswith("_ingest.")


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]


def _fixed(_: Settings) -> Iterable[Any]:
    """Nothing, or fields of the server's choice, none of which addresses a document."""
    return ()


def _field(settings: Settings) -> Iterable[Any]:
    return [settings.get("field")]


def _changed(settings: Settings) -> Iterable[Any]:
    return [settings.get("target_field", settings.get("field"))]


def _added(settings: Settings) -> Iterable[Any]:
    """A target that is the server's choice unless it is given."""
    return [settings["target_field"]] if settings.get("target_field") else []


def _target(settings: Settings) -> Iterable[Any]:
    return [settings.get("target_field")]


def _both(settings: Settings) -> Iterable[Any]:
    return [settings.get("field"), settings.get("target_field")]


def _removed(settings: Settings) -> Iterable[Any]:
    # All but those to keep: the server takes that of the source alone.
    return () if settings.get("keep") else _listed(settings.get("field"))


def _columns(settings: Settings) -> Iterable[Any]:
    return _listed(settings.get("target_fields"))


def _called(settings: Settings) -> Iterable[Any]:
    return [settings.get("name")]


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
        # Names of fields stand behind these, in a pattern and in an expression.
        yield from re.findall(r"[:<'(]\s*(_[^:}>'!]*)", str(text))


def _scripted(settings: Settings) -> Iterable[Any]:
    source, lang = settings.get("source"), settings.get("lang", "painless")
    proven = isinstance(source, str) and lang == "painless" and _names_fields_only(source)
    return () if proven else [UNKNOWN]


_NAME = r"[A-Za-z]\w*(?!\w)(?!\s*(?:\(|/[*/]))"
_TEXT = r"""(?:'[^'"\\_][^'"\\]*'|"[^'"\\_][^'"\\]*")"""
_METHODS = "containsKey|get|getOrDefault|put|putIfAbsent|remove"
_NAMED = re.compile(
    rf"(?<![\w.])ctx\s*(?:\??\.\s*(?:{_NAME}|(?:{_METHODS})\(\s*{_TEXT}\s*[,)])|\[\s*{_TEXT}\s*\])"
)
"""The uses of a document that name a field of its source, with nothing hidden in between."""

_OTHERS = re.compile(r"ctx|\bmetadata\b|\bfield\b\s*[(/]|\$\s*[(/]", re.IGNORECASE)
"""The names by which a script of Painless gets at a document."""


def _names_fields_only(source: str) -> bool:
    return not _OTHERS.search(_NAMED.sub(" ", source))


WRITES: Mapping[str, Writes] = {
    **dict.fromkeys(("drop", "fail", "terminate", "registered_domain"), _fixed),
    **dict.fromkeys(("append", "foreach", "redact", "set", "set_security_user"), _field),
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
        _added,
    ),
    **dict.fromkeys(("enrich", "kv"), _target),
    "csv": _columns,
    "dissect": _dissected,
    "dot_expander": _expanded,
    "grok": _grokked,
    "json": _parsed,
    "pipeline": _called,
    "remove": _removed,
    "rename": _both,
    "script": _scripted,
}
"""By the kind of a processor."""
