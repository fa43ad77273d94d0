"""How documents become rows: drawn mappings and documents, against `fields` of the same hits."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import count
from typing import Any

import pytest
from elasticsearch import Elasticsearch
from integration.support.elasticsearch import Index, source

from pyspark_elasticsearch.target.lookup import flat
from sparkonce.errors import ValueUnreadable

SEEDS = 30
NAMES = ["a", "b", "c", "d", 'q"r', "sort"]
LEAVES: dict[str, Any] = {
    "long": lambda draw: draw.choice([1, -7, "12", 2**62]),
    "keyword": lambda draw: draw.choice(["x", "a.b", "", '{"a": 1}', 5]),
    "boolean": lambda draw: draw.choice([True, False, "true"]),
    "double": lambda draw: draw.choice([0.5, 1, "2.25"]),
}


class Drawn:
    """A mapping, and documents of it, in which names have dots or not as it falls."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.priorities = count(1)
        self.is_flat = self.draw.random() < 0.3
        top = {"subobjects": False} if self.is_flat else {}
        self.mappings = {**top, "properties": self.properties(0, flat=self.is_flat)}

    def properties(self, depth: int, *, flat: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name in self.draw.sample(NAMES, self.draw.randint(2, 4)):
            kind = self.draw.choice(["leaf", "leaf", "object", "nested", "passthrough", "flat"])
            if flat and self.draw.random() < 0.5:
                found[f"{name}.{self.draw.choice(NAMES)}"] = self.leaf()
            if flat or kind == "leaf" or depth == 2:
                found[name] = self.leaf()
            elif kind == "flat":
                inner = self.properties(depth + 1, flat=True)
                found[name] = {"subobjects": False, "properties": inner}
            else:
                more = {"priority": next(self.priorities)} if kind == "passthrough" else {}
                inner = self.properties(depth + 1, flat=kind == "passthrough")
                found[name] = {"type": kind, **more, "properties": inner}
        return found

    def leaf(self) -> dict[str, Any]:
        return {"type": self.draw.choice([*LEAVES])}

    def document(self) -> dict[str, Any]:
        return self.object(self.mappings["properties"])

    def object(self, properties: dict[str, Any]) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        for name, mapping in properties.items():
            for _ in range(self.draw.choice([0, 1, 1, 1, 2])):
                # Of these, `fields` misses what has its name with dots; the index does not.
                is_nested = mapping.get("type") == "nested"
                value = self.value(mapping)
                pairs += [(name, value)] if is_nested else self.members(name, value)
        self.draw.shuffle(pairs)
        return dict(pairs)

    def members(self, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """A value, or its parts by names with dots; a name with dots as objects, too."""
        head, dot, rest = name.partition(".")
        if isinstance(value, dict) and self.draw.random() < 0.4:
            yield from ((f"{name}.{inner}", one) for inner, one in value.items())
        elif dot and self.draw.random() < 0.4:
            yield head, {rest: value}
        else:
            yield name, value

    def value(self, mapping: dict[str, Any]) -> Any:
        if self.draw.random() < 0.1:
            return None
        if self.draw.random() < 0.2:
            return [self.single(mapping) for _ in range(self.draw.randint(1, 3))]
        return self.single(mapping)

    def single(self, mapping: dict[str, Any]) -> Any:
        if "properties" in mapping:
            return self.object(mapping["properties"])
        return LEAVES[mapping["type"]](self.draw)


Leaves = Counter[tuple[str, Any]]


def leaves(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """All that is there but null, each with the path at which it is."""
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield from leaves(value, f"{path}.{name}" if path else name)
    elif isinstance(tree, list):
        for one in tree:
            yield from leaves(one, path)
    elif tree is not None:
        yield path, tree


def column_of(path: str, columns: Collection[str]) -> str:
    """The column that a path is in: without objects, `a.b` is one of its own beside `a`."""
    return max((one for one in columns if f"{path}.".startswith(f"{one}.")), key=len)


def is_shown_object(value: Any) -> bool:
    """What `fields` shows of an object at a field that has none, `{b=1}`; no index has it."""
    return isinstance(value, str) and value.startswith("{") and "=" in value


@pytest.mark.variants
def test_rows_have_what_the_cluster_says_of_the_fields(index: Index) -> None:
    told = Counter[str]()
    for seed in range(SEEDS):
        drawn = Drawn(seed)
        name, settings = f"{index}-{seed}", {"number_of_replicas": 0}
        client = index.client.options(ignore_status=400)
        if "error" in client.indices.create(index=name, settings=settings, mappings=drawn.mappings):
            told["mappings that the cluster does not take"] += 1
            continue
        compare(index.client, index.url, name, drawn, told)
    assert told["values"] > 20 * SEEDS, told
    assert told["as arrays, refused"] == 0, told
    assert told["refused"] < told["read"], told


def compare(elastic: Elasticsearch, url: str, index: str, drawn: Drawn, told: Counter[str]) -> None:
    """Documents one by one, as arrays or not, and some of their columns or all."""
    lines = (f'{{"index":{{"_id":"{at}"}}}}\n{json.dumps(drawn.document())}\n' for at in range(20))
    elastic.bulk(index=index, body="".join(lines), refresh=True)
    known = [*flat(drawn.mappings["properties"])]
    paths = [at for at, mapping in known if "properties" not in mapping]
    hits = elastic.search(index=index, size=100, fields=paths)["hits"]["hits"]
    for hit in hits:
        every = [*drawn.mappings["properties"]]
        columns = every if drawn.draw.random() < 0.7 else drawn.draw.sample(every, 1)
        arrays = [at for at, _ in known if drawn.draw.random() < 0.5]
        wanted = [
            (path, value)
            for path, value in leaves(hit.get("fields", {}))
            if column_of(path, every) in columns and not is_shown_object(value)
        ]
        for how, lists in ("as arrays, ", [at for at, _ in known]), ("", arrays):
            try:
                row = read(url, index, hit["_id"], columns, lists)
            except ValueUnreadable:
                told[f"{how}refused"] += 1
            else:
                told["read"] += 1
                told["values"] += len(wanted)
                assert Counter(leaves(row)) == Counter(wanted), (drawn.mappings, hit, row)


def read(url: str, index: str, name: str, columns: list[str], arrays: list[str]) -> dict[str, Any]:
    given = {"arrayFields": ",".join(arrays)} if arrays else {}
    query = json.dumps({"ids": {"values": [name]}})
    made = source(url, index, query=query, columns=",".join(columns), **given)
    (row,) = (row for one in made.splits() for batch in made.read(one) for row in batch.to_pylist())
    return row
