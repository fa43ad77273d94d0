"""Whether a store, and the sinks in it, are in good health."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator

import click

from sparkonce.errors import SparkonceError
from sparkonce.health import Examined, Finding, Level, fit, risk, unfit
from sparkonce.operate.admin import GRACE, Admin, SinkStatus, ago
from sparkonce.operate.arguments import as_json, counted, over_store, page, say

PATIENCE = 300.0
"""Seconds for which a decided epoch may be on its way."""

SIGNS = {Level.FIT: ("ok", "green"), Level.RISK: ("risk", "yellow"), Level.UNFIT: ("no", "red")}


@click.command()
@over_store
@as_json
def doctor(admin: Admin, as_json: bool) -> None:
    """Look for what endangers the guarantee: rights, versions, settings, clock, space, sinks.

    It exits with 1 if a query would be refused.
    """
    found = []
    for one in examination(admin):
        found.append(one)
        if not as_json:
            sign, colour = SIGNS[one.level]
            say(f"{click.style(f'{sign:<5}', fg=colour)}{one}")
    if as_json:
        told = [{**one._asdict(), "level": one.level.value} for one in found]
        page(json.dumps(told, indent=2))
    if any(one.level is Level.UNFIT for one in found):
        raise click.exceptions.Exit(1)


def examination(admin: Admin) -> Iterator[Finding]:
    """What is found, one after the other; nothing more where a query would be refused."""
    try:
        if isinstance(admin.store, Examined):
            yield from admin.store.examine()
        yield from of_sinks(admin.sinks())
    except SparkonceError as error:
        yield unfit(error)


def of_sinks(sinks: Iterable[SinkStatus]) -> Iterator[Finding]:
    """What the ledgers and the log say."""
    count = 0
    for sink in sinks:
        count += 1
        ledger = sink.ledger
        if (
            ledger is not None
            and sink.is_unfinished
            and time.time() - ledger.decision.decided_at > PATIENCE
        ):
            yield risk(
                f"Epoch {ledger.decision.epoch} of {sink.name} was decided"
                f" {ago(ledger.decision.decided_at)}, and is not finished",
                "its query has ended, or is refused a row",
                "start the query again, or run sparkonce recover URL",
            )
        if ledger is not None and ledger.totals.unstored:
            yield risk(
                f"The last {ledger.totals.unstored:,} rows of {sink.name} all became dead letters",
                "the target may be broken, and refuse good rows, too",
                "look at the reasons: sparkonce letters URL",
            )
        if over := sink.leftovers(GRACE):
            size = sum(staged.bytes for staged in over)
            yield risk(
                f"{len(over)} attempts of {sink.name} are left over, {size:,} bytes",
                "nothing will ever take them; they only need room",
                "run sparkonce gc URL",
            )
    yield fit(counted(count, "sink"))
