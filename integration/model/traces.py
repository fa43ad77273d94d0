"""A schedule of the explorer as lines of docs/model/trace.tla."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkonce.protocol import Receipt, Record, Task
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.tape import Line
from sparkonce.tck.simulation.oracles import WITNESS

Fields = dict[str, Any]

QUERIES = {"a": "a", "n": "b"}
"""Names of queries in the explorer, and in the model."""

WHYS = {
    "ConcurrentDriver": "Concurrent",
    "CheckpointReplaced": "Replaced",
    "QueryRetired": "Retired",
    "StagedDataMissing": "Missing",
    "StoreLostData": "Lost",
    "SinkBehindCheckpoint": "SinkBehind",
    "CheckpointBehindSink": "Behind",
    "RowRefused": "Refused",
    "StoreUnreachable": "Unreachable",
}

NEVER = 1 << 30
ENDINGS = frozenset({"commits", "gives up", "aborts", "ends", "refused", "notes"})
"""With what a driver stops waiting for tasks."""

READING = frozenset({"read", "names", "staged", "check", "look", "fetch"})
WRITES = frozenset({"own", "retire", "replay", "decide", "finish", "fence", "claim"})
KINDS = {
    "swap": WRITES | {"cut", "free"},
    "publish": {"decide"},
    "decide": {"decide"},
    "apply": {"apply"},
    "update": {"row"},
    "mark": {"mark"},
    "fence": {"draw"},
    "stage": {"stage"},
    "doom": {"doom"},
    "discard": {"drop"},
}
"""Which requests of the model those of a store may be."""


class OutsideError(Exception):
    """The schedule has something that the model does not."""


@dataclass
class Attempt:
    """An attempt of a task: where it begins in the lines, if it ever does."""

    name: str
    task: Task
    driver: str
    size: int
    begins: int = -1
    skips: bool = False


def _key(actor: str) -> str:
    return actor.partition(" ")[2] or actor


@dataclass
class Transcript:
    """Makes lines of a tape.

    Attributes:
        tape: the lines of the explorer.
        converging: whether the store is.
    """

    tape: list[Line]
    converging: bool
    attempts: dict[str, Attempt] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)
    made: list[Fields] = field(default_factory=list)
    seen: Fields = field(default_factory=dict)
    chunks: list[tuple[str, int]] = field(default_factory=list)
    kept: list[tuple[str, int]] = field(default_factory=list)
    staged: set[tuple[str, int]] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    refuses: bool = False
    witnesses: int = 0
    stamps: dict[str, str] = field(default_factory=dict)

    def lines(self) -> list[Fields]:
        """All of them, each with what changed in the store.

        Raises:
            OutsideError: it has something that the model does not have.
        """
        self._find_attempts()
        for at, line in enumerate(self.tape):
            self._begin_before(at)
            before = len(self.made)
            self._take(line)
            self.witnesses, self.stamps = line.store["rows"].count(WITNESS), _stamps(line)
            if len(self.made) > before:
                self._look(line)
        return self.made

    # -- tasks

    def _find_attempts(self) -> None:
        """Where each begins: where it reads the ledger, or before its driver goes on without it."""
        by: dict[str, Attempt] = {}
        for at, line in enumerate(self.tape):
            if line.what == "task":
                task: Task = line.more["task"]
                one = Attempt(task.attempt, task, _key(line.who), line.more["size"])
                by[line.more["by"]] = self.attempts[task.attempt] = one
            elif line.what == "read" and line.who in by and _answered(line):
                one = by[line.who]
                if one.begins < 0:
                    one.skips, one.begins = _has_decided(line, one.task), self._left(one, at)
                    if one.skips and one.begins != at:
                        one.begins = NEVER

    def _left(self, one: Attempt, at: int) -> int:
        """Where its driver stopped waiting for it, if that was before."""
        begun = False
        for earlier, line in enumerate(self.tape[:at]):
            if _key(line.who) != one.driver:
                continue
            if line.what == "begins":
                begun = line.more["epoch"] == one.task.epoch
            if begun and line.what in ENDINGS:
                return earlier
        return at

    def _begin_before(self, at: int) -> None:
        for one in self.attempts.values():
            if one.begins == at and one.name not in self.numbers and self._is_known(one.task.sink):
                self.numbers[one.name] = len(self.numbers) + 1
                self._add(
                    "task",
                    d=self._slot(one.driver),
                    p=one.task.partition + 1,
                    size=one.size,
                    st="skips" if one.skips else "runs",
                    saw={},
                )

    # -- names

    def _slot(self, driver: str) -> str:
        if driver not in self.slots:
            free = set(range(1, 20)) - set(self.slots.values())
            self.slots[driver] = min(free)
        return f"d{self.slots[driver]}"

    @staticmethod
    def _is_known(sink: str) -> bool:
        return sink.partition("@")[0] in (*QUERIES, "orders")

    @staticmethod
    def _name(sink: str) -> str:
        name = sink.partition("@")[0]
        return "s" if name == "orders" else QUERIES[name]

    def _numbers(self, attempts: Any) -> list[int]:
        return [self.numbers[one] for one in attempts if one in self.numbers]

    def _add(self, act: str, **more: Any) -> None:
        self.made.append({"act": act, **more})

    # -- what happened

    def _take(self, line: Line) -> None:
        request = line.request
        # The server looks at a row, not at the witness which is sent with it.
        if not (request and request.name == "update" and self._is_witness(request)):
            self._refuse()
        if line.request is not None:
            self._ask(line, line.request)
            return
        handler: Callable[[Line], None] = getattr(self, "_" + line.what.replace(" ", "_"))
        handler(line)

    def _scenario(self, line: Line) -> None:
        pass

    def _begins(self, line: Line) -> None:
        if line.more["query"] not in QUERIES:
            return
        d = self._slot(_key(line.who))
        self._add("begins", d=d, q=QUERIES[line.more["query"]], e=line.more["epoch"])

    def _task(self, line: Line) -> None:
        pass

    def _other(self, line: Line) -> bool:
        return _key(line.who).startswith("c")

    def _gives_up(self, line: Line) -> None:
        if not self._other(line):
            self.modes[f"commit {_key(line.who)}"] = "given up"

    def _commits(self, line: Line) -> None:
        if self._other(line):
            return
        receipts: list[Receipt] = line.more["receipts"]
        self.modes[line.who] = "commit"
        ordered = sorted(receipts, key=lambda one: one.task.partition)
        d = self._slot(_key(line.who))
        self._add("commits", d=d, **{"as": self._numbers(one.task.attempt for one in ordered)})
        if line.who.startswith("commit "):
            self._saw_nothing()
            self._add("gives up", d=d)

    def _saw_nothing(self) -> None:
        self.made[-1].setdefault("saw", {})

    def _commits_no_more(self, line: Line) -> None:
        self.modes.pop(line.who, None)
        if line.who.startswith("commit ") and not self._other(line):
            self._free(line.who)

    def _refused(self, line: Line) -> None:
        mode = self.modes.pop(line.who, "")
        if mode in ("commit", "recover") and not self._other(line):
            error = line.more["error"]
            d = self._slot(_key(line.who))
            self._add("refused", d=d, why=WHYS.get(error, error))
            if line.who.startswith("commit ") or mode == "recover":
                self._saw_nothing()
                self._free(line.who)

    def _dies(self, line: Line) -> None:
        self.modes.pop(line.who, None)
        if not self._other(line):
            self._free(line.who)

    def _free(self, who: str) -> None:
        self._add("ends", d=self._slot(_key(who)))
        self.slots.pop(_key(who), None)

    def _aborts(self, line: Line) -> None:
        self.modes[line.who] = "abort"

    def _aborts_no_more(self, line: Line) -> None:
        self.modes.pop(line.who, None)

    def _notes(self, line: Line) -> None:
        if not self._other(line):
            self._add("notes", d=self._slot(_key(line.who)))

    def _ends(self, line: Line) -> None:
        who = line.who
        self.modes.pop(who, None)
        if self._other(line) or _key(who) not in self.slots:
            return
        if self.modes.get(f"commit {_key(who)}"):
            return  # its commit may live on
        self._free(who)

    def _gc(self, line: Line) -> None:
        self.modes[line.who] = "gc"

    def _forget(self, line: Line) -> None:
        self.modes[line.who] = "forget"

    def _recover(self, line: Line) -> None:
        self.modes[line.who] = "recover"

    def _refuses(self, line: Line) -> None:
        self.refused = set(self._numbers(line.more["attempts"]))

    def _refuse(self) -> None:
        if self.refused:
            self._add("refuses", **{"as": self.refused})
            self._saw_nothing()
            self.refused, self.refuses = set(), True

    def _accepts(self, line: Line) -> None:
        if self.refuses:
            self._add("accepts")
        self.refuses = False

    def _keeps(self, line: Line) -> None:
        self.kept = list(self.chunks)
        self._add("keeps")

    def _loses(self, line: Line) -> None:
        if line.more["what"] == "suffix":
            self.chunks = self.kept
        self._add("loses")

    # -- requests

    def _ask(self, line: Line, request: Request) -> None:
        claims = request.sink.startswith("checkpoint/")
        if request.sink and not claims and not self._is_known(request.sink):
            return
        if self._other(line) or "c" == _of_claim(request):
            return
        if line.delivered:
            self._deliver(line, request)
        elif line.who.startswith("task "):
            self._ask_as_task(line, request)
        elif self.modes.get(line.who) in ("commit", "recover"):
            self._ask_as_driver(line, request)
        else:
            self._ask_aside(line, request)

    def _deliver(self, line: Line, request: Request) -> None:
        self._count_rows(line, request)
        if request.name == "update" and not self._is_witness(request):
            return
        if self._differs(line):
            self._add("delivers", kinds=set(KINDS[request.name]), again=False)

    def _ask_as_task(self, line: Line, request: Request) -> None:
        if request.name == "stage" and request.chunk is not None:
            number = self.numbers.get(request.chunk.task.attempt)
            if number is None:
                raise OutsideError("an attempt that never began stages")
            arrives, late = _arrives(line), _late(line)
            again = (request.chunk.task.attempt, request.chunk.seq)
            if again in self.staged:  # who got no answer sends again
                if arrives and self._differs(line):
                    self._add("delivers", kinds={"stage"}, again=True)
            elif arrives or late:
                self._add("stages", a=number, arrives=arrives, late=late or not _heard(line))
                if arrives:
                    self.staged.add(again)
        elif request.name == "discard" and (_arrives(line) or _late(line)):
            for number in self._numbers(request.attempts):
                self._add("fails", a=number)
                if _arrives(line):
                    self._saw_nothing()
                    self._add("delivers", kinds={"drop"}, again=_late(line))

    def _ask_as_driver(self, line: Line, request: Request) -> None:
        d = self._slot(_key(line.who))
        self._count_rows(line, request)
        if request.name == "discard" and not _arrives(line):
            if _late(line) and line.current:
                self._sweep(request)
                self._saw_nothing()
            self._add("cleans", d=d, arrives=False)
        elif request.name == "discard" or (request.name in READING and not _heard(line)):
            self._add("cleans", d=d, arrives=request.name == "discard")
        elif request.name == "read" and " over " in request.more:  # is it the ledger still?
            self._add("cleans", d=d, arrives=False)
        elif request.name in READING:
            self._add("reads", d=d, of=self._read_of(request))
        elif request.name == "update" and not self._is_witness(request):
            if _arrives(line) and _heard(line):  # the server may refuse it
                self._add("own row", d=d, kinds={"row"}, k=_ordinal(request))
        else:
            late, arrives, heard = _late(line), _arrives(line), _heard(line)
            asked = {"kinds": set(KINDS[request.name]), "k": _ordinal(request)}
            self._add("asks", d=d, arrives=arrives, late=late, heard=heard, **asked)

    def _read_of(self, request: Request) -> str:
        """What is read; what a commit does not go on by is a text that the model does not know."""
        if request.name != "read":
            return request.name
        if request.sink.startswith("checkpoint/"):
            return "claim"
        if request.manifest is not None:
            return "within a step"
        return self._name(request.sink)

    def _sweep(self, request: Request) -> None:
        numbers = set(self._numbers(request.attempts))
        if numbers:
            self._add("sweeps", x=self._name(request.sink), **{"as": numbers})

    def _ask_aside(self, line: Line, request: Request) -> None:
        """A request of an abort, or of an operator."""
        if request.name in READING or not (_arrives(line) or (_late(line) and line.current)):
            return
        claims = request.sink.startswith("checkpoint/")
        gone = request.new is not None and not request.new.revision
        kind = {"doom": "doom", "discard": "drop"}.get(request.name, "fence")
        if kind == "doom" and not request.attempts and self.modes.get(line.who) != "forget":
            kind = "fence"  # all are held: nothing but the stamp changes
        if request.name == "swap" and gone:
            kind = "free" if claims else "cut"
        if _arrives(line) and not self._differs(line):
            return
        self._emit(kind, request)
        if _arrives(line):
            self._add("delivers", kinds={kind}, again=_late(line))

    def _emit(self, kind: str, request: Request) -> None:
        before = len(self.made)
        mode = self.modes.get(request.actor.name)
        if kind == "doom" and mode in ("forget", "swept"):
            self._add("forgets", x=self._name(request.sink))
        elif kind == "doom":
            fresh = set(self._numbers(request.attempts))
            self._add("dooms", x=self._name(request.sink), **{"as": fresh})
        elif kind == "cut":
            self._add("leaves", x=self._name(request.sink))
        elif kind == "fence":
            self._add("touches", x=self._name(request.sink))
        elif kind == "drop" and mode == "swept":
            self._sweep(request)
        if kind == "drop" and mode == "forget":
            self.modes[request.actor.name] = "swept"  # what came late goes in a step of its own
        if len(self.made) > before:
            self._saw_nothing()

    # -- the store as it is seen

    def _is_witness(self, request: Request) -> bool:
        return bool(request.step.args[2] == WITNESS)  # type: ignore[attr-defined]

    def _count_rows(self, line: Line, request: Request) -> None:
        if not self.converging or request.name != "update" or not self._is_witness(request):
            return
        if line.store["rows"].count(WITNESS) > self.witnesses:
            manifest, ordinal, *_ = request.step.args  # type: ignore[attr-defined]
            part, seq = manifest.chunks[ordinal]
            self.chunks.append((part.attempt, seq))

    def _observe(self, line: Line) -> Fields:
        store, records = line.store, line.store["records"]
        names = {self._name(one): one for one in records if self._is_ledger(one)}
        log = {
            (self.numbers[attempt], seq + 1)
            for (sink, attempt), chunks in store["log"].items()
            if self._is_known(sink)
            for seq in chunks
        }
        now: Fields = {"log": frozenset(log), "rows": self._rows(store["rows"])}
        now["holder"] = self._holder(records)
        for name in ("a", "b", "s"):
            record = records.get(names.get(name, ""), Record())
            now[name] = self._ledger(record, store["applied"])
        return now

    def _is_ledger(self, name: str) -> bool:
        return not name.startswith(("checkpoint/", "offsets/")) and self._is_known(name)

    def _rows(self, rows: list[str]) -> tuple[tuple[int, int], ...]:
        if self.converging:
            return tuple((self.numbers[one], seq + 1) for one, seq in self.chunks)
        found = []
        for row in rows:
            named = re.fullmatch(r"[an]/\d+#(.+)\.(\d+)", row)
            if named:
                found.append((self.numbers[named[1]], int(named[2]) + 1))
        return tuple(found)

    def _holder(self, records: Mapping[str, Record]) -> str:
        claims = [one for name, one in records.items() if name.startswith("checkpoint/")]
        held = [json.loads(one.body)["sink"] for one in claims if one.revision]
        known = [self._name(one) for one in held if self._is_known(one)]
        return known[0] if known else ""

    def _ledger(self, record: Record, applied: Mapping[str, int]) -> Fields:
        none = {"q": "", "epoch": -1, "man": (), "retired": frozenset(), "doomed": frozenset()}
        if not record.revision:
            return {**none, "gone": False, "app": 0}
        body = json.loads(record.body)
        parts = (body["manifest"] or {"parts": []})["parts"]
        chunks = [(self.numbers[p["attempt"]], n + 1) for p in parts for n in range(len(p["rows"]))]
        progress = applied.get(record.token, 0) if body["manifest"] and not self.converging else 0
        return {
            "q": _query(body["query_id"]),
            "epoch": body["epoch"],
            "man": tuple(chunks),
            "retired": frozenset(map(_query, body["retired"])),
            "doomed": frozenset(self._numbers(body["doomed"])),
            "gone": body["forgotten"],
            "app": progress,
        }

    def _differs(self, line: Line) -> bool:
        """Whether a request did anything, be it that a ledger moved."""
        now = self._observe(line)
        moved = _stamps(line) != self.stamps
        return moved or any(now[name] != self.seen.get(name) for name in now)

    def _look(self, line: Line) -> None:
        now = self._observe(line)
        old = self.seen
        changed = {name: one for name, one in now.items() if one != old.get(name)}
        self.made[-1]["saw"] = changed
        self.seen = now


def _stamps(line: Line) -> dict[str, str]:
    return {name: one.stamp for name, one in line.store["records"].items()}


def _ordinal(request: Request) -> int:
    """Which chunk it is about, from 1; 0 for none."""
    return 1 + request.step.args[1] if request.name in ("apply", "update") else 0  # type: ignore[attr-defined]


def _query(name: str) -> str:
    return "s" if name == "orders" else QUERIES.get(name, name)


def _has_decided(line: Line, task: Task) -> bool:
    record = line.store["records"].get(task.sink)
    body = json.loads(record.body) if record else None
    return bool(body and body["query_id"] == task.query_id and body["epoch"] >= task.epoch)


def _of_claim(request: Request) -> str:
    if request.new is None or not request.sink.startswith("checkpoint/") or not request.new.body:
        return ""
    return str(json.loads(request.new.body).get("sink", "")).partition("@")[0]


def _answered(line: Line) -> bool:
    return line.fault is None or line.fault.answer


def _arrives(line: Line) -> bool:
    return line.fault is None or line.fault.effect


def _heard(line: Line) -> bool:
    return _answered(line)


def _late(line: Line) -> bool:
    return line.fault is not None and line.fault.late is not None


def used(lines: list[Fields]) -> Iterator[str]:
    """Names of the places in which drivers live."""
    yield from sorted({one["d"] for one in lines if "d" in one})
