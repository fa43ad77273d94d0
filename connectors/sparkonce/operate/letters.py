"""``sparkonce letters``: look at dead letters, move them, delete them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from sparkonce.errors import OptionError, UnsupportedQuery, in_one_line
from sparkonce.letterbox import KeepsLetters, Letterbox
from sparkonce.operate.admin import Admin
from sparkonce.operate.arguments import as_json, over_store, yes
from sparkonce.operate.letter_folder import AT_ONCE, LetterFolder
from sparkonce.suggestions import suggestion

SHOWN = 20
"""Letters that are shown unless --limit says otherwise."""


@click.command()
@over_store
@click.argument("place", required=False)
@click.option("--sink", help="Of this sink alone.")
@click.option("--limit", default=SHOWN, show_default=True, help="Show so many letters.")
@click.option(
    "--move",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Move the letters in PLACE into a directory, as JSON lines; see --sink.",
)
@click.option("--delete", is_flag=True, help="Delete the letters in PLACE; see --sink, --id.")
@click.option("--id", "ids", multiple=True, help="With --delete: this letter alone.")
@yes
@as_json
def letters(admin: Admin, place: str | None, **how: Any) -> None:
    """Show rows that were put aside, by place, sink and reason; or those in PLACE, one by one.

    docs/dead-letters.md shows how they are mended and written again.
    """
    if how["delete"] and how["move"]:
        raise click.UsageError("--move deletes what it has moved; leave --delete out.")
    if place is None and (how["delete"] or how["move"]):
        raise click.UsageError("--move and --delete need a PLACE; sparkonce letters lists them.")
    if place is None:
        _show_kinds(_boxes(admin), how["as_json"])
    elif how["move"]:
        _move(_box(admin, place), how)
    elif how["delete"]:
        _delete(_box(admin, place), how)
    else:
        _show(_box(admin, place), how)


def _boxes(admin: Admin) -> Sequence[Letterbox]:
    if not isinstance(admin.store, KeepsLetters):
        raise UnsupportedQuery(
            "This store keeps no dead letters",
            why="its connector has no option onBadRow=deadLetter",
            todo="ask a store of another kind",
        )
    return admin.store.letterboxes()


def _box(admin: Admin, place: str) -> Letterbox:
    boxes = {box.name: box for box in _boxes(admin)}
    named = [box for name, box in boxes.items() if place in (name, name.rpartition(".")[2])]
    if not named:
        raise OptionError(
            f"No dead letters are in {place!r}",
            why=f"they are in {', '.join(boxes) or 'no place of this store'}",
            todo=suggestion(place, list(boxes)) or "name one of those that sparkonce letters lists",
        )
    return boxes.get(place) or named[0]


def _show_kinds(boxes: Sequence[Letterbox], as_json: bool) -> None:
    found = [(box.name, kind) for box in boxes for kind in box.kinds()]
    if as_json:
        told = [{"place": place, **kind._asdict()} for place, kind in found]
        click.echo(json.dumps(told, indent=2))
        return
    for place, kind in found:
        about = f"{kind.letters:,} letters of {kind.sink}, the last at {kind.last}"
        click.echo(f"{click.style(place, bold=True)}: {about}\n  {in_one_line(kind.reason)}")
    if not found:
        click.echo("There are no dead letters.")


def _show(box: Letterbox, how: dict[str, Any]) -> None:
    found = box.read(how["sink"], how["limit"])
    if how["as_json"]:
        click.echo(json.dumps([one.to_json() for one in found], indent=2))
        return
    for one in found:
        about = f"{one.at}  id {one.id}, epoch {one.epoch} of {one.sink}, into {one.target}"
        lines = about, f"  why  {one.reason}", f"  key  {one.key}", f"  row  {one.row}"
        click.echo("\n".join(map(in_one_line, lines)))


def _move(box: Letterbox, how: dict[str, Any]) -> None:
    total, moved = _count(box, how["sink"]), 0
    _confirm(f"Move {total:,} letters of {box.name} into {how['move']}?", total, how)
    for some in LetterFolder(how["move"]).take(box, how["sink"], total):
        moved += some
        if not how["as_json"]:
            click.echo(f"{moved:,} of {total:,} letters moved.", err=True)
    click.echo(json.dumps({"moved": moved}) if how["as_json"] else f"{moved:,} letters moved.")


def _confirm(question: str, total: int, how: dict[str, Any]) -> None:
    if total and not how["yes"]:
        click.confirm(question, abort=True, err=how["as_json"])


def _delete(box: Letterbox, how: dict[str, Any]) -> None:
    ids: tuple[str, ...] = how["ids"]
    left = total = len(ids) or _count(box, how["sink"])
    _confirm(f"Delete {total:,} letters in {box.name}?", total, how)
    if ids:
        box.drop(ids)
        left = 0
    # Not more than were asked about: others may come meanwhile.
    while left > 0 and (found := box.read(how["sink"], min(AT_ONCE, left))):
        box.drop([one.id for one in found])
        left -= len(found)
    gone = total - left
    click.echo(json.dumps({"deleted": gone}) if how["as_json"] else f"{gone:,} letters deleted.")


def _count(box: Letterbox, sink: str | None) -> int:
    return sum(kind.letters for kind in box.kinds() if sink in (None, kind.sink))
