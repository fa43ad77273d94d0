"""Commands over the sinks of a store: status, recover, gc, forget, offsets."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from sparkonce.errors import SparkonceError
from sparkonce.exactly_once.ledger import Ledger
from sparkonce.health import Examined, Finding, Level, fit, risk, unfit
from sparkonce.operate.admin import GRACE, Admin, SinkStatus, ago, counted
from sparkonce.operate.arguments import (
    as_json,
    confirm,
    exactly,
    known,
    listed,
    over_store,
    page,
    say,
    seconds,
    yes,
)
from sparkonce.spark import lost_offsets


@click.command()
@over_store
@click.argument("sink", required=False)
@click.option("--all", "every", is_flag=True, help="All sinks, where there are many.")
@as_json
def status(admin: Admin, sink: str | None, every: bool, as_json: bool) -> None:
    """Show every sink, or only SINK: query, epoch, rows, staged and pending work.

    Many sinks get one line each, first those with pending work, then those with the newest writes.
    """
    sinks = admin.sinks() if sink is None else [known(admin, sink)]
    if as_json:
        page(json.dumps([sink.to_json() for sink in sinks], indent=2))
    elif sinks:
        page(listed(sinks, every=every))
    else:
        say("No sink has written to this store.")


@click.command()
@over_store
@click.option(
    "--accept-loss",
    is_flag=True,
    help="If the store lost chunks, discard every row of the epoch that is not applied yet.",
)
@click.option("--sink", "only", metavar="SINK", help="Only this sink, by its name in status.")
@click.option(
    "--over-newer",
    is_flag=True,
    help="Apply the epoch of SINK even over newer writes of others.",
)
@click.option(
    "--drop",
    is_flag=True,
    help="Discard the rows of the epoch of SINK that are not applied yet; count them as dropped.",
)
@as_json
def recover(admin: Admin, only: str | None, as_json: bool, **how: bool) -> None:
    """Finish every epoch that is decided and not yet applied.

    The command refuses an epoch if other sinks wrote to the same target later, since its rows are
    older than theirs. Decide with --over-newer or --drop what becomes of it.
    """
    if how["drop"] and (how["over_newer"] or how["accept_loss"]):
        raise click.UsageError("--drop applies nothing: omit the other flags.")
    if only is None and (how["drop"] or how["over_newer"]):
        raise click.UsageError("--drop and --over-newer need --sink SINK.")
    sinks = admin.sinks() if only is None else [known(admin, only)]
    unfinished = [sink for sink in sinks if sink.is_unfinished]
    if how["drop"]:
        _tell_dropped([admin.drop(sink) for sink in unfinished], as_json=as_json)
        return
    done = [_recovered(admin, sink, how["accept_loss"], how["over_newer"]) for sink in unfinished]
    done += [_damaged(sink) for sink in sinks if sink.damage is not None]
    failed = sum("error" in one for one in done)
    if as_json:
        page(json.dumps(done, indent=2))
    else:
        for one in done:
            said = one.get("error") or _applied(one, whole=not how["accept_loss"])
            at = "" if one["epoch"] is None else f"epoch {one['epoch']}: "
            say(f"{one['sink']}: {at}{said}")
        say(f"{counted(len(done) - failed, 'epoch')} recovered.")
        if failed:
            say("To give up the rest of an epoch: --sink SINK --drop.")
    if failed:
        raise click.exceptions.Exit(1)


@click.command()
@over_store
@click.option(
    "--grace",
    default="1h",
    show_default=True,
    metavar="TIME",
    help="Time, such as 90s, 15m, 12h or 7d. The command drops the rows of an undecided epoch if"
    " its run has staged no chunk for that time. Set more than any epoch computes between two"
    " chunks. Rows of epochs that are over are dropped immediately.",
)
@click.option("--dry-run", is_flag=True, help="Only show what the command would drop.")
@yes
@as_json
def gc(admin: Admin, grace: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Drop staged rows that no epoch can ever apply: of failed tasks and dead drivers.

    The command also removes ledgers of queries that decided nothing, and the tombstones of sinks
    that were forgotten 30 days ago.
    """
    age = seconds(grace)
    found = [(sink, sink.leftovers(age)) for sink in admin.sinks()]
    found = [(sink, over) for sink, over in found if over]
    if not as_json:
        for sink, over in found:
            chunks = sum(staged.chunks for staged in over)
            say(f"{sink.name}: {len(over)} attempts, {chunks} chunks")
    if found and not dry_run and not yes:
        confirm("Drop them?", err=as_json)  # stdout is reserved for JSON
    dropped = 0 if dry_run else sum(admin.gc(sink, age) for sink, _ in found)
    if not dry_run:
        admin.sweep(age)  # after gc: a ledger with staged rows stays
    total = sum(len(over) for _, over in found)
    if as_json:
        say(json.dumps({"found": total, "dropped": dropped}))
    else:
        say(f"{total} attempts found, {dropped} dropped.")


@click.command()
@over_store
@click.argument("sinks", nargs=-1, metavar="[SINK]...")
@click.option(
    "--older-than", metavar="TIME", help="Only sinks without a write for this time, such as 30d."
)
@click.option("--target", help="Only sinks of this target; `sparkonce status` shows it.")
@click.option("--undecided", is_flag=True, help="Only sinks without a decision.")
@yes
@as_json
def forget(admin: Admin, sinks: tuple[str, ...], **how: Any) -> None:
    """Retire each SINK and free its checkpoint path. The sink then rejects a query that still runs.

    Options select among the named sinks, or among all; a sink must match each option.
    """
    names = _chosen(admin, sinks, how["older_than"], how["target"], how["undecided"])
    if not how["yes"] and names:
        listed = ", ".join(names)
        question = f"Forget {listed}? A query that still runs fails at its next commit"
        confirm(question, err=how["as_json"])
    failed: dict[str, str] = {}
    for name in names:
        try:
            admin.forget(name)
        except SparkonceError as error:
            failed[name] = str(error)
        if not how["as_json"]:
            said = "{} is forgotten: its tombstone rejects a query that still runs."
            say(f"{name}: {failed[name]}" if name in failed else said.format(name))
    if how["as_json"]:
        forgotten = [name for name in names if name not in failed]
        say(json.dumps({"forgotten": forgotten, "failed": failed}))
    elif not names:
        say("No sink matches.")
    if failed:
        raise click.exceptions.Exit(1)


@click.command("offsets")
@over_store
@click.argument("sink")
@click.option(
    "--restore", metavar="CHECKPOINT", help="Write the offsets back into this local folder."
)
@as_json
def show_offsets(admin: Admin, sink: str, restore: str | None, as_json: bool) -> None:
    """Show the offsets of the last decided epoch of SINK: Spark's offsets/N, byte by byte.

    A host that crashes may lose offsets/N, which Spark does not sync to disk. Spark then reads
    other rows under this number, and the sink rejects them (CheckpointDiverged). Stop the query,
    write the offsets back with --restore, and restart it.
    """
    ledger = known(admin, sink).ledger
    offsets = admin.offsets(ledger)
    report = {"sink": sink, "offsets": lost_offsets.decided(sink, ledger, offsets).text.decode()}
    if restore is not None:
        kept = lost_offsets.restore(restore, sink, ledger, offsets)
        report |= {"restored": restore, "replaced": ", ".join(map(str, kept))}
    if as_json:
        say(json.dumps(report))
    elif restore is None and sys.stdout.isatty():
        page(report["offsets"])
    elif restore is None:
        exactly(report["offsets"])  # the bytes that Spark writes
    else:
        replaced = f" The replaced files are {report['replaced']}." if report["replaced"] else ""
        say(f"{restore}/offsets has the decided offsets of {sink} again.{replaced}")


def _chosen(
    admin: Admin, sinks: tuple[str, ...], age: str | None, target: str | None, undecided: bool
) -> list[str]:
    if not (sinks or age or target or undecided):
        raise click.UsageError("Name sinks, or select: --older-than, --target, --undecided.")
    found = [known(admin, name) for name in sinks] if sinks else admin.sinks()
    if age or target or undecided:
        least = seconds(age, "--older-than") if age else 0.0
        found = [one for one in found if one.matches(target, least, undecided=undecided)]
    return [one.name for one in found]


def _tell_dropped(ledgers: list[Ledger | None], *, as_json: bool) -> None:
    gone = [
        {"sink": one.name, "epoch": one.decision.epoch, "rows": one.decision.manifest.rows}
        for one in ledgers
        if one is not None and one.decision.manifest is not None
    ]
    if as_json:
        page(json.dumps(gone, indent=2))
        return
    for one in gone:
        say(
            f"{one['sink']}: epoch {one['epoch']}: {one['rows']:,} rows dropped, except those"
            " already applied"
        )
    say(f"{counted(len(gone), 'epoch')} dropped.")


def _applied(one: dict[str, Any], *, whole: bool) -> str:
    """What became of an epoch's rows; if it is not `whole`, some may be lost."""
    said = f"{one['applied']:,} of {one['rows']:,} rows applied now"
    said += f", {one['letters']:,} of them as dead letters" if one["letters"] else ""
    before = whole and one["applied"] < one["rows"]
    return f"{said}, the others were already applied" if before else said


def _damaged(sink: SinkStatus) -> dict[str, Any]:
    """The report of a sink with a damaged record, whose pending work is unknown."""
    return {
        "sink": sink.name,
        "epoch": None,
        "rows": None,
        "applied": 0,
        "letters": 0,
        "error": str(sink.damage),
    }


def _recovered(
    admin: Admin, sink: SinkStatus, accept_loss: bool, over_newer: bool
) -> dict[str, Any]:
    assert sink.ledger is not None and sink.ledger.decision.manifest is not None  # noqa: S101, PT018
    rows = sink.ledger.decision.manifest.rows
    report: dict[str, Any] = {"sink": sink.name, "epoch": sink.ledger.decision.epoch, "rows": rows}
    before, after = sink.ledger.totals.aside, None
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"epoch {sink.ledger.decision.epoch}", total=rows)
        try:
            after = admin.recover(
                sink,
                lambda more: progress.advance(bar, more),
                accept_loss=accept_loss,
                over_newer=over_newer,
            )
        except SparkonceError as error:
            # The command still recovers the other sinks, and then exits with 1.
            report["error"] = str(error)
        letters = 0 if after is None else after.totals.aside - before
        return {**report, "applied": int(progress.tasks[bar].completed), "letters": letters}


PATIENCE = 60.0
"""Seconds for which an epoch may be decided and not finished before it counts as a risk."""

SIGNS = {Level.FIT: ("ok", "green"), Level.RISK: ("risk", "yellow"), Level.UNFIT: ("no", "red")}


@click.command()
@over_store
@as_json
def doctor(admin: Admin, as_json: bool) -> None:
    """Check what the guarantee depends on: rights, versions, settings, clock, space, sinks.

    It exits with 1 if a query would fail.
    """
    found = []
    for one in _findings(admin):
        found.append(one)
        if not as_json:
            sign, colour = SIGNS[one.level]
            say(f"{click.style(f'{sign:<5}', fg=colour)}{one}")
    if as_json:
        report = [{**one._asdict(), "level": one.level.value} for one in found]
        page(json.dumps(report, indent=2))
    if any(one.level is Level.UNFIT for one in found):
        raise click.exceptions.Exit(1)


def _findings(admin: Admin) -> Iterator[Finding]:
    """The findings one by one, up to the first with which a query would fail."""
    try:
        if isinstance(admin.store, Examined):
            yield from admin.store.examine()
        yield from _findings_of(admin.sinks())
    except SparkonceError as error:
        yield unfit(error)


def _findings_of(sinks: Iterable[SinkStatus]) -> Iterator[Finding]:
    """The findings in the ledgers and the log."""
    count = 0
    for sink in sinks:
        count += 1
        ledger = sink.ledger
        decided_at = ledger.decision.decided_at if ledger is not None else 0.0
        if ledger is not None and sink.is_unfinished and time.time() - decided_at > PATIENCE:
            yield risk(
                f"Epoch {ledger.decision.epoch} of {sink.name} was decided {ago(decided_at)}, and"
                " is not finished",
                "its query has ended, or the server rejects a row",
                "restart the query, or run sparkonce recover URL, which shows the row",
            )
        if ledger is not None and ledger.totals.unstored:
            yield risk(
                f"The last {ledger.totals.unstored:,} rows of {sink.name} all became dead letters",
                "the target may be broken, and reject good rows, too",
                "read the reasons: sparkonce letters URL",
            )
        if over := sink.leftovers(GRACE):
            size = sum(staged.bytes for staged in over)
            yield risk(
                f"{len(over)} attempts of {sink.name} are left over, {size:,} bytes",
                "no epoch can ever apply them; they only use space",
                "run sparkonce gc URL",
            )
    yield fit(counted(count, "sink"))
