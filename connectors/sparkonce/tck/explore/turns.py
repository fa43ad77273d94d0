"""Actors in threads of which one runs at a time, from one request to its next one.

The thread that stops chooses the next actor. So an actor that continues costs nothing, and a change
of actors costs one hand-over of a lock (7 microseconds; the start of a thread takes 100).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

Work = Callable[["Actor"], None]
PATIENCE = 60.0
"""Seconds after which a turn that does not start is a bug of the explorer."""


class Stop(BaseException):
    """The schedule ended before this actor."""


class Actor:
    """A participant that takes turns.

    Attributes:
        name: for the history.
        next: the name of the request that it makes at its next turn.
        ready: whether it can continue, if it waits for others.
    """

    def __init__(self, name: str, work: Work) -> None:
        self.name, self.work, self.next = name, work, ""
        self.ready: Callable[[], bool] | None = None
        self.seat: Seat | None = None


class Seat:
    """A thread that plays one actor after the other."""

    def __init__(self, pool: Pool) -> None:
        self.turn, self.pool = threading.Lock(), pool
        self.turn.acquire()
        self.play: Callable[[], None] | None = None
        threading.Thread(target=self._sit, daemon=True).start()

    def _sit(self) -> None:
        while True:
            self.turn.acquire()
            play = self.play
            if play is None:
                return
            play()


class Pool:
    """Threads that schedules reuse."""

    def __init__(self) -> None:
        self.free: list[Seat] = []

    def seat(self) -> Seat:
        """A free thread."""
        return self.free.pop() if self.free else Seat(self)

    def close(self) -> None:
        """End the threads."""
        while self.free:
            seat = self.free.pop()
            seat.play = None
            seat.turn.release()


class ActorTurns:
    """The actors of one schedule.

    Args:
        pool: the source of threads.
        choose: selects the next of the ready actors; the first is the one that has just stopped,
            if it is ready.

    Attributes:
        broken: the error that ended the schedule early.
    """

    def __init__(self, pool: Pool, choose: Callable[[Actor | None, list[Actor]], Actor]) -> None:
        self._pool, self._choose = pool, choose
        self._all_done = threading.Lock()
        self._all_done.acquire()
        self.actors: list[Actor] = []
        self.broken: BaseException | None = None

    def spawn(self, actor: Actor, parent: Actor | None = None) -> None:
        """Add an actor; the simplest choice runs it before its parent."""
        seat = actor.seat = self._pool.seat()
        seat.play = lambda: self._play(actor)
        at = len(self.actors) if parent is None else self.actors.index(parent)
        self.actors.insert(at, actor)

    def run(self) -> None:
        """Run all actors to their ends.

        Raises:
            BaseException: an error of an actor.
        """
        self._wake(self._following(None))
        if not self._all_done.acquire(timeout=PATIENCE):
            raise TimeoutError(f"the schedule hangs: {[actor.name for actor in self.actors]}")
        if self.broken is not None:
            raise self.broken

    def turn(self, me: Actor) -> None:
        """Let an actor continue, perhaps this one; return at this actor's next turn."""
        following = self._following(me)
        if following is not me:
            self._wake(following)
            self._sleep(me)
        if self.broken is not None:
            raise Stop

    def wait(self, me: Actor, ready: Callable[[], bool]) -> None:
        """Let others continue until `ready`."""
        me.ready = ready
        while not ready():
            self.turn(me)
        me.ready = None

    def _following(self, me: Actor | None) -> Actor:
        if self.broken is not None:
            return self.actors[-1]
        able = [actor for actor in self.actors if actor.ready is None or actor.ready()]
        if me is not None and me in able:
            able.remove(me)
            able.insert(0, me)
        return self._choose(me, able)

    def _play(self, actor: Actor) -> None:
        seat = actor.seat
        try:
            if self.broken is None:
                actor.work(actor)
        except Stop:
            pass
        except BaseException as error:
            self.broken = self.broken or error
        self.actors.remove(actor)
        if seat is not None:
            seat.pool.free.append(seat)
        self._leave()

    def _leave(self) -> None:
        if not self.actors:
            self._all_done.release()
            return
        try:
            following = self._following(None)
        except BaseException as error:
            self.broken = error
            following = self.actors[-1]
        self._wake(following)

    @staticmethod
    def _wake(actor: Actor) -> None:
        if actor.seat is not None:
            actor.seat.turn.release()

    @staticmethod
    def _sleep(actor: Actor) -> None:
        if actor.seat is not None:
            actor.seat.turn.acquire()
