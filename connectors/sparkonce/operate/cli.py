"""The ``sparkonce`` command: look after the ledgers of a store, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress

from sparkonce import __version__, options
from sparkonce import option_values as values
from sparkonce.errors import SparkonceError
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.operate.checkup import checkup
from sparkonce.operate.commands import Commands
from sparkonce.operate.printing import described, page_of_options
from sparkonce.registry import for_name, for_url
from sparkonce.spark import lost_offsets

Command = Callable[..., None]

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
with_options = click.option(
    "-o",
    "--option",
    "given",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the connector, such as passwordFile=/run/secret or keyPrefix=x.",
)
yes = click.option("--yes", is_flag=True, help="Do not ask.")
GRACE = values.seconds(0, 365 * 86400)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Exactly-once sinks for Spark Structured Streaming: look after their ledgers.

    URL is the one that the query uses, such as redis://localhost:6379/0.
    """


def over_store(command: Command) -> Command:
    """Give a command its URL and its connector's options."""

    @click.argument("url")
    @with_options
    @wraps(command)
    def run(url: str, given: tuple[str, ...], **rest: Any) -> None:
        command(_admin(url, given), **rest)

    return run


@main.command()
@over_store
@click.argument("sink", required=False)
@as_json
def status(admin: Admin, sink: str | None, as_json: bool) -> None:
    """Show every sink, or SINK alone: query, epoch, rows, what is staged or waits."""
    sinks = admin.sinks() if sink is None else [_known(admin, sink)]
    if as_json:
        click.echo(json.dumps([sink.to_json() for sink in sinks], indent=2))
    elif sinks:
        click.echo("\n".join(described(sink) for sink in sinks), nl=False)
    else:
        click.echo("No sink has written to this store.")


@main.command()
@over_store
@click.option("--accept-loss", is_flag=True, help="Where the store lost chunks, leave them out.")
@click.option("--sink", "only", metavar="SINK", help="This sink alone, as status names it.")
@as_json
def recover(admin: Admin, accept_loss: bool, only: str | None, as_json: bool) -> None:
    """Finish every epoch that is decided and not yet applied."""
    sinks = admin.sinks() if only is None else [_known(admin, only)]
    unfinished = [sink for sink in sinks if _unfinished(sink)]
    done = [_recovered(admin, sink, accept_loss) for sink in unfinished]
    failed = sum("error" in one for one in done)
    if as_json:
        click.echo(json.dumps(done, indent=2))
    else:
        for one in done:
            said = one.get("error", f"{one['applied']:,} of {one['rows']:,} rows applied now")
            click.echo(f"{one['sink']}: epoch {one['epoch']}: {said}")
        click.echo(f"{len(done) - failed} epochs recovered.")
    if failed:
        raise click.exceptions.Exit(1)


@main.command()
@over_store
@click.option(
    "--grace",
    default="1h",
    show_default=True,
    metavar="TIME",
    help="Time, such as 90s, 15m, 12h or 7d, without a new chunk of its run, after which the rows"
    " of an undecided epoch are dropped: give more than any epoch computes before its next rows"
    " come. What is over goes at once.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be dropped.")
@yes
@as_json
def gc(admin: Admin, grace: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Drop staged rows that no epoch will ever take: of failed tasks, of drivers that died.

    Ledgers of queries that decided nothing go, and the last trace of sinks that were forgotten 30
    days ago.
    """
    age = _seconds(grace)
    found = [(sink, sink.leftovers(age)) for sink in admin.sinks()]
    found = [(sink, over) for sink, over in found if over]
    if not as_json:
        for sink, over in found:
            chunks = sum(staged.chunks for staged in over)
            click.echo(f"{sink.name}: {len(over)} attempts, {chunks} chunks")
    if found and not dry_run and not yes:
        click.confirm("Drop them?", abort=True, err=as_json)  # stdout is for the JSON then
    dropped = 0 if dry_run else sum(admin.gc(sink, age) for sink, _ in found)
    if not dry_run:
        admin.sweep(age)  # behind gc: a ledger with staged rows stays
    total = sum(len(over) for _, over in found)
    if as_json:
        click.echo(json.dumps({"found": total, "dropped": dropped}))
    else:
        click.echo(f"{total} attempts found, {dropped} dropped.")


@main.command()
@over_store
@click.argument("sinks", nargs=-1, metavar="[SINK]...")
@click.option("--older-than", metavar="TIME", help="All that were last written before, as by 30d.")
@click.option("--target", help="All that write to this target; `sparkonce status` shows it.")
@click.option("--undecided", is_flag=True, help="All that have decided nothing.")
@yes
@as_json
def forget(admin: Admin, sinks: tuple[str, ...], **how: Any) -> None:
    """Retire each SINK and free its checkpoint path. A query that still writes to it is refused.

    Options choose among the sinks that are named, or among all; each must hold.
    """
    names = _chosen(admin, sinks, how["older_than"], how["target"], how["undecided"])
    if not how["yes"] and names:
        listed = ", ".join(names)
        question = f"Forget {listed}? Its next commit will be refused"
        click.confirm(question, abort=True, err=how["as_json"])
    failed: dict[str, str] = {}
    for name in names:
        try:
            admin.forget(name)
        except SparkonceError as error:
            failed[name] = str(error)
        if not how["as_json"]:
            click.echo(f"{name}: {failed[name]}" if name in failed else f"{name} is forgotten.")
    if how["as_json"]:
        forgotten = [name for name in names if name not in failed]
        click.echo(json.dumps({"forgotten": forgotten, "failed": failed}))
    elif not names:
        click.echo("No sink is like that.")
    if failed:
        raise click.exceptions.Exit(1)


@main.command("offsets")
@over_store
@click.argument("sink")
@click.option("--restore", metavar="CHECKPOINT", help="Put them back into this local folder.")
@as_json
def show_offsets(admin: Admin, sink: str, restore: str | None, as_json: bool) -> None:
    """Show what the last decided epoch of SINK has read: Spark's offsets/N, as Spark writes it.

    A host that crashes may lose offsets/N, which Spark does not sync to disk; Spark then reads
    other rows under this number, and the sink refuses them (CheckpointDiverged). Stop the query,
    put the offsets back with --restore, and start it again.
    """
    ledger = _known(admin, sink).ledger
    offsets = admin.offsets(ledger)
    told = {"sink": sink, "offsets": lost_offsets.decided(sink, ledger, offsets).text.decode()}
    if restore is not None:
        kept = lost_offsets.restore(restore, sink, ledger, offsets)
        told |= {"restored": restore, "replaced": ", ".join(map(str, kept))}
    if as_json:
        click.echo(json.dumps(told))
    elif restore is None:
        click.echo(told["offsets"], nl=False)
    else:
        replaced = f" What was there is in {told['replaced']}." if told["replaced"] else ""
        click.echo(f"{restore}/offsets holds again what {sink} has decided.{replaced}")


@main.command("options")
@click.argument("scheme")
def show_options(scheme: str) -> None:
    """Print the options of a connector (redis, mysql, ...) in Markdown."""
    connector = for_name(scheme)
    click.echo(page_of_options(connector.name, connector.options), nl=False)


@main.command()
@click.argument("scheme")
def ddl(scheme: str) -> None:
    """Print the statements that make a connector's own tables (mysql, ...)."""
    statements = for_name(scheme).ddl()
    if not statements:
        raise click.ClickException(f"The connector of {scheme} needs no tables of its own.")
    click.echo("".join(f"{statement};\n\n" for statement in statements), nl=False)


@main.command()
@click.argument("name", metavar="FORMAT")
@with_options
@click.option(
    "--schema",
    help='Columns of the query, such as "id bigint, name string", or the JSON of df.schema.json().',
)
@as_json
def check(name: str, given: tuple[str, ...], schema: str | None, as_json: bool) -> None:
    """Look at what a query of FORMAT (redis, mysql, ...) would find, without Spark.

    It does what the start of a query does: it makes the connector's own tables or indices, and with
    createTable or createIndex the target. No row is written.
    """
    done: list[str] = []
    try:
        for said in checkup(for_name(name), dict(map(_pair, given)), schema):
            done.append(said)
            if not as_json:
                click.echo(said)
    except SparkonceError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"checked": done, "error": error.to_json()}))
        raise click.exceptions.Exit(1) from None
    click.echo(json.dumps({"checked": done}) if as_json else "No query was started.")


def _chosen(
    admin: Admin, sinks: tuple[str, ...], age: str | None, target: str | None, undecided: bool
) -> list[str]:
    if not (sinks or age or target or undecided):
        raise click.UsageError("Name sinks, or say which: --older-than, --target, --undecided.")
    found = [_known(admin, name) for name in sinks] if sinks else admin.sinks()
    if age or target or undecided:
        seconds = _seconds(age, "--older-than") if age else 0.0
        found = [one for one in found if one.is_one_of(target, seconds, undecided=undecided)]
    return [one.name for one in found]


def _known(admin: Admin, sink: str) -> SinkStatus:
    found = admin.sink(sink)
    if not found.known:
        raise click.ClickException(f"No sink is named {sink!r}; see sparkonce status.")
    return found


def _admin(url: str, given: tuple[str, ...]) -> Admin:
    connector = for_url(url)
    raw = {"url": url, **dict(_pair(text) for text in given)}
    return Admin(connector.connect(options.parse(connector.options, raw, complete=False)))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
    return name, value


def _seconds(text: str, option: str = "--grace") -> float:
    try:
        return float(GRACE(text))
    except ValueError as error:
        raise click.BadParameter(f"it must be {error}", param_hint=option) from None


def _unfinished(sink: SinkStatus) -> bool:
    return sink.ledger is not None and sink.ledger.manifest is not None


def _recovered(admin: Admin, sink: SinkStatus, accept_loss: bool) -> dict[str, Any]:
    assert sink.ledger is not None and sink.ledger.manifest is not None  # noqa: S101, PT018
    rows = sink.ledger.manifest.rows
    told: dict[str, Any] = {"sink": sink.name, "epoch": sink.ledger.epoch, "rows": rows}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(f"epoch {sink.ledger.epoch}", total=rows)
        try:
            admin.recover(sink, lambda more: progress.advance(bar, more), accept_loss=accept_loss)
        except SparkonceError as error:
            # The other sinks are recovered all the same; the command then exits with 1.
            told["error"] = str(error)
        return {**told, "applied": int(progress.tasks[bar].completed)}
