"""``sparkonce letters``: look at dead letters, write them again, delete them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from sparkonce.errors import OptionError, UnsupportedQuery, in_one_line
from sparkonce.letterbox import KeepsLetters, Kind, Letterbox
from sparkonce.operate.admin import Admin
from sparkonce.operate.arguments import admin_of, as_json, pair, with_options, yes
from sparkonce.operate.checkup import read_schema
from sparkonce.operate.replaying import MOST, Replay
from sparkonce.registry import path_for
from sparkonce.sink import open_sink
from sparkonce.suggestions import suggestion

SHOWN = 20
"""Letters that are shown unless --limit says otherwise."""


@click.command()
@click.argument("url")
@click.argument("place", required=False)
@with_options
@click.option("--sink", help="Of this sink alone.")
@click.option("--limit", default=SHOWN, show_default=True, help="Show so many letters.")
@click.option("--delete", is_flag=True, help="Delete the letters in PLACE.")
@click.option("--replay", is_flag=True, help="Write the letters in PLACE again, and delete them.")
@click.option("--schema", help="With --replay: of the query that wrote them, as check takes it.")
@click.option("--lacking", multiple=True, metavar="COLUMN", help="A column that rows may lack.")
@click.option("--without", multiple=True, metavar="COLUMN", help="A column to leave out.")
@yes
@as_json
def letters(url: str, place: str | None, given: tuple[str, ...], **how: Any) -> None:
    """Show rows that were put aside, by place, sink and reason; or those in PLACE, one by one.

    With --replay their rows are written by the options of a query (-o dbtable=orders -o key=id),
    each once, whatever fails meanwhile. Mend first what their reasons name.
    """
    admin = admin_of(url, given)
    if place is None:
        _show_kinds(_boxes(admin), how["as_json"])
        return
    box = _box(admin, place)
    kinds = [kind for kind in box.kinds() if how["sink"] in (None, kind.sink)]
    if how["replay"]:
        _replay(box, kinds, url, given, how)
    elif how["delete"]:
        _delete(box, kinds, how)
    else:
        _show(box, how)


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
    found = boxes.get(place) or next(
        (box for name, box in boxes.items() if name.rpartition(".")[2] == place), None
    )
    if found is None:
        raise OptionError(
            f"No dead letters are in {place!r}",
            why=f"they are in {', '.join(boxes) or 'no place of this store'}",
            todo=suggestion(place, list(boxes)) or "name one of those that sparkonce letters lists",
        )
    return found


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
        about = f"{one.at}  epoch {one.epoch} of {one.sink}, into {one.target}"
        lines = about, f"  why  {one.reason}", f"  key  {one.key}", f"  row  {one.row}"
        click.echo("\n".join(map(in_one_line, lines)))


def _delete(box: Letterbox, kinds: Sequence[Kind], how: dict[str, Any]) -> None:
    left = total = sum(kind.letters for kind in kinds)
    if total and not how["yes"]:
        click.confirm(f"Delete {total:,} letters?", abort=True, err=how["as_json"])
    # Not more than were asked about: others may come meanwhile.
    while left > 0 and (found := box.read(how["sink"], min(MOST, left))):
        box.drop([(one.id, one.at) for one in found])
        left -= len(found)
    _told("deleted", total - left, how["as_json"])


def _replay(
    box: Letterbox, kinds: Sequence[Kind], url: str, given: tuple[str, ...], how: dict[str, Any]
) -> None:
    schema = read_schema(how["schema"]) if how["schema"] else None
    if schema is None:
        raise OptionError(
            "--replay needs --schema",
            why="a letter has the text of a row, and not its types",
            todo="give the schema of the query that wrote it, as names and types or as the JSON of"
            " df.schema.json()",
        )
    into = open_sink(path_for(url), {"url": url, **dict(map(pair, given))}, schema)
    total = sum(kind.letters for kind in kinds)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("letters", total=total)
        for whose in dict.fromkeys(kind.sink for kind in kinds):
            replay = Replay(box, whose, into, schema, how["lacking"], how["without"])
            replay.run(lambda more: progress.advance(bar, more))
    _told("written again", total, how["as_json"])


def _told(what: str, count: int, as_json: bool) -> None:
    said = {what.replace(" ", "_"): count}
    click.echo(json.dumps(said) if as_json else f"{count:,} letters {what}.")
