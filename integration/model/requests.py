"""What actors ask of the store."""

from __future__ import annotations

from integration.model import names
from integration.model.names import KINDS, READING, arrives, is_claim, is_heard, is_late, may_come
from integration.model.script import Script
from integration.model.seen import ordinal

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
        self.eyes.count(line, request)
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
        if name == "discard" and not arrives(line):
            if is_late(line) and line.current:
                self._sweep(request)
            self.script.add("cleans", d=d, arrives=False)
        elif name == "discard" or (name in READING and not is_heard(line)):
            self.script.add("cleans", d=d, arrives=name == "discard")
        elif name == "read" and request.over and request.manifest is None:  # before a discard
            self.script.add("cleans", d=d, arrives=False)
        elif name in READING:
            self.script.add("reads", d=d, of=_what_is_read(request))
        elif self.eyes.is_own_row(request):
            if arrives(line) and is_heard(line):  # the server may refuse it
                self.script.add("own row", d=d, kinds={"row"}, k=ordinal(request))
        else:
            how = {"arrives": arrives(line), "late": is_late(line), "heard": is_heard(line)}
            asked = {"kinds": set(KINDS[name]), "k": ordinal(request)}
            self.script.add("asks", d=d, **how, **asked)

    def _sweep(self, request: Request) -> None:
        numbers = set(self.eyes.known(request.attempts))
        if numbers:
            self.script.add("sweeps", x=names.name_of(request.sink), **{"as": numbers})

    # -- aborts and commands

    def _ask_aside(self, line: Line, request: Request) -> None:
        if request.name in READING or not (arrives(line) or (is_late(line) and line.current)):
            return
        if arrives(line) and not self.eyes.differs(line):
            return
        kind = self._kind(request)
        self._emit(kind, request)
        if arrives(line):
            self.script.add("delivers", kinds={kind}, again=may_come(line))

    def _kind(self, request: Request) -> str:
        if request.name == "swap" and request.new is not None and not request.new.revision:
            return "free" if is_claim(request.sink) else "cut"
        if request.name == "discard":
            return "drop"
        forgets = self.script.modes.get(request.actor.name) == "forget"
        # Where all attempts are held nothing changes but the stamp.
        return "doom" if request.name == "doom" and (request.attempts or forgets) else "fence"

    def _emit(self, kind: str, request: Request) -> None:
        """What is on its way before it arrives."""
        who = request.actor.name
        mode = self.script.modes.get(who)
        acts = {"cut": "leaves", "fence": "touches"}
        if kind == "doom" and mode in ("forget", "swept"):
            self.script.add("forgets", x=names.name_of(request.sink))
        elif kind == "doom":
            doomed = set(self.eyes.known(request.attempts))
            self.script.add("dooms", x=names.name_of(request.sink), **{"as": doomed})
        elif kind in acts:
            self.script.add(acts[kind], x=names.name_of(request.sink))
        elif kind == "drop" and mode == "swept":
            self._sweep(request)
        elif kind == "drop" and mode == "forget":
            self.script.modes[who] = "swept"  # what came late goes in a step of its own


def _what_is_read(request: Request) -> str:
    if request.name != "read":
        return request.name
    if is_claim(request.sink):
        return "claim"
    # Within a decide the ledger is read only to give it back.
    return "" if request.manifest is not None else names.name_of(request.sink)
