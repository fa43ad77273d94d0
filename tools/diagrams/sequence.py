"""A sequence diagram as SVG, from lines of text.

::

    title: An epoch
    actors: task, driver, store
    task -> store: stage chunks
    driver -x store: decide, which never arrives
    driver dies
    note driver: it replays the epoch
    == the driver starts again ==
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

LEFT, LANE, TOP, STEP = 90, 210, 74, 34
ARROW = re.compile(r"(.+?) (->|-x) (.+?): (.+)")
NOTE = re.compile(r"note (.+?): (.+)")
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2933; }
  .title { font-weight: 600; font-size: 15px; }
  .actor { fill: #e8eef7; stroke: #9fb3c8; }
  .lane { stroke: #9fb3c8; stroke-dasharray: 3 4; }
  .arrow { stroke: #334e68; stroke-width: 1.5; }
  .lost { stroke: #c0392b; }
  .cross { fill: #c0392b; font-weight: 700; font-size: 15px; }
  .note { fill: #fff8e1; stroke: #e0c36a; }
  .break { stroke: #cbd5e0; }
  .small { font-size: 12px; fill: #52606d; }
"""


class Diagram(NamedTuple):
    """What a text says."""

    title: str
    actors: list[str]
    steps: list[str]


def parse(text: str) -> Diagram:
    """Read a text.

    Raises:
        ValueError: a step is none, or names nobody of the actors.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    title, actors = lines[0].removeprefix("title: "), lines[1].removeprefix("actors: ").split(", ")
    diagram = Diagram(title, actors, lines[2:])
    for step in diagram.steps:
        for actor in _named(step):
            if actor not in actors:
                raise ValueError(f"{actor!r} of {step!r} is none of {actors}")
    return diagram


def svg(diagram: Diagram) -> str:
    """The picture."""
    width = LEFT * 2 + LANE * (len(diagram.actors) - 1)
    height = TOP + STEP * (len(diagram.steps) + 1)
    parts = [*_frame(diagram, height)]
    for number, step in enumerate(diagram.steps):
        parts += _step(diagram.actors, step, TOP + STEP * (number + 1) - 8, width)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' role="img" aria-label="{escape(diagram.title)}">\n<style>{STYLE}</style>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n{body}\n</svg>\n'
    )


def _named(step: str) -> Sequence[str]:
    if found := ARROW.fullmatch(step):
        return found[1], found[3]
    if found := NOTE.fullmatch(step):
        return (found[1],)
    if step.endswith(" dies"):
        return (step.removesuffix(" dies"),)
    if re.fullmatch("== .+ ==", step):
        return ()
    raise ValueError(f"{step!r} is no step")


def _frame(diagram: Diagram, height: int) -> Iterator[str]:
    yield _text(12, 22, diagram.title, "title", "start")
    for number, actor in enumerate(diagram.actors):
        x = LEFT + LANE * number
        yield f'<line class="lane" x1="{x}" y1="{TOP - 14}" x2="{x}" y2="{height - 10}"/>'
        yield f'<rect class="actor" x="{x - 60}" y="36" width="120" height="24" rx="4"/>'
        yield _text(x, 53, actor)


def _step(actors: Sequence[str], step: str, y: int, width: int) -> Iterator[str]:
    if found := ARROW.fullmatch(step):
        source, kind, target, told = found.groups()
        yield from _arrow(*(LEFT + LANE * actors.index(one) for one in (source, target)), y, kind)
        middle = LEFT + LANE * (actors.index(source) + actors.index(target)) / 2
        yield _text(middle, y - 6, told, "small")
    elif found := NOTE.fullmatch(step):
        x, length = LEFT + LANE * actors.index(found[1]), 6.6 * len(found[2]) + 16
        x = min(max(x, length / 2 + 4), width - length / 2 - 4)
        yield f'<rect class="note" x="{x - length / 2:.0f}" y="{y - 16}" width="{length:.0f}"' + (
            ' height="22" rx="3"/>'
        )
        yield _text(x, y, found[2], "small")
    elif step.endswith(" dies"):
        x = LEFT + LANE * actors.index(step.removesuffix(" dies"))
        yield _text(x, y, "✕", "cross") + _text(x + 12, y, "dies", "small", "start")
    else:
        yield f'<line class="break" x1="8" y1="{y - 4}" x2="{width - 8}" y2="{y - 4}"/>'
        told = step.strip("= ")
        half = 3.6 * len(told) + 8
        yield f'<rect x="{width / 2 - half:.0f}" y="{y - 14}" width="{2 * half:.0f}"' + (
            ' height="20" fill="#ffffff"/>'
        )
        yield _text(width / 2, y, told, "small")


def _arrow(start: int, end: int, y: int, kind: str) -> Iterator[str]:
    """A request or an answer; a lost one ends in a cross half-way."""
    sign = 1 if end > start else -1
    lost = kind != "->"
    tip = (start + end) // 2 + sign * 60 if lost else end - sign * 3
    yield f'<line class="arrow{" lost" * lost}" x1="{start}" y1="{y}" x2="{tip}" y2="{y}"/>'
    if lost:
        yield _text(tip + sign * 8, y + 5, "✕", "cross")
        return
    points = f"{tip},{y} {tip - sign * 8},{y - 4} {tip - sign * 8},{y + 4}"
    yield f'<polygon points="{points}" fill="#334e68"/>'


def _text(x: float, y: float, told: str, kind: str = "", anchor: str = "middle") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}">{escape(told)}</text>'
