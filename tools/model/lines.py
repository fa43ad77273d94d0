"""A schedule of the explorer as lines of docs/model/trace.tla."""

from __future__ import annotations

from collections.abc import Sequence

from tools.model.attempts import attempts
from tools.model.events import Events
from tools.model.names import is_known
from tools.model.requests import Requests
from tools.model.script import Script
from tools.model.seen import Eyes, Fields

from sparkonce.tck.explore.tape import Line


def lines_of(tape: Sequence[Line], *, converging: bool) -> list[Fields]:
    """The lines, each with what changed in the store (`saw`)."""
    script = Script(Eyes(converging))
    events, requests, tasks = Events(script), Requests(script), attempts(tape).values()
    for at, line in enumerate(tape):
        for one in tasks:
            if one.begins == at and is_known(one.task.sink):
                script.eyes.numbers[one.name] = len(script.eyes.numbers) + 1
                how = {"size": one.size, "st": "skips" if one.skips else "runs"}
                script.add("task", d=script.place(one.driver), p=one.task.partition + 1, **how)
        before = len(script.lines)
        # The server looks at a row, not at the witness which is sent with it.
        if not (line.request and script.eyes.is_witness(line.request)):
            events.begin_to_refuse()
        if line.request is None:
            events.take(line)
        else:
            requests.take(line, line.request)
        told = script.eyes.changed(line) if len(script.lines) > before else {}
        if told:
            script.lines[-1]["saw"] = told
        script.eyes.pass_by(line.store, told)
    return script.lines
