"""Rule C01 within the steps: the process dies at a line of the connector's own code."""

from __future__ import annotations

import gc
import sys
from itertools import count
from types import FrameType
from typing import Any

from sparkonce.tck.simulation.actors import Query, Run
from sparkonce.tck.simulation.faults import Crash
from sparkonce.tck.simulation.oracles import WITNESS, after, require_clean, require_rows
from sparkonce.tck.subject import NewSubject
from sparkonce.tck.suites.commits import rows
from sparkonce.tck.suites.suite import Contract


class Fuse:
    """Dies at the n-th line of code that a package runs.

    Args:
        package: the top-level package or module.
        lines: how many lines it may run.

    Attributes:
        died: the line; empty if it did not die.
    """

    def __init__(self, package: str, lines: int) -> None:
        self.package, self.left, self.died = package, lines, ""

    def run(self, call: Any, *args: Any) -> None:
        """Call a function until it dies."""
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            call(*args)
        except Crash:
            pass
        finally:
            sys.settrace(before)

    def _enter(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        name = str(frame.f_globals.get("__name__"))
        return self._line if name.partition(".")[0] == self.package else None

    def _line(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line" and not self.died:
            self.left -= 1
            if self.left < 0:
                self.died = f"line {frame.f_lineno} of {frame.f_code.co_name}"
                raise Crash(f"dies at {self.died}")
        return self._line


class LineRules(Contract):
    """Checks that interrupt a step at any line."""

    def test_c01_a_crash_at_any_line_of_a_step_changes_nothing(
        self, new_subject: NewSubject
    ) -> None:
        """In a commit: between the statements of a transaction, between rows and mark."""
        new_subject().need("lines")
        gc.freeze()  # One look at the earlier rows is enough, not one for each dead process.
        try:
            self._die_everywhere(new_subject)
        finally:
            gc.unfreeze()

    def _die_everywhere(self, new_subject: NewSubject) -> None:
        for line in count(step=new_subject().step):
            world = new_subject()
            query = Query(world)
            run = query.start()
            first, second = [rows(0, "first"), rows(0, "first too")], rows(0, "second")
            receipts = run.stage(0, *first)
            fuse = Fuse(type(world.store).__module__.partition(".")[0], line)
            self._die(fuse, run, receipts)
            with after(f"the driver died at {fuse.died or 'no line'}, and another continued"):
                query.start().write(0, second)
                decided_first = first[0][0] in world.took_effect()
                version = {*first[0], *first[1]} if decided_first else {*second}
                require_rows(world, version - {WITNESS})
                query.start().write(1, rows(1, "next"))
                require_clean(world, query)
            if not fuse.died:
                return

    def _die(self, fuse: Fuse, run: Run, receipts: Any) -> None:
        """The dead driver's client dies, too, and with it its open transactions."""
        run.query.through = run.query.world.connect()
        run.query.through.read(run.query.name)
        fuse.run(run.commit, 0, receipts)
        run.query.through = None
        gc.collect()
