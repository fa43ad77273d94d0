"""What happens beside requests: drivers begin, commit, abort and die; operators give commands."""

from __future__ import annotations

from collections.abc import Callable

from tools.model import names
from tools.model.script import Script

from sparkonce.protocol import Receipt
from sparkonce.tck.explore.tape import Line


class Events:
    """Makes lines of events.

    Args:
        script: gets them.
    """

    def __init__(self, script: Script) -> None:
        self.script = script
        self._refused: set[int] = set()
        self._refuses = False

    def take(self, line: Line) -> None:
        """One event."""
        name = f"on_{line.what}".replace(" ", "_")
        handler: Callable[[Line], None] | None = getattr(self, name, None)
        if handler is not None and not names.is_other(line):
            handler(line)

    def on_begins(self, line: Line) -> None:
        """A driver begins an epoch."""
        query, epoch = names.QUERIES[line.more["query"]], line.more["epoch"]
        self.script.eyes.number(line.more["run"])
        self.script.add("begins", d=self.script.place(line.who), q=query, e=epoch)

    def on_gives_up(self, line: Line) -> None:
        """Spark waits for a commit no more."""
        self.script.modes[f"commit {names.key(line.who)}"] = "given up"

    def on_commits(self, line: Line) -> None:
        """A commit begins."""
        receipts: list[Receipt] = line.more["receipts"]
        self.script.modes[line.who] = "commit"
        ordered = sorted(receipts, key=lambda one: one.task.partition)
        d = self.script.place(line.who)
        chosen = self.script.eyes.known(one.task.attempt for one in ordered)
        self.script.add("commits", d=d, **{"as": chosen})

    def on_commits_no_more(self, line: Line) -> None:
        """It is through."""
        self.script.modes.pop(line.who, None)
        if line.who.startswith("commit "):
            self.script.end(line.who)

    def _refuse_commit(self, line: Line, mode: str) -> None:
        error = line.more["error"]
        d = self.script.place(line.who)
        self.script.add("refused", d=d, why=names.WHYS.get(error, error))
        if line.who.startswith("commit ") or mode == "recover":
            self.script.end(line.who)

    def on_refused(self, line: Line) -> None:
        """It was refused."""
        mode = self.script.modes.pop(line.who, "")
        if mode in ("commit", "recover"):
            self._refuse_commit(line, mode)

    def on_dies(self, line: Line) -> None:
        """Its process died."""
        self.script.modes.pop(line.who, None)
        self.script.end(line.who)

    def on_aborts(self, line: Line) -> None:
        """An abort begins."""
        self.script.modes[line.who] = "abort"

    def on_aborts_no_more(self, line: Line) -> None:
        """It is over."""
        self.script.modes.pop(line.who, None)

    def on_notes(self, line: Line) -> None:
        """Spark notes the epoch."""
        self.script.add("notes", d=self.script.place(line.who))

    def on_ends(self, line: Line) -> None:
        """A run is over."""
        self.script.modes.pop(line.who, None)
        its_commit = f"commit {names.key(line.who)}"
        if self.script.lives(line.who) and not self.script.modes.get(its_commit):
            self.script.end(line.who)

    def on_gc(self, line: Line) -> None:
        """An operator cleans."""
        self.script.modes[line.who] = "gc"

    def on_forget(self, line: Line) -> None:
        """One forgets a sink."""
        self.script.modes[line.who] = "forget"

    def on_recover(self, line: Line) -> None:
        """One finishes an epoch."""
        self.script.modes[line.who] = "recover"

    def on_refuses(self, line: Line) -> None:
        """The server refuses rows."""
        self._refused = set(self.script.eyes.known(line.more["attempts"]))

    def begin_to_refuse(self) -> None:
        """Let the server refuse rows from now on, if it is to."""
        if self._refused:
            self.script.add("refuses", **{"as": self._refused})
            self._refused, self._refuses = set(), True

    def on_accepts(self, _: Line) -> None:
        """It does no more."""
        if self._refuses:
            self.script.add("accepts")
        self._refuses = False

    def on_keeps(self, _: Line) -> None:
        """This state may come back."""
        self.script.eyes.keep()
        self.script.add("keeps")

    def on_loses(self, line: Line) -> None:
        """It does."""
        if line.more["lost"] == "suffix":
            self.script.eyes.lose()
        if self.script.eyes.changed(line):
            self.script.add("loses")
