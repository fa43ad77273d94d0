"""Converts a schedule of the explorer to lines of docs/model/trace.tla."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tools.model import mapping
from tools.model.mapping import (
    KINDS,
    READING,
    Fields,
    StoreView,
    arrives,
    is_claim,
    is_heard,
    is_known,
    is_late,
    key,
    may_come,
    ordinal,
)

from sparkonce.exactly_once.ledger import from_record
from sparkonce.protocol import Receipt, Record, Task
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.tape import Line

PLACES = range(1, 10)
"""The places of drivers; each holds one driver at a time."""

COMMANDS = ("gc", "forget", "recover")
MODES = {"commits": "commit", "aborts": "abort"} | {one: one for one in COMMANDS}
"""By event, the activity of an actor after it."""


@dataclass
class Trace:
    """Lines of docs/model/trace.tla.

    Attributes:
        view: compares the store line by line.
        lines: the lines so far.
        modes: by actor, its activity: a commit, an abort, a command.
    """

    view: StoreView
    lines: list[Fields] = field(default_factory=list)
    modes: dict[str, str] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _refused: set[int] = field(default_factory=set)
    _refuses: bool = False
    _staged: set[tuple[str, int]] = field(default_factory=set)

    def add(self, act: str, **more: Any) -> None:
        """Add a line without a visible change of the store."""
        self.lines.append({"act": act, **more, "saw": {}})

    def place(self, driver: str) -> str:
        """The place of a driver: the first free one when it begins."""
        who = key(driver)
        if who not in self._places:
            self._places[who] = min(set(PLACES) - set(self._places.values()))
        return f"d{self._places[who]}"

    def lives(self, driver: str) -> bool:
        """Whether it has a place."""
        return key(driver) in self._places

    def end(self, driver: str) -> None:
        """End a driver, and free its place."""
        self.add("ends", d=self.place(driver))
        self._places.pop(key(driver), None)

    # -- events

    def event(self, line: Line) -> None:
        """One event."""
        if mapping.is_other(line):
            return
        if line.what in MODES:
            self.modes[line.who] = MODES[line.what]
        name = f"on_{line.what}".replace(" ", "_")
        handler: Callable[[Line], None] | None = getattr(self, name, None)
        if handler is not None:
            handler(line)

    def on_begins(self, line: Line) -> None:
        query, epoch = mapping.QUERIES[line.more["query"]], line.more["epoch"]
        self.view.number(line.more["run"])
        self.add("begins", d=self.place(line.who), q=query, e=epoch)

    def on_gives_up(self, line: Line) -> None:
        self.modes[f"commit {mapping.key(line.who)}"] = "given up"

    def on_commits(self, line: Line) -> None:
        receipts: list[Receipt] = line.more["receipts"]
        ordered = sorted(receipts, key=lambda one: one.task.partition)
        d = self.place(line.who)
        chosen = self.view.known(one.task.attempt for one in ordered)
        self.add("commits", d=d, **{"as": chosen})

    def on_commits_no_more(self, line: Line) -> None:
        self.modes.pop(line.who, None)
        if line.who.startswith("commit "):
            self.end(line.who)

    def _refuse_commit(self, line: Line, mode: str) -> None:
        error = line.more["error"]
        d = self.place(line.who)
        self.add("refused", d=d, why=mapping.WHYS.get(error, error))
        if line.who.startswith("commit ") or mode == "recover":
            self.end(line.who)

    def on_refused(self, line: Line) -> None:
        mode = self.modes.pop(line.who, "")
        if mode in ("commit", "recover"):
            self._refuse_commit(line, mode)

    def on_dies(self, line: Line) -> None:
        self.modes.pop(line.who, None)
        self.end(line.who)

    def on_aborts_no_more(self, line: Line) -> None:
        self.modes.pop(line.who, None)

    def on_notes(self, line: Line) -> None:
        self.add("notes", d=self.place(line.who))

    def on_ends(self, line: Line) -> None:
        self.modes.pop(line.who, None)
        its_commit = f"commit {mapping.key(line.who)}"
        if self.lives(line.who) and not self.modes.get(its_commit):
            self.end(line.who)

    def on_refuses(self, line: Line) -> None:
        self._refused = set(self.view.known(line.more["attempts"]))

    def begin_to_refuse(self) -> None:
        """Let the server refuse rows from now on, if the schedule says so."""
        if self._refused:
            self.add("refuses", **{"as": self._refused})
            self._refused, self._refuses = set(), True

    def on_accepts(self, _: Line) -> None:
        if self._refuses:
            self.add("accepts")
        self._refuses = False

    def on_keeps(self, _: Line) -> None:
        self.view.keep()
        self.add("keeps")

    def on_loses(self, line: Line) -> None:
        if line.more["lost"] == "suffix":
            self.view.lose()
        if self.view.changed(line):
            self.add("loses")

    # -- requests

    def request(self, line: Line, request: Request) -> None:
        """One request."""
        if mapping.is_other(line) or mapping.is_of_other(request):
            return
        self.view.count(line.store, request)
        if line.delivered:
            self._deliver(line, request)
        elif line.who.startswith("task "):
            self._ask_as_task(line, request)
        elif self.modes.get(line.who) in ("commit", "recover"):
            self._ask_as_driver(line, request)
        else:
            self._ask_aside(line, request)

    def _deliver(self, line: Line, request: Request) -> None:
        if self.view.differs(line) and not self.view.is_own_row(request):
            self.add("delivers", kinds=set(KINDS[request.name]), again=False)

    # -- tasks

    def _ask_as_task(self, line: Line, request: Request) -> None:
        if request.chunk is not None:
            self._stage(line, request.chunk.task.attempt, request.chunk.seq)
        elif request.name == "discard" and (arrives(line) or is_late(line)):
            for number in self.view.known(request.attempts):
                self.add("fails", a=number)
                if arrives(line):
                    self.add("delivers", kinds={"drop"}, again=may_come(line))

    def _stage(self, line: Line, attempt: str, seq: int) -> None:
        if (attempt, seq) in self._staged:  # a sender without a reply sends again
            if arrives(line) and self.view.differs(line):
                self.add("delivers", kinds={"stage"}, again=True)
        elif arrives(line) or is_late(line):
            how = {"arrives": arrives(line), "late": may_come(line)}
            self.add("stages", a=self.view.numbers[attempt], **how)
            if arrives(line):
                self._staged.add((attempt, seq))

    # -- commits

    def _ask_as_driver(self, line: Line, request: Request) -> None:
        d, name = self.place(line.who), request.name
        if name == "discard":
            self._drop(line, request)
        elif name in READING:
            before_a_drop = name == "read" and request.over and request.manifest is None
            if is_heard(line) and not before_a_drop:
                self.add("reads", d=d, of=_what_is_read(request))
        elif self.view.is_own_row(request):
            if arrives(line) and is_heard(line):  # the server may refuse it
                self.add("own row", d=d, kinds={"row"}, k=ordinal(request))
        else:
            how = {"arrives": arrives(line), "late": is_late(line), "heard": is_heard(line)}
            asked = {"kinds": set(KINDS[name]), "k": ordinal(request)}
            self.add("asks", d=d, **how, **asked)

    def _drop(self, line: Line, request: Request) -> None:
        about = {"x": mapping.name_of(request.sink), "as": set(self.view.known(request.attempts))}
        if is_late(line) and line.current and about["as"]:
            self.add("drops", arrives=False, again=True, **about)
        if arrives(line) and self.view.changed(line):
            self.add("drops", arrives=True, again=may_come(line), **about)

    # -- aborts and commands

    def _ask_aside(self, line: Line, request: Request) -> None:
        if request.name in READING or not (arrives(line) or (is_late(line) and line.current)):
            return
        if arrives(line) and not self.view.differs(line):
            return
        if request.name == "discard":
            self._drop(line, request)
            return
        kind = self._kind(request)
        self._emit(kind, request)
        if arrives(line):
            self.add("delivers", kinds={kind}, again=may_come(line))

    def _kind(self, request: Request) -> str:
        if request.name == "swap" and request.new is not None and not request.new.revision:
            return "free" if is_claim(request.sink) else "cut"
        return "doom"  # also a move of the revision that learns the outcome of one

    def _emit(self, kind: str, request: Request) -> None:
        """Add the line that sends a request before it arrives."""
        x = mapping.name_of(request.sink)
        if kind == "cut":
            self.add("leaves", x=x)
        elif request.name == "doom" and self.modes.get(request.actor.name) == "forget":
            self.add("forgets", x=x)
        elif kind == "doom":
            doomed = set(self.view.known(request.attempts))
            self.add("dooms", x=x, **{"as": doomed})


def _what_is_read(request: Request) -> str:
    if request.name != "read":
        return request.name
    if is_claim(request.sink):
        return "claim"
    # A decide reads the ledger only to return it.
    return "" if request.manifest is not None else mapping.name_of(request.sink)


NEVER = 1 << 30
ENDINGS = frozenset({"commits", "gives up", "aborts", "ends", "refused", "notes"})
"""The events at which a driver stops waiting for tasks."""


@dataclass
class Attempt:
    """An attempt of a task.

    Attributes:
        begins: the line before which it begins; `NEVER` if it has no effect.
        skips: whether it finds its epoch decided.
    """

    name: str
    task: Task
    driver: str
    size: int
    begins: int = NEVER
    skips: bool = False


def attempts(tape: Sequence[Line]) -> dict[str, Attempt]:
    """All attempts by name."""
    by, found = dict[str, Attempt](), dict[str, Attempt]()
    for at, line in enumerate(tape):
        if line.what == "task":
            task: Task = line.more["task"]
            one = Attempt(task.attempt, task, key(line.who), line.more["size"])
            by[line.more["by"]] = found[task.attempt] = one
        elif line.what == "read" and line.who in by and is_heard(line):
            _begin(by.pop(line.who), tape, at)
    return found


def _begin(one: Attempt, tape: Sequence[Line], at: int) -> None:
    one.skips, left = _has_decided(tape[at], one.task), _left(one, tape, at)
    # A late attempt that stages may have read earlier; a late attempt that skips has no effect.
    one.begins = NEVER if one.skips and left != at else left


def _left(one: Attempt, tape: Sequence[Line], at: int) -> int:
    """The line at which its driver stopped waiting for it, if earlier; else `at`."""
    waits = False
    for earlier, line in enumerate(tape[:at]):
        if key(line.who) != one.driver:
            continue
        if line.what == "begins":
            waits = line.more["epoch"] == one.task.epoch
        if waits and line.what in ENDINGS:
            return earlier
    return at


def _has_decided(line: Line, task: Task) -> bool:
    ledger = from_record(line.store["records"].get(task.sink, Record()), task.sink)
    return ledger is not None and ledger.has_decided(task.query_id, task.epoch)


def lines_of(tape: Sequence[Line], *, converging: bool) -> list[Fields]:
    """The lines, each with the changes of the store (`saw`)."""
    trace = Trace(StoreView(converging))
    tasks = attempts(tape).values()
    for at, line in enumerate(tape):
        for one in tasks:
            if one.begins == at and is_known(one.task.sink):
                trace.view.numbers[one.name] = len(trace.view.numbers) + 1
                how = {"size": one.size, "st": "skips" if one.skips else "runs"}
                trace.add("task", d=trace.place(one.driver), p=one.task.partition + 1, **how)
        before = len(trace.lines)
        # The server checks a row, not the witness that the request also has.
        if not (line.request and trace.view.is_witness(line.request)):
            trace.begin_to_refuse()
        if line.request is None:
            trace.event(line)
        else:
            trace.request(line, line.request)
        changes = trace.view.changed(line) if len(trace.lines) > before else {}
        if changes:
            trace.lines[-1]["saw"] = changes
        trace.view.pass_by(line.store, changes)
    return trace.lines
