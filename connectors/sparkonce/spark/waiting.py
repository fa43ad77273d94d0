"""How long a commit waits for a file system, whose own limits may be minutes, or none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from threading import Thread

LIMIT = 30.0
"""Seconds."""


def in_time(fetch: Callable[[], bytes | None]) -> bytes | None:
    """What a file system gives.

    Raises:
        TimeoutError: nothing, in the time that a commit can wait.
    """
    answer: Future[bytes | None] = Future()

    def run() -> None:
        try:
            answer.set_result(fetch())
        except BaseException as error:  # else it would be waited for until LIMIT, and not told
            answer.set_exception(error)

    # No pool: Python waits for a pool's threads as it ends, and nobody can end this one.
    Thread(target=run, daemon=True).start()
    try:
        return answer.result(LIMIT)
    except FutureTimeoutError:
        # From Python 3.11 on a TimeoutError of the file system itself is of this class, too.
        if answer.done():
            return answer.result()
        raise TimeoutError(f"no answer within {LIMIT:g} s") from None
