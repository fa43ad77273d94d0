"""A store that fails at chosen calls, in every way in which a network or a process can fail."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sparkonce.errors import StagedDataMissing, StoreUnreachable
from sparkonce.protocol import Advance, Applied, Manifest, Record, no_progress
from sparkonce.store import Store

T = TypeVar("T")
READS = frozenset({"check", "read", "names", "unfinished", "decided_after", "staged", "prepare"})


class Crash(BaseException):
    """The process dies here: no clean-up, no abort, no except clause sees it."""


@dataclass(frozen=True)
class Fault:
    """The fault of one call.

    Attributes:
        effect: whether the request takes effect immediately.
        late: after how many further calls it takes effect (again); None for never.
        crash: whether the caller dies; else it gets no reply.
        answer: whether the reply still arrives.
        span: the number of consecutive calls that fail.
        within: the caller dies in the middle of the call: of an apply, after its first chunk.
    """

    name: str
    effect: bool = False
    late: int | None = None
    crash: bool = False
    answer: bool = False
    span: int = 1
    within: bool = False

    def __str__(self) -> str:
        return self.name


DIES_BEFORE = Fault("dies before", crash=True)
DIES_AFTER = Fault("dies after", effect=True, crash=True)
DIES_WITHIN = Fault("dies after the first chunk", crash=True, within=True)
REQUEST_LOST = Fault("request lost")
REPLY_LOST = Fault("reply lost", effect=True)
SENT_TWICE = Fault("sent twice", effect=True, late=0, answer=True)
CRASHES = [DIES_BEFORE, DIES_AFTER, DIES_WITHIN]
LOSSES = [
    REQUEST_LOST,
    REPLY_LOST,
    Fault("store unreachable", span=4),
    Fault("all replies lost", effect=True, span=4),
]
REPEATS = [
    SENT_TWICE,
    Fault("sent again later", effect=True, late=2, answer=True),
    Fault("reply lost, sent again later", effect=True, late=3),
]
LATE = [
    *(Fault(f"arrives {calls} calls late", late=calls) for calls in (1, 2, 4, 9, 30)),
    *(
        Fault(f"dies, arrives {calls} calls late", late=calls, crash=True)
        for calls in (1, 4, 9, 30)
    ),
]
ALL = [*CRASHES, *LOSSES, *REPEATS, *LATE]


class FaultyStore:
    """Passes calls on to a store and counts them, from 0.

    Args:
        store: executes the calls.
        faults: the fault by the number of a call.
        hooks: run before a call, without faults.
        connect: creates the client of the process that continues after a crash; without it the dead
            process and its successor share `store`.

    Attributes:
        calls: their names.
        applied: the manifests passed to `apply`.
    """

    def __init__(
        self,
        store: Store,
        faults: Mapping[int, Fault] | None = None,
        hooks: Mapping[int, Callable[[], object]] | None = None,
        connect: Callable[[], Store] | None = None,
    ) -> None:
        self._store, self._connect = store, connect
        self._faults = {
            at + n: fault for at, fault in (faults or {}).items() for n in range(fault.span)
        }
        self._hooks = dict(hooks or {})
        self._late: list[tuple[int, Callable[[], object]]] = []
        self._next: dict[str, Fault] = {}
        self._old = "", Record(), 0
        self._before: dict[str, Callable[[], object]] = {}
        self._look: Callable[[], object] = lambda: None
        self._dying: Crash | None = None
        self.calls: list[str] = []
        self.applied: list[Manifest] = []

    def fail_next(self, name: str, fault: Fault) -> None:
        """Make the next call of this name fail."""
        self._next[name] = fault

    def fail_at(self, at: int, fault: Fault) -> None:
        """Make the call of this number fail."""
        self._faults[at] = fault

    def answer(self, name: str, old: Record, reads: int) -> None:
        """Answer the next reads and swaps of a record with an older one, as a lagging node does."""
        self._old = name, old, reads

    def before(self, name: str, hook: Callable[[], object]) -> None:
        """Run a function before the next call of this name."""
        self._before[name] = hook

    def watch(self, look: Callable[[], T]) -> list[T]:
        """From now on, look before every call and after every chunk; return the observations."""
        seen: list[T] = []
        self._look = lambda: seen.append(look())
        return seen

    def __getattr__(self, name: str) -> Callable[..., Any]:
        own: dict[str, Callable[..., Any]] = {
            "apply": self._apply,
            "read": self._read,
            "swap": self._swap,
        }
        step = own.get(name) or getattr(self._store, name)
        return lambda *args, **named: self._call(name, lambda: step(*args, **named))

    def _read(self, name: str) -> Record:
        old = self._older(name)
        return self._store.read(name) if old is None else old

    def _swap(self, name: str, new: Record, over: str, applied: int = 0) -> Record:
        old = self._older(name)
        return self._store.swap(name, new, over, applied) if old is None else old

    def _older(self, name: str) -> Record | None:
        known, old, left = self._old
        if name != known or not left:
            return None
        self._old = known, old, left - 1
        return old

    def _apply(
        self, manifest: Manifest, advance: Advance = no_progress, since: float | None = None
    ) -> Applied:
        self.applied.append(manifest)

        def advanced(rows: int) -> None:
            advance(rows)
            self._look()
            if self._dying is not None:
                raise self._dying

        return self._store.apply(manifest, advanced, since)

    def _call(self, name: str, step: Callable[[], Any]) -> Any:
        at = len(self.calls)
        self.calls.append(name)
        self._deliver(at)
        self._look()
        for hook in (self._hooks.pop(at, None), self._before.pop(name, None)):
            if hook is not None:
                hook()
        fault = self._next.pop(name, None) or self._faults.pop(at, None)
        if fault is None:
            return step()
        try:
            return self._fail(at, name, fault, step)
        except Crash:
            if self._connect is not None:
                self._store = self._connect()
            raise

    def _fail(self, at: int, name: str, fault: Fault, step: Callable[[], Any]) -> Any:
        if fault.within and name == "apply":
            self._dying = Crash(f"{fault} of call {at} ({name})")
        try:
            answer = step() if fault.effect or self._dying else None
        finally:
            self._dying = None
        if fault.late is not None and name not in READS:
            if fault.late == 0:
                answer = step()
            else:
                self._late.append((at + fault.late, step))
        if fault.crash:
            raise Crash(f"{fault} at call {at} ({name})")
        if fault.answer:
            return answer
        raise StoreUnreachable(f"{fault} at call {at} ({name})")

    def deliver_all(self) -> None:
        """Let every late request arrive."""
        self._deliver(1 << 60)

    def _deliver(self, now: int) -> None:
        due = [step for at, step in self._late if at <= now]
        self._late = [(at, step) for at, step in self._late if at > now]
        for step in due:
            # A publish may find its chunks missing, and no process reads the reply.
            with contextlib.suppress(StagedDataMissing):
                step()
