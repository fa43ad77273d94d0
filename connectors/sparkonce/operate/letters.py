"""``sparkonce letters``: shows, moves and deletes dead letters."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

from sparkonce.errors import OptionError, SparkonceError, UnsupportedQuery, in_one_line
from sparkonce.letterbox import KeepsLetters, Letterbox
from sparkonce.operate.admin import Admin
from sparkonce.operate.arguments import as_json, confirm, over_store, page, say, yes
from sparkonce.option_values import suggestion
from sparkonce.spark.lost_offsets import sync_directory

FILE_ROWS, BYTES_AT_ONCE = 500, 64 * 1024 * 1024
"""Most letters, and bytes of rows, of one read and one file."""

FIRST = 10
"""Letters of the first read, when their size is still unknown."""


class LetterFolder:
    """A directory that receives the letters of one sink, while this command holds its lock."""

    def __init__(self, path: Path) -> None:
        self.path, self.sink = path, None  # none yet
        self._known: set[bytes] = set()
        for line in self._lines():
            letter = json.loads(line)
            self.sink = letter["sink"]
            self._known.add(_digest(letter))

    def take(self, box: Letterbox, sink: str, most: int) -> Iterator[tuple[int, int]]:
        """Move at most `most` letters here, as others may arrive meanwhile.

        Yields, step by step, how many letters are new, and how many the directory already had.

        Raises:
            SparkonceError: the directory has letters of another sink.
        """
        if self.sink not in (None, sink):
            raise SparkonceError(
                f"{self.path} has letters of sink {self.sink}",
                why="a stream that reads the directory would write both into the same target",
                todo=f"use another directory for {sink}",
            )
        some = FIRST
        while most > 0 and (found := box.read(sink, min(some, most))):
            # A letter that the directory already has: a command died before it deleted the letter,
            # or a driver died after it wrote the letter.
            letters = {_digest(letter): letter for letter in (one.to_json() for one in found)}
            new = [letter for digest, letter in letters.items() if digest not in self._known]
            if new:
                self._write(new)
            self._known.update(letters)
            box.drop([one.id for one in found])
            most -= len(found)
            yield len(new), len(found) - len(new)
            largest = max(len(one.row) for one in found)
            some = max(1, min(FILE_ROWS, BYTES_AT_ONCE // (largest + 1)))

    def _write(self, letters: Sequence[dict[str, object]]) -> None:
        """Write a complete file or none, under a name that never recurs."""
        draft = self.path / f".{uuid4().hex}"
        with draft.open("x") as file:
            for one in letters:
                file.write(f"{json.dumps(one)}\n")
            file.flush()
            os.fsync(file.fileno())
        draft.rename(self.path / f"letters-{time.time_ns()}-{uuid4().hex[:8]}.json")
        for directory in (self.path, self.path.parent):
            sync_directory(directory)

    def _lines(self) -> Iterator[str]:
        for path in self.path.glob("letters-*.json"):
            with path.open() as file:
                yield from file


@contextmanager
def _letter_folder(path: Path) -> Iterator[LetterFolder]:
    """A directory for letters, created if missing."""
    import fcntl  # missing on Windows

    try:
        path.mkdir(parents=True, exist_ok=True)
        with (path / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for draft in path.glob(".[0-9a-f]*"):  # of a command that died
                draft.unlink()
            yield LetterFolder(path)
    except BlockingIOError:
        raise SparkonceError(
            f"Another command moves letters into {path}",
            why="it holds the lock of the directory",
            todo="wait until it ends",
        ) from None
    except OSError as error:
        raise SparkonceError(
            f"Letters can't be moved into {path}: {error.strerror or error}",
            why="sparkonce deletes a letter only after it has written a file",
            todo="correct that, or use another directory; then run the command again",
        ) from None


def _digest(letter: dict[str, object]) -> bytes:
    """A digest that identifies a letter.

    Not the id alone, as ids restart in a recreated table. Time and reason are not part of it, as
    they may differ if a driver writes a letter again.
    """
    parts = [letter[name] for name in ("id", "sink", "epoch", "key", "row")]
    return sha256(json.dumps(parts).encode()).digest()


SHOWN = 20
"""Default number of shown letters; see --limit."""

AT_ONCE = 500
"""Letters that one request deletes."""

LISTED = "name one of those that sparkonce letters lists"


@click.command()
@over_store
@click.argument("place", required=False)
@click.option("--sink", help="Only letters of this sink.")
@click.option("--limit", type=int, help=f"Number of letters to show.  [default: {SHOWN}]")
@click.option(
    "--move",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Move the letters in PLACE into a directory, as JSON lines; see --sink.",
)
@click.option("--delete", is_flag=True, help="Delete the letters in PLACE; see --sink, --id.")
@click.option("--id", "ids", multiple=True, help="With --delete: only this letter.")
@yes
@as_json
def letters(admin: Admin, place: str | None, **how: Any) -> None:
    """Show dead letters by place, sink and reason; or those in PLACE, one by one.

    docs/dead-letters.md shows how to correct their rows and write them again.
    """
    _require_sense(place, how)
    if place is None:
        _show_kinds(_boxes(admin), how["as_json"])
        return
    box, acts = _box(admin, place), how["delete"] or how["move"]
    # Some stores read all letters to count them.
    counts = _counts(box) if how["sink"] or (acts and not how["ids"]) else Counter()
    if how["sink"]:
        _require_sink(admin, box, counts, how["sink"])
    if how["move"]:
        _move(box, counts, how)
    elif how["delete"]:
        _delete(box, counts, how)
    else:
        _show(box, how)


def _require_sense(place: str | None, how: dict[str, Any]) -> None:
    """Reject options that would have no effect."""
    acts = how["delete"] or how["move"]
    for wrong, what in (
        (how["delete"] and how["move"], "--move deletes the moved letters; omit --delete."),
        (place is None and acts, "--move and --delete need a PLACE; sparkonce letters lists them."),
        (place is None and how["sink"], "--sink needs a PLACE; sparkonce letters lists them."),
        (how["ids"] and not how["delete"], "--id needs --delete."),
        (acts and how["limit"] is not None, "--limit applies only to a list of letters."),
        (how["ids"] and how["sink"], "--id names a letter; omit --sink."),
    ):
        if wrong:
            raise click.UsageError(what)


def _boxes(admin: Admin) -> Sequence[Letterbox]:
    if not isinstance(admin.store, KeepsLetters):
        raise UnsupportedQuery(
            "This store keeps no dead letters",
            why="its connector has no option onBadRow=deadLetter",
            todo="use this command with a store of another kind",
        )
    return admin.store.letterboxes()


def _box(admin: Admin, place: str) -> Letterbox:
    boxes = {box.name: box for box in _boxes(admin)}
    named = [box for name, box in boxes.items() if place in (name, name.rpartition(".")[2])]
    if not named:
        raise OptionError(
            f"{place!r} has no dead letters",
            why=f"dead letters are in {', '.join(boxes) or 'no place of this store'}",
            todo=suggestion(place, list(boxes)) or LISTED,
        )
    return boxes.get(place) or named[0]


def _counts(box: Letterbox) -> Counter[str]:
    """How many letters each sink has."""
    counts: Counter[str] = Counter()
    for kind in box.kinds():
        counts[kind.sink] += kind.letters
    return counts


def _require_sink(admin: Admin, box: Letterbox, counts: Counter[str], sink: str) -> None:
    """Reject the name of an unknown sink; a known one may have no letters."""
    if sink not in counts and not admin.sink(sink).known:
        sinks = {*counts, *(one.name for one in admin.sinks())}
        raise OptionError(
            f"No sink is named {sink!r}",
            why=f"this name has no letters in {box.name}, and no ledger",
            todo=suggestion(sink, sorted(sinks)) or LISTED,
        )


def _show_kinds(boxes: Sequence[Letterbox], as_json: bool) -> None:
    found = [(box.name, kind) for box in boxes for kind in box.kinds()]
    if as_json:
        kinds = [{"place": place, **kind._asdict()} for place, kind in found]
        page(json.dumps(kinds, indent=2))
        return
    for place, kind in found:
        about = f"{kind.letters:,} letters of {kind.sink}, the last at {kind.last}"
        say(f"{click.style(in_one_line(place), bold=True)}: {about}")
        say(f"  {kind.reason}")
    if not found:
        say("This store has no dead letters.")


def _show(box: Letterbox, how: dict[str, Any]) -> None:
    found = box.read(how["sink"], SHOWN if how["limit"] is None else how["limit"])
    if how["as_json"]:
        page(json.dumps([one.to_json() for one in found], indent=2))
        return
    for one in found:
        about = f"{one.at}  id {one.id}, epoch {one.epoch} of {one.sink}, into {one.target}"
        for line in (about, f"  why  {one.reason}", f"  key  {one.key}", f"  row  {one.row}"):
            say(line)


def _move(box: Letterbox, counts: Counter[str], how: dict[str, Any]) -> None:
    sink = how["sink"] or _only(counts)
    total, moved, known = counts[sink], 0, 0
    _confirm(f"Move {total:,} letters of {box.name} into {how['move']}?", total, how)
    with _letter_folder(how["move"]) as folder:
        for new, old in folder.take(box, sink, total) if sink else ():
            moved, known = moved + new, known + old
            if not how["as_json"]:
                say(f"{moved + known:,} of {total:,} letters", err=True)
    if how["as_json"]:
        say(json.dumps({"moved": moved, "there": known}))
        return
    again = f" Deleted {known:,} from {box.name} that the folder already had." if known else ""
    say(f"{moved:,} letters moved.{again}")


def _only(counts: Counter[str]) -> str:
    """The sink of all letters; empty without letters."""
    if len(counts) > 1:
        raise click.UsageError(f"Name one with --sink: {', '.join(sorted(counts))}.")
    return next(iter(counts), "")


def _confirm(question: str, total: int, how: dict[str, Any]) -> None:
    if total and not how["yes"]:
        confirm(question, err=how["as_json"])


def _delete(box: Letterbox, counts: Counter[str], how: dict[str, Any]) -> None:
    ids: tuple[str, ...] = how["ids"]
    left = len(ids) or (counts[how["sink"]] if how["sink"] else counts.total())
    _confirm(f"Delete {left:,} letters in {box.name}?", left, how)
    gone = box.drop(ids) if ids else 0
    # Not more than the confirmed number: others may arrive meanwhile.
    while not ids and left > 0 and (found := box.read(how["sink"], min(AT_ONCE, left))):
        gone += box.drop([one.id for one in found])
        left -= len(found)
    say(json.dumps({"deleted": gone}) if how["as_json"] else f"{gone:,} letters deleted.")
