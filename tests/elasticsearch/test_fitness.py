"""Indices, pipelines and queries that keep rows as they are sent, in releases to come as well."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from tests.elasticsearch.support import APPENDED

from pyspark_elasticsearch.follow.feed import require_settled
from pyspark_elasticsearch.read.fields import IndexFields
from pyspark_elasticsearch.target import pipelines
from pyspark_elasticsearch.target.lookup import Target
from pyspark_elasticsearch.target.pipelines import ADDRESS
from pyspark_elasticsearch.write.fitness import kept_instead, require_fit, require_own, require_safe
from sparkonce.change import Upsert
from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe

MODE, SOURCE = "index.mode", "index.mapping.source.mode"


def index(settings: dict[str, Any], source: dict[str, Any] | None = None) -> Target:
    return Target("x", settings, {"_source": source or {}}, "", None)


@pytest.mark.parametrize(
    ("settings", "source", "words"),
    [
        ({}, {}, ""),
        ({}, {"enabled": True, "includes": ["*"], "excludes": []}, ""),
        ({MODE: "standard", SOURCE: "STORED"}, {}, ""),
        ({MODE: "lookup"}, {}, ""),
        ({MODE: "logsdb", SOURCE: "stored"}, {}, ""),
        ({}, {"mode": "stored"}, ""),
        ({}, {"enabled": False}, "no _source"),
        ({}, {"mode": "disabled"}, "no _source"),
        ({}, {"includes": ["a"]}, "a part of each _source"),
        ({MODE: "logsdb"}, {}, "may be rebuilt from fields: index.mode=logsdb"),
        ({MODE: "columnar"}, {}, "may be rebuilt from fields: index.mode=columnar"),
        ({MODE: "columnar", SOURCE: "COLUMNAR"}, {}, "rebuilt from fields"),
        ({SOURCE: "SYNTHETIC"}, {}, "rebuilt from fields"),
        ({MODE: "logsdb"}, {"mode": "synthetic"}, "rebuilt from fields"),
    ],
)
def test_index_that_keeps_less_than_whole_documents_or_something_else_is_named(
    settings: dict[str, Any], source: dict[str, Any], words: str
) -> None:
    found = kept_instead(index(settings, source))
    assert words in found if words else not found


@pytest.mark.parametrize("said", ["true", True])
def test_index_without_sequence_numbers_is_refused(said: object) -> None:
    require_own(index({"index.disable_sequence_numbers": "false"}))
    with pytest.raises(StoreUnsafe, match=r"disable_sequence_numbers=true"):
        require_own(index({"index.disable_sequence_numbers": said, MODE: "columnar"}))


@pytest.mark.parametrize(
    ("name", "value", "is_fine_for_letters"),
    [
        ("translog.durability", "ASYNC", False),
        ("replication.type", "SEGMENT", False),
        ("ingestion_source.type", "KAFKA", False),
        ("append_only.enabled", True, True),
        ("mode", "time_series", True),
        ("mode", "one_to_come", True),
    ],
)
def test_setting_that_loses_rows_is_refused_by_name(
    name: str, value: object, is_fine_for_letters: bool
) -> None:
    there = index({f"index.{name}": value})
    said = rf"Index x has index\.{name}={str(value).lower()}"
    for require in (require_own, lambda one: require_fit(one, APPENDED)):
        with pytest.raises(StoreUnsafe, match=said):
            require(there)
    with nullcontext() if is_fine_for_letters else pytest.raises(StoreUnsafe, match=said):
        require_safe(there)


@pytest.mark.parametrize(
    ("mappings", "is_refused"),
    [
        ({"dynamic": "strict"}, True),
        ({"dynamic": "strict_allow_templates"}, True),
        ({"dynamic": "strict_allow_templates", "dynamic_templates": [{"a": {}}]}, False),
        ({"dynamic": "false_allow_templates"}, False),
        ({}, False),
    ],
)
def test_mapping_that_takes_no_new_field_refuses_a_column(
    mappings: dict[str, Any], is_refused: bool
) -> None:
    there = Target("x", {}, {**mappings, "properties": {"other": {"type": "long"}}}, "", None)
    with pytest.raises(OptionError, match="is strict") if is_refused else nullcontext():
        require_fit(there, replace(APPENDED, columns=("n",)))


APART = "index.knn.derived_source.enabled", "index.mapping.exclude_source_vectors"


def test_vectors_apart_from_documents_do_not_go_with_versions() -> None:
    documents = replace(APPENDED, change=Upsert(("k",), order="v"))
    vector = {"properties": {"a": {"properties": {"v": {"type": "knn_vector"}}}}}
    for name in APART:
        there = Target("x", {name: "true"}, vector, "", None)
        with pytest.raises(StoreUnsafe, match=f"{name}=true.*versionColumn"):
            require_fit(there, documents)
        require_fit(there._replace(mappings={}), documents)
        require_fit(there._replace(settings={name: "false"}), documents)
    with pytest.raises(StoreUnsafe, match="versionColumn"):
        require_fit(index({"index.derived_source.enabled": "true"}), documents)


# -- ingest pipelines are taken only if all that they do is known to leave addresses alone


HARMLESS: list[dict[str, Any]] = [
    {"set": {"field": "a._version", "value": 1}},
    {"set": {"field": "_ingest.mine", "value": 1}},
    {"set": {"field": "b", "copy_from": "_id"}},
    {"append": {"field": "tags", "value": ["{{_version}}"]}},
    {"remove": {"field": ["a", "b"]}},
    {"remove": {"keep": ["a"]}},
    {"rename": {"field": "a", "target_field": "b"}},
    {"date": {"field": "a", "formats": ["ISO8601"]}},
    {"geoip": {"field": "ip"}},
    {"json": {"field": "a", "target_field": "b"}},
    {"kv": {"field": "a", "field_split": " ", "value_split": "=", "target_field": "b"}},
    {"dissect": {"field": "a", "pattern": "%{+at/2} %{+at/1} %{?skipped} %{} %{last->}"}},
    {"grok": {"field": "a", "patterns": ["%{WORD:b} %{NUMBER:c:int} (?<d>x)"]}},
    {"csv": {"field": "a", "target_fields": ["b", "c"]}},
    {"dot_expander": {"field": "a.b"}},
    {"foreach": {"field": "l", "processor": {"uppercase": {"field": "_ingest._value"}}}},
    {"pipeline": {"name": "other"}},
    {"drop": {"if": "ctx._version > 1"}},
    {"script": "ctx.a = ctx.b"},
    {"script": {"source": "if (ctx?.n == null) { ctx['n'] = 1 / ctx.m } ctx.remove('x')"}},
    {"script": {"source": "ctx.put('a', ctx.getOrDefault(\"b\", 2)); ctx.metadata = ctx.field"}},
]


def pipeline(*processors: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"one": {"processors": [*processors], **more}}


@pytest.mark.parametrize("processor", HARMLESS, ids=str)
def test_processor_that_writes_fields_of_the_source_alone_is_taken(
    processor: dict[str, Any],
) -> None:
    pipelines.require_kept(APPENDED, pipeline(processor))


def by_name(name: Any) -> list[dict[str, Any]]:
    return [
        {"set": {"field": name, "value": 1}},
        {"append": {"field": name, "value": 1}},
        {"remove": {"field": ["a", name]}},
        {"rename": {"field": "a", "target_field": name}},
        {"rename": {"field": name, "target_field": "a"}},
        {"convert": {"field": "a", "type": "long", "target_field": name}},
        {"gsub": {"field": name, "pattern": "a", "replacement": "b"}},
        {"date": {"field": "a", "formats": ["UNIX"], "target_field": name}},
        {"csv": {"field": "a", "target_fields": ["b", name]}},
        {"enrich": {"field": "a", "policy_name": "p", "target_field": name}},
        {"foreach": {"field": "l", "processor": {"set": {"field": name, "value": 1}}}},
        {"foreach": {"field": name, "processor": {"trim": {"field": "_ingest._value"}}}},
        {"trim": {"field": "a", "on_failure": [{"set": {"field": name, "value": 1}}]}},
        {"json": {"field": "a", "target_field": name}},
        {"kv": {"field": "a", "field_split": " ", "value_split": "=", "target_field": name}},
        {"geo_grid": {"field": "a", "tile_type": "geotile", "precision_field": name}},
        {"geo_grid": {"field": "a", "tile_type": "geohash", "non_children_field": name}},
        {"uri_parts": {"field": name, "remove_if_successful": True}},
        {"attachment": {"field": name, "remove_binary": True}},
        {"remove": {"field": name, "keep": []}},
    ]


SCRIPTS = (
    "ctx._version = 1",
    "ctx . _version = 1",
    "ctx/**/._version = 1",
    "ctx['_version'] = 1",
    "ctx['_ver' + 'sion'] = 1",
    "ctx[ctx.name] = 1",
    "ctx.put('_version', 1)",
    "ctx.put('a' == 'a' ? '_version' : 'b', 1)",
    "ctx.put/**/('_version', 1)",
    "ctx.putAll(['_version': 1])",
    "ctx.entrySet().removeIf(e -> true)",
    "def all = ctx; all._version = 1",
    "void f(Map m) { m._version = 1 } f(ctx)",
    "['_version'].forEach(ctx::remove)",
    "metadata().version = 1",
    "metadata/**/().versionType = 'external'",
    "field('_version').set(1)",
    "ctx.a = 1; /* ctx.a */ ctx. /* ctx.b */ _id = 'x'",
)
UNPROVEN: list[dict[str, Any]] = [
    *(one for name in ADDRESS for one in by_name(name)[:1]),
    {"grok": {"field": "a", "patterns": ["(?'_id'x)"]}},
    *by_name("_source._version"),
    *by_name("{{{a}}}"),
    {"set": {"value": 1}},
    {"reroute": {"destination": "elsewhere"}},
    {"date_index_name": {"field": "a", "date_rounding": "d"}},
    {"json": {"field": "a", "add_to_root": True}},
    {"kv": {"field": "a", "field_split": " ", "value_split": "="}},
    {"dissect": {"field": "a", "pattern": "%{_id} %{b}"}},
    {"dissect": {"field": "a", "pattern": "%{+_id} %{b}"}},
    {"dissect": {"field": "a", "pattern": "%{*b} %{&b}"}},
    {"grok": {"field": "a", "patterns": ["%{WORD:_id}"]}},
    {"grok": {"field": "a", "patterns": ["(?<_id>x)"]}},
    {"grok": {"field": "a", "patterns": ["%{X}"], "pattern_definitions": {"X": "%{WORD:_id}"}}},
    {"dot_expander": {"field": "*"}},
    {"pipeline": {"name": "{{name}}"}},
    {"of_a_later_release": {}},
    {"script": {"id": "stored"}},
    {"script": {"source": "ctx.a = 1", "lang": "expression"}},
    {"script": "ctx._id = 'x'"},
    *({"script": {"source": text}} for text in SCRIPTS),
]


@pytest.mark.parametrize("processor", UNPROVEN, ids=str)
@pytest.mark.parametrize("place", ["processors", "on_failure"])
def test_processor_that_may_write_an_address_is_refused(
    processor: dict[str, Any], place: str
) -> None:
    about = pipeline(processor) if place == "processors" else pipeline(on_failure=[processor])
    (kind,) = processor if "on_failure" not in str(processor) else ("set",)
    said = rf"Ingest pipeline 'one' of x has '({kind}|set|trim)', (which|whose) "
    with pytest.raises(StoreRefused, match=said):
        pipelines.require_kept(APPENDED, about)


def test_column_that_a_pipeline_takes_for_an_address_is_refused() -> None:
    documents = replace(APPENDED, columns=("_version_type",))
    pipelines.require_kept(documents, {})
    with pytest.raises(OptionError, match=r"Column '_version_type' can't go through .*'one'"):
        pipelines.require_kept(documents, pipeline())


# -- queries by which indices can be followed


BY_F = {"bool": {"filter": [{"term": {"f": "x"}}]}}


def test_a_field_whose_one_value_is_not_set_yet_may_match_later() -> None:
    """`constant_keyword`, which not every build of the server has."""
    unset = {"properties": {"f": {"type": "constant_keyword"}}}
    there = IndexFields([unset], unset["properties"], 10)
    with pytest.raises(StoreRefused, match="not set yet"):
        require_settled(BY_F, there)
    known = {"properties": {"f": {"type": "constant_keyword", "value": "x"}}}
    require_settled(BY_F, IndexFields([known], known["properties"], 10))
    require_settled({"term": {"n": 1}}, there)
    computed = {"properties": {}, "derived": {"f": {"type": "keyword", "script": {}}}}
    for query in (BY_F, {"term": {"f.inside": "x"}}):
        with pytest.raises(StoreRefused, match="which a script computes"):
            require_settled(query, IndexFields([computed], {}, 10))


def test_fields_without_a_mapping_are_expected_where_a_mapping_ignores_them() -> None:
    for dynamic in ("false", False, "runtime", "false_allow_templates"):
        assert IndexFields([{"dynamic": dynamic}], {}, 10).lenient
    for dynamic in ("true", "strict", None, "strict_allow_templates"):
        assert not IndexFields([{"dynamic": dynamic}], {}, 10).lenient
