"""What actors ask of the store."""

from __future__ import annotations

from tools.model import names
from tools.model.names import KINDS, READING, arrives, is_claim, is_heard, is_late, may_come
from tools.model.script import Script
from tools.model.seen import ordinal

from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.tape import Line


class Requests:
    """Makes lines of requests.

    Args:
        script: gets them.
    """

    def __init__(self, script: Script) -> None:
        self.script, self.eyes = script, script.eyes
        self._staged: set[tuple[str, int]] = set()

    def take(self, line: Line, request: Request) -> None:
        """One request."""
        if names.is_other(line) or names.is_of_other(request):
            return
        self.eyes.count(line.store, request)
        if line.delivered:
            self._deliver(line, request)
        elif line.who.startswith("task "):
            self._ask_as_task(line, request)
        elif self.script.modes.get(line.who) in ("commit", "recover"):
            self._ask_as_driver(line, request)
        else:
            self._ask_aside(line, request)

    def _deliver(self, line: Line, request: Request) -> None:
        if self.eyes.differs(line) and not self.eyes.is_own_row(request):
            self.script.add("delivers", kinds=set(KINDS[request.name]), again=False)

    # -- tasks

    def _ask_as_task(self, line: Line, request: Request) -> None:
        if request.chunk is not None:
            self._stage(line, request.chunk.task.attempt, request.chunk.seq)
        elif request.name == "discard" and (arrives(line) or is_late(line)):
            for number in self.eyes.known(request.attempts):
                self.script.add("fails", a=number)
                if arrives(line):
                    self.script.add("delivers", kinds={"drop"}, again=may_come(line))

    def _stage(self, line: Line, attempt: str, seq: int) -> None:
        if (attempt, seq) in self._staged:  # who got no answer sends again
            if arrives(line) and self.eyes.differs(line):
                self.script.add("delivers", kinds={"stage"}, again=True)
        elif arrives(line) or is_late(line):
            how = {"arrives": arrives(line), "late": may_come(line)}
            self.script.add("stages", a=self.eyes.numbers[attempt], **how)
            if arrives(line):
                self._staged.add((attempt, seq))

    # -- commits

    def _ask_as_driver(self, line: Line, request: Request) -> None:
        d, name = self.script.place(line.who), request.name
        if name == "discard":
            self._drop(line, request)
        elif name in READING:
            before_a_drop = name == "read" and request.over and request.manifest is None
            if is_heard(line) and not before_a_drop:
                self.script.add("reads", d=d, of=_what_is_read(request))
        elif self.eyes.is_own_row(request):
            if arrives(line) and is_heard(line):  # the server may refuse it
                self.script.add("own row", d=d, kinds={"row"}, k=ordinal(request))
        else:
            how = {"arrives": arrives(line), "late": is_late(line), "heard": is_heard(line)}
            asked = {"kinds": set(KINDS[name]), "k": ordinal(request)}
            self.script.add("asks", d=d, **how, **asked)

    def _drop(self, line: Line, request: Request) -> None:
        about = {"x": names.name_of(request.sink), "as": set(self.eyes.known(request.attempts))}
        if is_late(line) and line.current and about["as"]:
            self.script.add("drops", arrives=False, again=True, **about)
        if arrives(line) and self.eyes.changed(line):
            self.script.add("drops", arrives=True, again=may_come(line), **about)

    # -- aborts and commands

    def _ask_aside(self, line: Line, request: Request) -> None:
        if request.name in READING or not (arrives(line) or (is_late(line) and line.current)):
            return
        if arrives(line) and not self.eyes.differs(line):
            return
        if request.name == "discard":
            self._drop(line, request)
            return
        kind = self._kind(request)
        self._emit(kind, request)
        if arrives(line):
            self.script.add("delivers", kinds={kind}, again=may_come(line))

    def _kind(self, request: Request) -> str:
        if request.name == "swap" and request.new is not None and not request.new.revision:
            return "free" if is_claim(request.sink) else "cut"
        return "doom"  # also a move that learns what became of one

    def _emit(self, kind: str, request: Request) -> None:
        """What is on its way before it arrives."""
        x = names.name_of(request.sink)
        if kind == "cut":
            self.script.add("leaves", x=x)
        elif request.name == "doom" and self.script.modes.get(request.actor.name) == "forget":
            self.script.add("forgets", x=x)
        elif kind == "doom":
            doomed = set(self.eyes.known(request.attempts))
            self.script.add("dooms", x=x, **{"as": doomed})


def _what_is_read(request: Request) -> str:
    if request.name != "read":
        return request.name
    if is_claim(request.sink):
        return "claim"
    # Within a decide the ledger is read only to give it back.
    return "" if request.manifest is not None else names.name_of(request.sink)
