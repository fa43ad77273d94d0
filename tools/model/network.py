"""The way of a puppet's requests to the store, and those that are still on it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tools.model.messages import is_sent
from tools.model.names import READING
from tools.model.puppets import Fate, Puppet, Stage, lost
from tools.model.seen import Eyes, chunk_of, names_held
from tools.model.tla import Function

from sparkonce.errors import RowRefused, SparkonceError
from sparkonce.tck.explore.requests import Request


class Parted(Exception):
    """The core goes another way than the model."""


class Held(NamedTuple):
    """A request that is on its way; its sender lives only where it waits for the answer."""

    request: Request
    sender: Puppet | None = None


class Network:
    """Carries requests as a path says.

    Args:
        stage: where the puppets are, and the store.
        eyes: look at the store.

    Attributes:
        sent: what the model has on its way.
        refused: attempts that the server refuses.
    """

    def __init__(self, stage: Stage, eyes: Eyes) -> None:
        self.memory, self.eyes = stage.memory, eyes
        self.sent: frozenset[Function] = frozenset()
        self.refused: set[str] = set()
        self._held: dict[Function, Held] = {}  # also those that have come
        self._taking, self._refusing = self.memory.take, False
        self.memory.take = self._take

    def _take(self, row: str) -> None:
        if self._refusing:
            raise RowRefused(f"row {row} does not fit")
        self._taking(row)

    def perform(self, request: Request) -> Any:
        """Let it take effect, and give its answer.

        Raises:
            SparkonceError: the store refuses it.
        """
        with self._fitting(request):
            answer = request.step()
        store = self.memory.snapshot()
        self.eyes.count(store, request)
        self.eyes.pass_by(store, {})
        return answer

    @contextmanager
    def _fitting(self, request: Request) -> Iterator[None]:
        self._refusing = not self.refused.isdisjoint(_attempts(request))
        try:
            yield
        finally:
            self._refusing = False

    def fate(self, *, arrives: bool, heard: bool, late: Function | None) -> Fate:
        """What becomes of a request; `late` is what the model calls it, if it comes late."""

        def become(request: Request) -> Any:
            if late is not None:
                self._held[late] = Held(request)
            if heard:
                return self.perform(request)
            if arrives:
                with contextlib.suppress(SparkonceError):
                    self.perform(request)
            return lost(request)

        return become

    # -- from puppet to puppet

    def until(self, puppet: Puppet, wanted: Callable[[Request], bool]) -> Request:
        """Let a puppet go on to a request; what it asks for before changes nothing.

        Raises:
            Parted: it asks for something else.
        """
        while puppet.pending is not None and not wanted(puppet.pending):
            self.quietly(puppet)
        if puppet.pending is None:
            raise Parted(f"the core is through, with {puppet.error or puppet.answer!r}")
        return puppet.pending

    def quietly(self, puppet: Puppet) -> None:
        """Let it read, or send again what took effect before; drops of leftovers are lost.

        Raises:
            Parted: it asks for something else, or would drop what a decision holds.
        """
        request = puppet.pending
        if request is None or request.name == "discard":
            if request is not None and names_held(self.memory.snapshot(), request):
                raise Parted(f"the core drops what is decided: {request}")
            puppet.go(lost)
        elif request.name in READING:
            puppet.go(self.perform)
        elif self.changes(puppet, self.perform):
            raise Parted(f"the core asks for {request}")

    def changes(self, puppet: Puppet, fate: Fate) -> bool:
        """Let this become of its request, and say whether that changes the store."""
        before = self.memory.snapshot()
        puppet.go(fate)
        return bool(self.memory.snapshot() != before)

    def close(self, puppet: Puppet) -> None:
        """Let it go on to its end."""
        while puppet.pending is not None:
            self.quietly(puppet)

    # -- on its way

    def emit(self, puppet: Puppet, name: str, sent: frozenset[Function]) -> None:
        """Let a puppet come to the request, of this name, which is on its way from now on."""
        new = sent - self.sent
        if new:
            [message] = new
            asked = self.until(puppet, lambda one: is_sent(one, message, self.eyes))
            self._held[message] = Held(asked, puppet)
        else:  # the model knows one such request only
            self.until(puppet, lambda one: one.name == name)
            puppet.die()

    def deliver(self, message: Function, *, again: bool, sent: frozenset[Function]) -> None:
        """It arrives; what its sender does then is on its way, and the sender dies."""
        held, new = self._held[message], set(sent - (self.sent - {message}))
        if again:
            new.discard(self._keep(message, sent, Held(held.request)))
        if held.sender is None or held.sender.pending is not held.request:
            with contextlib.suppress(SparkonceError):
                self.perform(held.request)
        else:
            held.sender.go(self.perform)
            self._capture(held.sender, new)
        if not new <= self._held.keys():  # where a failover lets it take effect twice, so do those
            raise Parted(f"the core does not go on with {[one['kind'] for one in new]}")

    def repeat(self, message: Function, sent: frozenset[Function]) -> None:
        """It arrives, does nothing, and will come once more."""
        held = self._held[message]
        self._keep(message, sent, held)
        with contextlib.suppress(SparkonceError):
            self.perform(held.request)

    def _keep(self, message: Function, sent: frozenset[Function], held: Held) -> Function:
        """What it is called from now on, once its stamp is drawn."""
        new = {message} & sent or sent - self.sent
        [same] = [one for one in new if one["kind"] == message["kind"]]
        self._held[same] = held
        return same

    def _capture(self, puppet: Puppet, new: set[Function]) -> None:
        while new and puppet.pending is not None:
            request = puppet.pending
            found = [one for one in new if is_sent(request, one, self.eyes)]
            if not found and request.name not in (*READING, "discard"):
                raise Parted(f"the core asks for {request}")
            for message in found:
                self._held[message] = Held(request)
                new.discard(message)
            puppet.go(self.perform if request.name in READING else lost)
        puppet.die()


def _attempts(request: Request) -> set[str]:
    """Whose rows it makes take effect."""
    manifest = request.manifest
    if manifest is None or request.name not in ("publish", "apply", "update"):
        return set()
    if request.name == "publish":
        return {part.attempt for part in manifest.parts}
    return {chunk_of(request)[0]}
