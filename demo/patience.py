"""How long the demo waits for a driver that brings no row."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

MINUTE = 60.0
LIMIT = 10 * MINUTE
"""Seconds without a sign of work after which the driver counts as stuck."""

STEP = 5.0
"""Seconds between two samples, and from a row to the first one.

A sample takes 10 ms, and 100 ms on a busy machine. The demo looks for the middle of a commit once a
millisecond and would miss some, so it takes no sample while rows arrive.
"""

WORK = 1.2
"""Seconds of CPU in a minute, 2 % of a core, from which on the driver counts as working.

A driver that waits uses some, too: Java's housekeeping threads, and Python's daemon of workers. One
with an idle session used 0.2 s a minute, and one whose Redis was stopped 0.2 to 0.4 s. One that
started on two cores, beside 18 busy processes, got 5.4 to 6.8 s.
"""

SILENT = 30.0
"""Seconds for which nobody has to be told why no row comes."""


class Cpu:
    """The CPU time of processes that come and go."""

    def __init__(self, family: Callable[[], Iterable[psutil.Process]]) -> None:
        self._family = family
        self._used: dict[psutil.Process, float] = {}

    def total(self) -> float:
        """Seconds that all processes ever seen have used. It never falls.

        One that has ended keeps what it had used when it was last seen. What the others tell of
        their ended children is left out: it would count a second time.
        """
        for process in self._family():
            with suppress(psutil.Error):
                times = process.cpu_times()
                self._used[process] = times.user + times.system
        return sum(self._used.values())


class Sample(NamedTuple):
    """What the driver had done by a moment: seconds of CPU, bytes in its log."""

    at: float
    cpu: float
    log: int


class Patience:
    """Lasts as long as the driver works: it uses CPU, writes to its log or brings rows.

    Args:
        family: gives the processes of the driver.
        log: the file to which they write.
        clock: gives the time in seconds.
    """

    def __init__(
        self,
        family: Callable[[], Iterable[psutil.Process]],
        log: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cpu, self._log, self._clock = Cpu(family), log, clock
        self._samples: deque[Sample] = deque()
        self.renew()

    def renew(self) -> None:
        """Begin anew: a row has come."""
        self._samples.clear()
        self._since = self._worked = self._looked = self._clock()

    def look(self) -> None:
        """Look for signs of work, if it is time to."""
        now = self._clock()
        if now - self._looked < STEP:
            return
        self._looked = now
        self._samples.append(Sample(now, self._cpu.total(), self._log.stat().st_size))
        # The newest sample from before the minute stays: a look that comes late, as on a busy
        # machine, needs one to compare with.
        while len(self._samples) > 1 and self._samples[1].at <= now - MINUTE:
            self._samples.popleft()
        _, cpu, log = self._minute()
        # The first sample tells nothing, so the driver is not blamed for the time before it.
        if len(self._samples) == 1 or cpu >= WORK or log > 0:
            self._worked = now

    @property
    def exhausted(self) -> bool:
        """Whether the driver has done nothing for too long."""
        return self._looked - self._worked >= LIMIT

    def tell(self, state: str) -> str:
        """The state, and what the driver does if no row has come for a while."""
        if self._looked - self._since < SILENT:
            return state
        idle = self._looked - self._worked
        if idle >= MINUTE:
            nothing = f"the driver has done nothing for {_minutes(idle)}"
            return f"{state}: {nothing}, the demo gives up after {_minutes(LIMIT)}"
        seconds, cpu, log = self._minute()
        wrote = f" and wrote {log:,} bytes to its log" if log > 0 else ""
        return f"{state}: the driver used {cpu:.1f} s of CPU{wrote} in the last {seconds:.0f} s"

    def verdict(self) -> str:
        """What to say when it is exhausted."""
        return (
            f"No row came for {_minutes(self._looked - self._since)}, and for {_minutes(LIMIT)} the"
            f" driver used less than {WORK} s of CPU a minute and wrote nothing to its log: it"
            " hangs. Start the demo again; if it hangs again, report it with the whole log"
        )

    def _minute(self) -> tuple[float, float, int]:
        """The seconds from the oldest sample to the newest, and what was done in them."""
        first, last = self._samples[0], self._samples[-1]
        return last.at - first.at, last.cpu - first.cpu, last.log - first.log


def _minutes(seconds: float) -> str:
    return f"{seconds / MINUTE:.0f} min"
