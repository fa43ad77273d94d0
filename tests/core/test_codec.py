"""Frozen dataclasses as JSON values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from sparkonce import codec
from sparkonce.codec import Variant


@dataclass(frozen=True)
class Circle(Variant):
    radius: float


@dataclass(frozen=True)
class Square(Variant):
    side: int
    name: str | None = None


@dataclass(frozen=True)
class Point:
    x: int
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drawing:
    first: Point
    shape: Circle | Square
    points: tuple[Point, ...] = ()
    parts: tuple[str | tuple[str, int], ...] = ()
    by_name: Mapping[str, Point] = field(default_factory=dict)
    color: Literal["red", "blue"] = "red"
    filled: bool = False
    limit: int | None = None
    settings: Mapping[str, Any] | None = None


SMALL = Drawing(Point(1), Circle(2.0))
LARGE = Drawing(
    first=Point(1, ("a", "b")),
    shape=Square(4, "it"),
    points=(Point(1), Point(2)),
    parts=("text", ("column", 7)),
    by_name={"one": Point(3)},
    color="blue",
    filled=True,
    limit=5,
    settings={"deep": [{"er": None}]},
)


@pytest.mark.parametrize("drawing", [SMALL, LARGE])
def test_a_record_comes_back_from_json_as_it_was(drawing: Drawing) -> None:
    assert codec.load(Drawing, json.loads(json.dumps(codec.dump(drawing)))) == drawing


def test_defaults_are_left_out_and_a_variant_has_its_name() -> None:
    assert codec.dump(SMALL) == {"first": {"x": 1}, "shape": {"is": "circle", "radius": 2.0}}


@pytest.mark.parametrize(
    "change",
    [
        {"other": 1},
        {"first": {"x": 1, "y": 2}},
        {"first": {}},
        {"first": None},
        {"first": {"x": "1"}},
        {"first": {"x": True}},
        {"first": {"x": 1.0}},
        {"first": {"x": 1, "tags": "ab"}},
        {"first": {"x": 1, "tags": ["a", 1]}},
        {"shape": {"is": "point", "x": 1}},
        {"shape": {"radius": 1.0}},
        {"shape": {"is": "circle", "radius": float("nan")}},
        {"points": [1]},
        {"parts": [["column"]]},
        {"parts": [["column", "7"]]},
        {"by_name": []},
        {"by_name": {"one": 3}},
        {"color": "green"},
        {"filled": 1},
        {"limit": "5"},
        {"settings": []},
    ],
)
def test_what_is_unknown_missing_or_of_another_type_is_an_error(change: dict[str, Any]) -> None:
    with pytest.raises(codec.UNREADABLE):
        codec.load(Drawing, {**codec.dump(SMALL), **change})
