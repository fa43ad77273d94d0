"""Requirements for indices, checked on their settings and mappings without any request.

`write.plan` rejects earlier what options and schema alone show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark_elasticsearch.server.failures import FLOOD
from pyspark_elasticsearch.target import pipelines, safety
from pyspark_elasticsearch.target.lookup import OWN, STAMP, VECTORS, Target, flat
from pyspark_elasticsearch.target.placement import TIMESTAMP
from pyspark_elasticsearch.write.documents import Documents, RowGuard
from sparkonce import checks
from sparkonce.errors import StoreRefused, StoreUnreachable, StoreUnsafe
from sparkonce.option_values import suggestion

FLOODED = "read_only_allow_delete"
LIFECYCLE = "index.lifecycle.name"
DERIVED = "index.derived_source.enabled"
APART = "index.knn.derived_source.enabled", "index.mapping.exclude_source_vectors"
WHOLE = ("standard", "lookup")  # index modes that keep each document unchanged by default


def require_safe(
    target: Target,
    rules: Sequence[safety.Rule] = safety.LOSING,
    cure: str = "write into an index that was created without this setting",
) -> None:
    """Reject an index that may lose or hide acknowledged writes, or that accepts no writes.

    Raises:
        StoreUnsafe: see `safety.require`.
        StoreRefused: it is read-only; `StoreUnreachable` if this is temporary.
    """
    safety.require(f"Index {target.name}", target.settings, rules, cure)
    blocks = {
        "verified_before_close": ("is closed", f"POST {target.name}/_open"),
        **{
            f"blocks.{one}": (f"has index.blocks.{one}", "remove the block")
            for one in ("read_only", "write", "search_only", FLOODED)
        },
    }
    for name, (state, todo) in blocks.items():
        if target.setting(f"index.{name}") == "true":
            what = f"Index {target.name} {state}"
            if FLOODED in name:  # a temporary block: the caller retries for a while
                room = f"{FLOOD.todo}, after which the block disappears, or remove the block"
                raise StoreUnreachable(what, FLOOD.why, room)
            raise StoreRefused(what, "it accepts no writes", f"{todo}, then restart the query")


RECREATE = "let no template of the cluster match the index, and delete it if it is new and empty"


def require_own(target: Target) -> None:
    """Reject an index of the connector that does not keep documents (`StoreUnsafe`).

    A template of the cluster may have given it such settings.
    """
    require_safe(target, safety.ALL, RECREATE)
    flaws = [f"has {option}={name}" for option, name in pipelines.of_index(target.settings)]
    if part := kept_instead(target):
        flaws.append(f"keeps {part}")
    cures = ["set such a pipeline to _none"]
    if policy := target.settings.get(LIFECYCLE):
        flaws.append(f"has {LIFECYCLE}={policy}, which may delete it")
        cures.append(f"remove the lifecycle (POST {target.name}/_ilm/remove)")
    if _asks_for_routing(target):
        flaws.append("requires a routing")
    if flaws:
        raise StoreUnsafe(
            f"Index {target.name}, the connector's own, {' and '.join(flaws)}",
            why="the connector reads decisions from this index, which must return them unchanged",
            todo=f"{', and '.join(cures)}. Otherwise {RECREATE}, and restart the query",
        )


def require_fit(target: Target, documents: Documents) -> None:
    """Reject an index that cannot store these rows, or would reject all of them once decided.

    Raises:
        OptionError: rows do not fit the index.
        StoreUnsafe: it lacks what the guard of a row depends on; see also `require_safe`.
    """
    require_safe(target, safety.ALL)
    checks.refuse(_of_streams(target, documents) if target.since else ())
    checks.refuse(_of_ids(target, documents))
    # Such a block accepts rows, and rejects look-ups of documents.
    scripted = documents.mode.guard is RowGuard.SCRIPT
    looks_up = scripted or target.since or documents.alias
    if looks_up and target.setting("index.blocks.read") == "true":
        raise StoreRefused(
            f"Index {target.name} has index.blocks.read",
            why="this write mode looks up documents: each epoch would fail after its decision",
            todo="remove the block, then restart the query",
        )
    checks.refuse(_of_aliases(target, documents))
    checks.refuse(_of_fields(target, documents))
    if scripted:
        _require_fit_for_scripts(target)
    if documents.order and documents.mode.verb != "delete":
        _require_comparable(target)


def _of_streams(target: Target, documents: Documents) -> Iterator[checks.Contradiction]:
    stream = f"index={target.name!r}, a data stream"
    yield (
        documents.alias,
        f"Options visibleAlias and {stream}, contradict each other",
        "the alias would show one index of the stream",
        "leave visibleAlias out, or write into an index",
    )
    yield (
        documents.routing,
        f"Options routing and {stream}, contradict each other",
        "the connector looks up a repeated row by its id, in all indices of the stream",
        "leave it out",
    )
    named = ", ".join(map(repr, pipelines.of(documents, target.settings)))
    yield (
        named,
        f"Rows for data stream {target.name} would pass through ingest pipeline {named}",
        "the connector looks up a repeated row by its id, which a pipeline can change",
        "leave option pipeline out, and set index.default_pipeline and index.final_pipeline to"
        " _none in the stream's last index and its index template; or write into an index, or a"
        " rollover alias",
    )
    yield (
        TIMESTAMP not in documents.columns,
        f"The query has no column {TIMESTAMP!r}, and {target.name} is a data stream",
        "every document of a data stream needs this field",
        "add the column: .withColumn('@timestamp', ...)",
    )


def _of_ids(target: Target, documents: Documents) -> Iterator[checks.Contradiction]:
    yield (
        _asks_for_routing(target) and not documents.routing,
        f"Option routing is missing, and the mapping of {target.name} requires a routing",
        "the index would reject every row, after the decision of its epoch",
        "name the column in option routing",
    )


def _asks_for_routing(target: Target) -> bool:
    return str(target.mappings.get("_routing", {}).get("required")).lower() == "true"


def _of_aliases(target: Target, documents: Documents) -> Iterator[checks.Contradiction]:
    name, kind = documents.index, "a data stream" if target.since else "an index"
    yield (
        documents.overwrites and target.name == name,
        f"Mode overwrite can't replace {name}, which is {kind}",
        "the rows go into a new index, which then replaces the one behind an alias, so that readers"
        " see either all old rows or all new ones",
        f"name an alias of one index in option index, such as {name}_all (POST _aliases"
        f' {{"actions": [{{"add": {{"index": "{name}", "alias": "{name}_all"}}}}]}}); or empty the'
        " index by hand, and use mode append",
    )
    yield (
        documents.alias and target.name != name,
        f"Options visibleAlias and index={name!r}, an alias, contradict each other",
        "once the alias points to another index, readers would see the epochs of only one of them",
        f"name the index: {target.name}",
    )


def _of_fields(target: Target, documents: Documents) -> Iterator[checks.Contradiction]:
    """Columns that a strict mapping lacks: the index would reject all rows once decided."""
    fields, strict = target.fields, _is_strict(target.mappings)
    for name in documents.fields if strict else ():
        yield (
            # A dot leads into an object, which may have another mapping.
            name not in fields and name.partition(".")[0] not in fields,
            f"Column {name!r} of the query is not in the mapping of index {target.name}",
            f"the mapping is strict, and its fields are {', '.join(sorted(fields))}",
            suggestion(name, fields) or "add it to the mapping, or drop it",
        )
    yield (
        documents.alias and fields.get(OWN, STAMP) != STAMP,
        f"Option visibleAlias needs field {OWN!r} of index {target.name}",
        "the filter of the alias needs this field, and its mapping is a different one",
        "write into another index",
    )


def _is_strict(mappings: Mapping[str, Any]) -> bool:
    dynamic = str(mappings.get("dynamic")).lower()
    no_templates = dynamic == "strict_allow_templates" and not mappings.get("dynamic_templates")
    return dynamic == "strict" or no_templates


UNCHANGED = (
    "write into an index that keeps documents: of index.mode=standard, without includes, excludes,"
    f" enabled and mode of _source, and without {DERIVED}"
)


def _require_comparable(target: Target) -> None:
    """Reject an index in which a row can't be compared with its document."""
    part, todo = kept_instead(target), UNCHANGED
    if not part and (name := _vectors_apart(target)):
        part, todo = f"vectors apart from _source ({name}=true)", f"set {name}=false in a new index"
    if part:
        raise StoreUnsafe(
            f"Index {target.name} keeps {part}",
            why="of two rows with the same value of versionColumn the first stays, so the connector"
            " compares a repeated row with the document, and this one may differ from its row",
            todo=f"{todo}, or leave versionColumn out",
        )


def _vectors_apart(target: Target) -> str:
    """The setting by which an index keeps its vectors apart; empty if it has none."""
    kinds = {(one or {}).get("type") for _, one in flat(target.fields)}
    has = kinds & {*VECTORS, "knn_vector"}
    return next((one for one in APART if has and target.setting(one) == "true"), "")


def _require_fit_for_scripts(target: Target) -> None:
    """Reject an index that keeps only parts of documents, or could silently drop a row."""
    if part := kept_instead(target):
        raise StoreUnsafe(
            f"Index {target.name} keeps {part}",
            why="an update or increment writes back what the index keeps of a document. Other"
            f" fields would disappear or change; so would field {OWN!r}, and a repeated row would"
            " count again",
            todo=UNCHANGED,
        )
    if str(target.mappings.get("subobjects")).lower() == "false":
        raise StoreRefused(
            f"Index {target.name} has subobjects=false in its mapping",
            why=f"an update or increment keeps its guard in field {OWN!r}, an object, and such an"
            " index has no objects",
            todo="write into an index without this setting (recreate the index, as it cannot"
            " change), or use writeMode=upsert",
        )
    for option, name in pipelines.of_index(target.settings):
        raise StoreUnsafe(
            f"Index {target.name} has {option}={name}",
            why="an ingest pipeline sees only the key of an update or increment, and a row that it"
            " drops is silently lost",
            todo=f'PUT {target.name}/_settings {{"{option}": "_none"}}, or write into an index'
            " without a pipeline",
        )


def dropped(target: Target) -> str:
    """What an index keeps if it drops fields of documents; empty if it drops none."""
    source: Mapping[str, Any] = target.mappings.get("_source", {})
    if "disabled" in _source_modes(target) or str(source.get("enabled")).lower() == "false":
        return "no _source"
    if source.get("excludes") or source.get("includes", ["*"]) != ["*"]:
        return "a part of each _source"
    return ""


def _source_modes(target: Target) -> set[str]:
    source: Mapping[str, Any] = target.mappings.get("_source", {})
    given = source.get("mode"), target.settings.get("index.mapping.source.mode")
    return {str(mode).lower() for mode in given if mode is not None}


def kept_instead(target: Target) -> str:
    """What an index keeps instead of the unchanged documents; empty if it keeps those."""
    modes, of_index = _source_modes(target), target.setting("index.mode") or "standard"
    if part := dropped(target):
        return part
    if modes - {"stored"}:
        return f"no _source: it is rebuilt from fields by index.mode={of_index}"
    if target.setting(DERIVED) == "true":
        return f"no _source: it is rebuilt from fields by {DERIVED}"
    if not modes and of_index not in WHOLE:
        return f"a _source that may be rebuilt from fields: index.mode={of_index}"
    return ""
