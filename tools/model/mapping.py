"""Maps names of the explorer to names of docs/model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sparkonce.exactly_once.ledger import Ledger, from_record
from sparkonce.exactly_once.registers import CLAIM, holder_of
from sparkonce.operate.admin import BESIDE
from sparkonce.protocol import Record
from sparkonce.tck.explore.requests import Request
from sparkonce.tck.explore.tape import Line
from sparkonce.tck.simulation.oracles import WITNESS

QUERIES = {"a": "a", "n": "b", "p": "p"}
"""The queries of one checkpoint path. The third query of the explorer has another one."""

SHARED = "orders"
"""The sink id that queries share."""

WHYS = {
    "ConcurrentDriver": "Concurrent",
    "CheckpointReplaced": "Replaced",
    "QueryRetired": "Retired",
    "StagedDataMissing": "Missing",
    "StoreLostData": "Lost",
    "SinkBehindCheckpoint": "SinkBehind",
    "CheckpointBehindSink": "Behind",
    "VersionBehindSink": "Behind",
    "CheckpointDiverged": "Diverged",
    "RowRefused": "Refused",
    "BatchOvertaken": "Overtaken",
    "StoreUnreachable": "Unreachable",
}
"""By error, the model's reason to refuse a commit."""

WRITES = frozenset({"own", "retire", "replay", "decide", "finish", "fence", "confirm", "claim"})
KINDS = {
    "swap": WRITES | {"cut", "free"},
    "publish": {"decide"},
    "decide": {"decide"},
    "apply": {"row"},
    "update": {"row"},
    "mark": {"mark"},
    "fence": {"draw"},
    "stage": {"stage"},
    "doom": {"doom"},
    "discard": {"drop"},
}
"""By request of a store, the requests of the model that it may be."""

READING = frozenset(
    {"read", "names", "unfinished", "decided_after", "staged", "check", "look", "fetch"}
)


def is_claim(name: str) -> bool:
    """Whether a record is the claim on a checkpoint path."""
    return name.startswith(CLAIM)


def is_known(sink: str) -> bool:
    """Whether the model has this sink."""
    return sink.partition("@")[0] in (*QUERIES, SHARED)


def name_of(sink: str) -> str:
    """The name of a sink in the model."""
    return query_of(sink.partition("@")[0])


def query_of(query: str) -> str:
    """The name of a query, or of a sink id, in the model."""
    return "s" if query == SHARED else QUERIES.get(query, query)


def key(actor: str) -> str:
    """An actor's name without its role: `a1b` for that driver, and for its commit worker."""
    return actor.partition(" ")[2] or actor


def is_of_other(request: Request) -> bool:
    """Whether a request is about a sink, or a claim, that the model does not have."""
    sink = request.sink
    if is_claim(sink) and request.new is not None:
        sink = holder_of(request.new, request.name) or ""
    return bool(sink) and not is_claim(sink) and not is_known(sink)


def is_other(line: Line) -> bool:
    """Whether a line belongs to the query of the other path."""
    return key(line.who).startswith("c")


# -- the fate of a request


def arrives(line: Line) -> bool:
    """Whether the request took effect immediately."""
    return line.fault is None or line.fault.effect


def is_heard(line: Line) -> bool:
    """Whether the sender got a reply."""
    return line.fault is None or line.fault.answer


def is_late(line: Line) -> bool:
    """Whether the request arrives late, or a second time."""
    return line.fault is not None and line.fault.late is not None


def may_come(line: Line) -> bool:
    """Whether the request may arrive later, or its sender sends it again without a reply."""
    return is_late(line) or not is_heard(line)


Fields = dict[str, Any]
Store = Mapping[str, Any]
"""A snapshot of the store."""
ROW = re.compile(r"[anp]/\d+#(.+)\.(\d+)")


@dataclass
class StoreView:
    """Compares the store line by line.

    Args:
        converging: whether rows take effect one by one. A chunk then counts once its witness takes
            effect, the row that all chunks share.

    Attributes:
        numbers: the numbers of started attempts.
        runs: the numbers of started runs; 0 represents none.
        last: the last state.
    """

    converging: bool
    numbers: dict[str, int] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=lambda: {"": 0})
    last: Fields = field(default_factory=dict)
    _chunks: list[tuple[str, int]] = field(default_factory=list)
    _kept: list[tuple[str, int]] = field(default_factory=list)
    _witnesses: int = 0
    _stamps: dict[str, str] = field(default_factory=dict)

    def known(self, attempts: Iterable[str]) -> list[int]:
        """The numbers of attempts, without those that never started."""
        return [self.numbers[one] for one in attempts if one in self.numbers]

    def number(self, run: str) -> None:
        """Assign a number to a run, if it has none."""
        self.runs.setdefault(run, len(self.runs))

    # -- rows of a store that converges

    def is_witness(self, request: Request) -> bool:
        """Whether a request updates the row that all chunks share."""
        return request.name == "update" and bool(given(request)[2] == WITNESS)

    def is_own_row(self, request: Request) -> bool:
        """Whether a request updates another row of a chunk."""
        return request.name == "update" and not self.is_witness(request)

    def count(self, store: Store, request: Request) -> None:
        """Record the chunk that took effect."""
        if self.is_witness(request) and store["rows"].count(WITNESS) > self._witnesses:
            self._chunks.append(chunk_of(request))

    def keep(self) -> None:
        """Keep this state, which a failover may restore."""
        self._kept = list(self._chunks)

    def lose(self) -> None:
        """Restore the kept state."""
        self._chunks = list(self._kept)

    # -- the whole store

    def changed(self, line: Line) -> Fields:
        """The parts that differ from the last state."""
        now = self.see(line.store)
        return {name: one for name, one in now.items() if one != self.last.get(name)}

    def differs(self, line: Line) -> bool:
        """Whether a request changed anything, even only a ledger's stamp."""
        return _stamps(line.store) != self._stamps or bool(self.changed(line))

    def pass_by(self, store: Store, reported: Fields) -> None:
        """Advance to the next line; `reported` are the changes that this line reports."""
        self._witnesses, self._stamps = store["rows"].count(WITNESS), _stamps(store)
        self.last.update(reported)

    def see(self, store: Store) -> Fields:
        """The whole store in the form of the model."""
        records = store["records"]
        names = {name_of(one): one for one in records if _is_ledger(one)}
        log = {
            (self.numbers[attempt], seq + 1)
            for (sink, attempt), chunks in store["log"].items()
            if is_known(sink)
            for seq in chunks
        }
        now: Fields = {"log": frozenset(log), "rows": self._rows(store["rows"])}
        now["holder"] = _holder(records)
        for name in ("a", "b", "p", "s"):
            sink = names.get(name, "")
            now[name] = self._ledger(records.get(sink, Record()), sink, store["applied"])
        return now

    def _rows(self, rows: list[str]) -> tuple[tuple[int, int], ...]:
        chunks = self._chunks
        if not self.converging:
            named = filter(None, map(ROW.fullmatch, rows))
            chunks = [(one[1], int(one[2])) for one in named]
        return tuple((self.numbers[attempt], seq + 1) for attempt, seq in chunks)

    def _ledger(self, record: Record, sink: str, applied: Mapping[str, int]) -> Fields:
        ledger = from_record(record, sink) or Ledger.unwritten("", "", "")
        chunks = ledger.decision.manifest.chunks if ledger.decision.manifest else []
        return {
            "q": query_of(ledger.owner.query_id),
            "epoch": ledger.decision.epoch,
            "man": tuple((self.numbers[part.attempt], seq + 1) for part, seq in chunks),
            "retired": frozenset(map(query_of, ledger.owner.retired)),
            "doomed": frozenset(self.known(ledger.decision.doomed)),
            "gone": ledger.owner.forgotten,
            "run": self.runs[ledger.owner.run_id],
            "past": frozenset(self.runs[run] for run in ledger.owner.past_runs),
            "replayed": frozenset(
                (self.runs[run], at) for run, at in ledger.owner.replayed.items()
            ),
            "ever": ledger.totals.epochs > 0,
            "heir": ledger.owner.inherits,
            "app": applied.get(record.token, 0) if chunks and not self.converging else 0,
        }


def names_held(store: Store, request: Request) -> bool:
    """Whether a request names an attempt that the current decision holds."""
    ledger = from_record(store["records"].get(request.sink, Record()), request.sink)
    return ledger is not None and not ledger.decision.held.isdisjoint(request.attempts)


def chunk_of(request: Request) -> tuple[str, int]:
    """The chunk of an apply or an update: its attempt, and its number there, from 0."""
    manifest, at = given(request)[:2]
    part, seq = manifest.chunks[at]
    return part.attempt, seq


def ordinal(request: Request) -> int:
    """The ordinal of a request's chunk in the decision, from 1; 0 for none."""
    return int(1 + given(request)[1]) if request.name in ("apply", "update") else 0


def given(request: Request) -> tuple[Any, ...]:
    """The arguments of a request; for apply and update: decision, ordinal, and chunk or row."""
    args: tuple[Any, ...] = request.step.args  # type: ignore[attr-defined]
    return args


def _stamps(store: Store) -> dict[str, str]:
    return {name: one.stamp for name, one in store["records"].items()}


def _is_ledger(name: str) -> bool:
    return not name.startswith(BESIDE) and is_known(name)


def _holder(records: Mapping[str, Record]) -> str:
    held = [holder_of(one, name) or "" for name, one in records.items() if is_claim(name)]
    return next((name_of(one) for one in held if is_known(one)), "")
