"""Shared parts of the commands: URL, options of the connector, names of sinks, and output."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

import click

from sparkonce import option_values as values
from sparkonce import options
from sparkonce.errors import OptionError, SparkonceError, escape_log_messages, in_one_line
from sparkonce.exactly_once.totals import Totals
from sparkonce.operate.admin import GRACE, Admin, SinkStatus, ago, counted
from sparkonce.option_values import suggestion
from sparkonce.options import Option
from sparkonce.store import for_url, names

STYLE = re.compile(r"(\x1b\[(?:0|1|31|32|33)m)")
"""The styles of this package: bold, and the colours of ``sparkonce doctor``."""


def say(line: str, *, err: bool = False) -> None:
    """Print a line, with each character escaped that a terminal does not show.

    The styles of this package are kept.
    """
    parts = enumerate(STYLE.split(line))
    shown = "".join(part if at % 2 else in_one_line(part) for at, part in parts)
    click.echo(shown, err=err)


def page(text: str) -> None:
    """Print each line of a text as `say` does."""
    for line in text.splitlines():
        say(line)


def confirm(question: str, *, err: bool) -> None:
    """Ask, and end the command unless the answer is yes."""
    click.confirm(in_one_line(question), abort=True, err=err)


def exactly(text: str) -> None:
    """Print a text for a file or another program, byte by byte."""
    click.echo(text, nl=False)


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
yes = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
SECONDS = values.seconds(0, 365 * 86400)


def over_store(command: Command) -> Command:
    """Add the URL and the options of the connector to a command."""

    @click.argument("url")
    @with_options
    @wraps(command)
    def run(url: str, given: tuple[str, ...], **rest: Any) -> None:
        command(admin_of(url, given), **rest)

    return run


def known(admin: Admin, sink: str) -> SinkStatus:
    """The sink of that name, or the only sink with that `sinkId`.

    Raises:
        OptionError: no sink has that name, or several have that `sinkId`.
    """
    found = admin.sink(sink)
    if not found.known:
        names = [one.name for one in admin.sinks()]
        of_id = [name for name in names if name.rpartition("@")[0] == sink]
        if len(of_id) == 1:
            return admin.sink(of_id[0])
        raise OptionError(
            f"No sink is named {sink!r}",
            why="the store has neither a ledger nor staged rows under that name",
            todo=suggestion(sink, names) or "name one of those that sparkonce status lists",
        )
    return found


def admin_of(url: str, given: Sequence[str]) -> Admin:
    """The operations on the store at a URL."""
    connector = for_url(url)
    raw = {"url": url, **dict(pair(text) for text in given)}
    return Admin(connector.connect(options.parse(connector.options, raw, complete=False)))


def pair(text: str) -> tuple[str, str]:
    """The name and the value of an option.

    Raises:
        BadParameter: the text has another form.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
    return name, value


def seconds(text: str, option: str = "--grace") -> float:
    """The seconds of a time such as 90s or 30d.

    Raises:
        BadParameter: the text is not a time.
    """
    try:
        return float(SECONDS(text))
    except ValueError as error:
        raise click.BadParameter(f"it must be {error}", param_hint=option) from None


def _hint(error: click.ClickException) -> str:
    """Possible values of a missing argument."""
    if not isinstance(error, click.MissingParameter) or error.param is None:
        return ""
    return {
        "FORMAT": f"One of {', '.join(names())}.",
        "SINK": "sparkonce status URL lists the sinks.",
        "URL": "It looks like redis://localhost:6379/0.",
    }.get(error.param.metavar or str(error.param.name).upper(), "")


class Commands(click.Group):
    """Commands that report errors without a traceback, and as JSON on request."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        # Before click parses the arguments: usage errors are JSON, too.
        ctx.meta["as_json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        escape_log_messages()
        try:
            return super().invoke(ctx)
        except SparkonceError as error:
            if not ctx.meta["as_json"]:
                raise click.ClickException("\n".join(error.lines())) from None
            report, code = error.to_json(), 1
        except click.ClickException as error:
            todo = _hint(error)
            if not ctx.meta["as_json"]:
                if not todo:
                    raise
                raise click.UsageError(f"{error.format_message()} {todo}", ctx) from None
            name, what = type(error).__name__, error.format_message()
            report, code = {"type": name, "what": what, "why": "", "todo": todo}, error.exit_code
        say(json.dumps({"error": report}))
        raise click.exceptions.Exit(code)


FEW = 5
"""Most sinks that are described in full; more get one line each."""

PAGE = 40
"""Lines of a page."""


def listed(sinks: Sequence[SinkStatus], *, every: bool = False) -> str:
    """A description of several sinks, on one page.

    If they need more than a page, only `every` shows all of them.
    """
    if len(sinks) <= FEW:
        return "\n".join(map(described, sinks))
    first = sorted(sinks, key=urgency)
    shown = first if every else first[:PAGE]
    head = ("SINK", "EPOCH", "WRITTEN", "ROWS", "LETTERS", "STAGED", "STATE", "TARGET")
    lines = [head, *map(_line, shown)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = "".join(f"{_padded(line, widths)}\n" for line in lines)
    if left := len(first) - len(shown):
        text += f"and {left:,} more, which wait for nothing or have an older last write: --all\n"
    return text


def urgency(sink: SinkStatus) -> tuple[bool, bool, float]:
    """A sort key: sinks with pending work first, then those with the newest writes."""
    updated = sink.ledger.updated if sink.ledger else 0.0
    return not sink.is_unfinished, not sink.staged, -updated


def _line(sink: SinkStatus) -> tuple[str, ...]:
    ledger, chunks = sink.ledger, sink.staged_chunks
    if ledger is None:
        return in_one_line(sink.name), "", "", "", "", str(chunks or ""), _state(sink), ""
    written = str(ledger.decision.epoch) if ledger.decision.epoch >= 0 else "", ago(ledger.updated)
    aside = f"{ledger.totals.aside:,}" if ledger.totals.aside else ""
    counts = f"{ledger.totals.rows:,}", aside, str(chunks or "")
    return in_one_line(sink.name), *written, *counts, _state(sink), in_one_line(ledger.target)


def _state(sink: SinkStatus) -> str:
    """What the sink waits for, in few words; the store does not know whether its query runs."""
    if sink.damage is not None:
        return "damaged"
    return sink.state


def _padded(line: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip()


def described(sink: SinkStatus) -> str:
    """A description of a sink, line by line."""
    ledger = sink.ledger
    lines = {"state": str(sink.damage or _state(sink))}
    if ledger is not None:
        lines |= {
            "target": ledger.target,
            "query": f"{ledger.owner.query_id} (generation {ledger.owner.generation})",
            "checkpoint": ledger.owner.checkpoint or "none: a batch, or a temporary folder",
            "epoch": f"{ledger.decision.epoch}, written {ago(ledger.updated)}",
            "rows": f"{ledger.totals.rows:,} in {counted(ledger.totals.epochs, 'epoch')}",
        }
        if ledger.totals.aside:
            lines["dead letters"] = _aside(ledger.totals)
    lines["staged"] = _staged(sink)
    body = "\n".join(f"  {name:<13}{in_one_line(value)}" for name, value in lines.items())
    return f"{click.style(in_one_line(sink.name), bold=True)}\n{body}\n"


def _staged(sink: SinkStatus) -> str:
    """The chunks in the log. The store does not know which of their tasks still run."""
    if not sink.staged_chunks:
        return "nothing"
    chunks = counted(sink.staged_chunks, "chunk")
    attempts = counted(len(sink.staged), "attempt")
    newest = ago(time.time() - min(staged.age for staged in sink.staged))
    over = len(sink.leftovers(GRACE))
    left = f"; sparkonce gc drops {counted(over, 'attempt')}" if over else ""
    return f"{chunks} of {attempts}, the last {newest}{left}"


def _aside(totals: Totals) -> str:
    since = f", {totals.unstored:,} of them since the last stored row" if totals.unstored else ""
    return f"{totals.aside:,} rows{since}"


def page_of_options(
    name: str, table: Iterable[Option], sources: Mapping[str, Iterable[Option]] | None = None
) -> str:
    """The page of a connector's options, in Markdown.

    `sources` are the options of ``spark.read`` and ``spark.readStream``.
    """
    rows = [
        f'# Options of format("{name}")',
        "",
        "Names are case-insensitive, and an unknown name is an error. This page is the output of",
        f"`sparkonce options {name}`.",
        "",
        *_rows(table),
    ]
    for source, one in (sources or {}).items():
        rows += ["", f"## Options of {source}", "", *_rows(one)]
    return "\n".join(rows) + "\n"


def _rows(table: Iterable[Option]) -> Iterator[str]:
    yield "option | default | meaning"
    yield "---|---|---"
    for option in table:
        given = option.default
        shown = json.dumps(given) if isinstance(given, (bool, dict)) else given
        default = "" if given is None else f"`{shown}`"
        default = "required" if option.required else default
        yield f"`{option.name}` | {default} | {option.meaning}"
