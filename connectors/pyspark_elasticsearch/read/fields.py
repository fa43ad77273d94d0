"""Resolves the names in option ``index``, and reads the fields of their mappings."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import pyarrow as pa
from pyarrow import types

from pyspark_elasticsearch.server.client import Cluster, by_name, path
from pyspark_elasticsearch.server.reads import index_names
from pyspark_elasticsearch.target.lookup import OWN, VECTORS, flat
from sparkonce.errors import OptionError, StoreRefused
from sparkonce.option_values import Parser
from sparkonce.values.spark_types import decimal

log = logging.getLogger("sparkonce")


DATE_MATH = r"<[^\s,<>]+>"
"""A name that depends on the date: ``<logs-{now/d-1d}>``."""


def names(forbidden: str, meaning: str = "names", *, dated: bool = False) -> Parser:
    """A parser for a list of names without certain characters, spaces and commas.

    Exclusions (``-name``) are at the end: ``orders,-orders-copy-*``. With `dated`, date math is
    allowed.
    """
    form = rf"[^\s{forbidden}<>]+" + (f"|-?{DATE_MATH}" if dated else "")

    def parse(text: str) -> str:
        given = text.split(",")
        known = all(re.fullmatch(form, name) for name in given)
        if not known or sorted(given, key=_is_left_out) != given or _is_left_out(given[0]):
            raise ValueError(
                f"{meaning} with commas between, without spaces, and exclusions (-name) at the end"
            )
        return text

    return parse


def _is_left_out(name: str) -> bool:
    return name.startswith("-")


def at_once(cluster: Cluster, index: str) -> str:
    """The list with the present names in place of date math: later requests may be of another day.

    See https://www.elastic.co/guide/en/elasticsearch/reference/current/api-conventions.html.
    """
    names = [one for name in index.split(",") for one in _present(cluster, name)]
    if not names or _is_left_out(names[0]):
        raise OptionError(
            f"Option index={index!r} matches no index now",
            why="no index has a name that its date math gives",
            todo="correct the option, or name indices by a pattern such as logs-*",
        )
    return ",".join(names)


def _present(cluster: Cluster, name: str) -> list[str]:
    """The names that date math gives, each with the minus of an exclusion."""
    minus = "-" if _is_left_out(name) else ""
    if not re.fullmatch(DATE_MATH, name.removeprefix(minus)):
        return [name]
    target = path("_resolve", "index", name.removeprefix(minus))
    answer = cluster.ask("resolving date math", "GET", target, allow=(404,))
    found = answer.body.values() if answer.status == 200 else ()
    return [f"{minus}{one['name']}" for kind in found for one in kind]


def asked(index: str) -> str:
    """The list for any cluster: some reject `-name` without a pattern before it."""
    given = [name for name in index.split(",") if not _is_left_out(name)]
    return index if any("*" in name for name in given) else ",".join(given)


def left_out(cluster: Cluster, index: str) -> set[str]:
    """All indices that the names with a minus resolve to.

    The cluster itself excludes only names that a pattern matches, not indices of an alias.
    """
    given = ",".join(name[1:] for name in index.split(",") if _is_left_out(name))
    every = {
        "expand_wildcards": "all",
        "ignore_unavailable": "true",
        **cluster.dialect.settings_only,
    }
    return index_names(cluster, "reading excluded indices", given, (), **every) if given else set()


Mapped = Mapping[str, Any]  # the mapping of a field in the cluster's form
KINDS = {
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "unsigned_long": decimal(20, 0),
    "half_float": pa.float32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "scaled_float": pa.float64(),
    "binary": pa.binary(),
    "dense_vector": pa.list_(pa.float32()),
}
"""Types of fields, and types of Arrow for their values; other fields are read as texts."""

WHOLE = ("byte", "short", "integer", "long")  # each includes all values of those before it
TEXTS = (
    *("keyword", "text", "wildcard", "constant_keyword", "match_only_text", "ip", "version"),
    *("search_as_you_type", "date", "date_nanos", "token_count"),
)
"""Types whose values are texts, numbers or booleans; other types hold any JSON."""

META = {"_id": pa.string(), "_index": pa.string(), "_seq_no": pa.int64()}
"""Metadata of every document, read if a schema or option ``columns`` names it."""

PLAIN_DATES = "strict_date_optional_time"
ISO = re.compile(
    r"[a-z_]+|8?(yyyy|uuuu)-MM-dd((T|'T'| )HH(:mm(:ss(\.S{1,9})?)?)?)?([XxZ]{1,5}|'Z')?"
)
"""Date formats in which a text of ISO 8601 has its usual meaning."""

SETTINGS = "max_result_window", "mapping.source.mode"
SHOWN = ",".join(("*.mappings", *(f"*.settings.index.{one}" for one in SETTINGS)))


@dataclass(frozen=True)
class IndexFields:
    """The fields of the documents to read."""

    mappings: Sequence[Mapped]  # of each index
    fields: Mapping[str, Mapped | None]  # merged; None where indices contradict each other
    most: int  # documents of one page
    left_out: Collection[str] = ()  # indices that are excluded under every name
    has_vectors: bool = True  # whether documents have vectors without a request for them

    @cached_property
    def rebuilds_numbers(self) -> bool:
        """Whether the cluster may change the form of numbers in documents.

        It does so where a search must ask for vectors, and in OpenSearch where an index has any.
        """
        return not self.has_vectors or any(kind_of(one) == "knn_vector" for _, one in self.every)

    def same(self, name: str) -> Mapped | None:
        """The mapping of a field that is the same in every index and describes the documents."""
        found = [one.get("properties", {}).get(name) for one in self.mappings]
        if self.lenient or not all(one and one == found[0] for one in found):
            return None
        return None if name in self._elsewhere else found[0]

    @cached_property
    def every(self) -> Sequence[tuple[str, Mapped]]:
        """All fields of all indices by path, each index by itself."""
        return [
            (at, one)
            for mapping in self.mappings
            for at, one in flat(mapping.get("properties", {}))
            if one
        ]

    @cached_property
    def lenient(self) -> bool:
        """Whether documents may have fields without a mapping."""
        dynamic = {str(one.get("dynamic")).lower() for one in self.mappings}
        return bool(dynamic & {"false", "runtime", "false_allow_templates"}) or any(
            map(_is_off, self.mappings)
        )

    @cached_property
    def _elsewhere(self) -> set[str]:
        """Fields whose index differs from the documents."""
        found = set[str]()
        for one in self.mappings:
            found.update(one.get("runtime", {}))
            if one.get("_source"):
                found.update(one.get("properties", {}))
            for _, mapping in flat(one.get("properties", {})):
                found.update((mapping or {}).get("copy_to", ()))
        return found


def describe(cluster: Cluster, index: str, *, require_all: bool = True) -> IndexFields:
    """The fields of all indices in a list; with `require_all`, each name must exist.

    `StoreRefused` for indices that do not keep documents.
    """
    params = {"filter_path": SHOWN, "ignore_unavailable": str(not require_all).lower()}
    body = cluster.ask("asking for the fields", "GET", path(asked(index)), params=params).body
    out = left_out(cluster, index)
    found = {name: about for name, about in body.items() if name not in out}
    if not found:
        raise StoreRefused(
            f"{index!r} matches no index",
            why="option index has patterns without a match, or excludes all",
            todo="correct option index, or create an index",
        )
    mappings, windows = [], []
    for name, about in by_name(found).items():
        mapping, settings = about.get("mappings", {}), about.get("settings", {}).get("index", {})
        _require_source(name, mapping, settings)
        mappings.append(mapping)
        windows.append(int(settings.get("max_result_window", 10_000)))
    merged = _merged([one.get("properties", {}) for one in mappings])
    fields = {name: one for name, one in merged.items() if name != OWN}
    plain = IndexFields(mappings, fields, min(windows), out)
    return replace(plain, has_vectors=not _hides_vectors(cluster, index, plain))


def _hides_vectors(cluster: Cluster, index: str, there: IndexFields) -> bool:
    """Whether a search must ask for vectors; older clusters omit none, and reject this."""
    if not any(kind_of(one) in VECTORS for _, one in there.every):
        return False
    body = {"size": 0, "query": {"match_none": {}}, "_source": {"exclude_vectors": False}}
    params = {"ignore_unavailable": "true"}
    doing, target = "asking for vectors", path(asked(index), "_search")
    answer = cluster.ask(doing, "POST", target, params=params, body=body, allow=(400,))
    return "[exclude_vectors]" not in str(answer.body.get("error"))


def _require_source(index: str, mapping: Mapped, settings: Mapping[str, Any]) -> None:
    source = mapping.get("_source", {})
    mode = settings.get("mapping", {}).get("source", {}).get("mode")
    if _is_off(source) or mode == "disabled":
        raise StoreRefused(
            f"Index {index} can't be read",
            why="its mapping or index.mapping.source.mode disables _source, so it does not keep"
            " documents",
            todo="reindex the documents with _source enabled",
        )
    if kept := [name for name in ("includes", "excludes") if source.get(name)]:
        _warn_cut(index, kept[0])


@lru_cache(maxsize=1000)
def _warn_cut(index: str, how: str) -> None:
    """Warn once: a stream reads the fields in each epoch."""
    log.warning(
        "Index %s does not keep whole documents, so some columns are null. Why: its mapping"
        " has _source.%s. What to do: leave those columns out by option columns",
        *(index, how),
    )


def _merged(each: Sequence[Mapped]) -> dict[str, Mapped | None]:
    names = dict.fromkeys(name for properties in each for name in properties)
    return {name: _one_of([one[name] for one in each if name in one]) for name in names}


def _one_of(mappings: Sequence[Mapped]) -> Mapped | None:
    first = mappings[0]
    kinds = {kind_of(one) for one in mappings}
    if len(kinds) > 1:
        wide = max(WHOLE.index(one) for one in kinds) if kinds <= {*WHOLE} else None
        return None if wide is None else {"type": WHOLE[wide]}
    if kinds & {"object", "nested"}:
        closed = {_is_off(one) for one in mappings}
        inner = _merged([one.get("properties", {}) for one in mappings])
        if True in closed:
            return first if len(closed) == 1 else None
        return {**first, "properties": inner} if inner else first
    return first if len({_format(one) for one in mappings}) == 1 else None


def kind_of(mapping: Mapped) -> str:
    """The type of a field; ``passthrough``, which adds other names for its fields, is an object."""
    kind = str(mapping.get("type", "object"))
    return "object" if kind == "passthrough" else kind


def natural(
    fields: Mapping[str, Mapped | None], arrays: Collection[str], at: str = ""
) -> Iterator[tuple[str, pa.DataType]]:
    """The columns of fields, with lossless types; `OptionError` if indices contradict each other.

    `arrays` are paths of arrays; all paths begin with `at`, which ends with a dot.
    """
    for name, mapping in fields.items():
        if mapping is None:
            raise OptionError(
                f"Field {f'{at}{name}'!r} has different types in the indices to read",
                why="no type holds all values",
                todo="give it a type by .schema(...), such as string, leave it out by option"
                " columns, or read fewer indices",
            )
        if kind_of(mapping) == "alias":  # another name, which no document has
            continue
        kind = _kind(mapping, arrays, f"{at}{name}")
        many = f"{at}{name}" in arrays and not types.is_list(kind)
        yield name, pa.list_(kind) if many else kind


def _kind(mapping: Mapped, arrays: Collection[str], at: str) -> pa.DataType:
    if is_json(mapping) or "properties" not in mapping:
        return KINDS.get(kind_of(mapping)) or _moment(mapping)
    inner = pa.struct([*natural(mapping["properties"], arrays, f"{at}.")])
    return pa.list_(inner) if kind_of(mapping) == "nested" else inner


def is_json(mapping: Mapped) -> bool:
    """Whether its values may be any JSON, which a text column then holds."""
    if "properties" in mapping:
        return _is_off(mapping)
    return kind_of(mapping) not in (*KINDS, *TEXTS)


def _is_off(mapping: Mapped) -> bool:
    return str(mapping.get("enabled")).lower() == "false"


def _moment(mapping: Mapped) -> pa.DataType:
    """The type for a date: a number or a text if its format is not ISO 8601."""
    first = _format(mapping).partition("||")[0]
    if kind_of(mapping) != "date":
        return pa.string()
    if first.startswith("epoch_"):
        return pa.int64()
    return pa.timestamp("us", "UTC") if PLAIN_DATES in first else pa.string()


def _format(mapping: Mapped) -> str:
    return str(mapping.get("format", f"{PLAIN_DATES}||epoch_millis"))


def is_iso(mapping: Mapped) -> bool:
    """Whether a text of ISO 8601 in a date field means that moment, by the first format."""
    for one in _format(mapping).split("||"):
        if PLAIN_DATES in one:
            return True
        if not ISO.fullmatch(one.replace("[", "").replace("]", "")):
            return False
    return True


def is_millis(mapping: Mapped) -> bool:
    """Whether a number in a date field is milliseconds since 1970; four digits may be a year.

    The cluster tries one format after the other on the digits.
    """
    formats = {*_format(mapping).split("||")}
    known = {"epoch_millis", PLAIN_DATES, f"{PLAIN_DATES}_nanos"}
    return kind_of(mapping) == "date" and "epoch_millis" in formats and formats <= known
