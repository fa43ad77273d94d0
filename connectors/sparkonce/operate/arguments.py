"""What commands have in common: URL, options of the connector, sinks that are named, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from sparkonce import option_values as values
from sparkonce import options
from sparkonce.errors import OptionError, SparkonceError, in_one_line
from sparkonce.logs import tame
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.option_values import suggestion
from sparkonce.registry import for_url, names

STYLE = re.compile(r"(\x1b\[(?:0|1|31|32|33)m)")
"""The styles of this package: bold, and the colours of ``sparkonce doctor``."""


def say(line: str, *, err: bool = False) -> None:
    """Print a line; each character that a terminal does not show is escaped.

    Args:
        line: may have styles of this package.
        err: whether it goes to standard error.
    """
    click.echo(_tame(line), err=err)


def page(text: str) -> None:
    """Print lines that end by themselves, each as `say` does."""
    for line in text.splitlines():
        say(line)


def confirm(question: str, *, err: bool) -> None:
    """Ask, and end the command unless the answer is yes.

    Args:
        question: to be asked.
        err: whether it goes to standard error.
    """
    click.confirm(in_one_line(question), abort=True, err=err)


def exactly(text: str) -> None:
    """Print a text for a file or another program: to the byte."""
    click.echo(text, nl=False)


def _tame(line: str) -> str:
    parts = STYLE.split(line)
    return "".join(part if at % 2 else in_one_line(part) for at, part in enumerate(parts))


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


def over_store(command: Command) -> Command:
    """Give a command its URL and its connector's options."""

    @click.argument("url")
    @with_options
    @wraps(command)
    def run(url: str, given: tuple[str, ...], **rest: Any) -> None:
        command(admin_of(url, given), **rest)

    return run


def known(admin: Admin, sink: str) -> SinkStatus:
    """The sink of that name.

    Raises:
        OptionError: there is none.
    """
    found = admin.sink(sink)
    if not found.known:
        names = [one.name for one in admin.sinks()]
        raise OptionError(
            f"No sink is named {sink!r}",
            why="the store has no ledger of that name, and no staged rows",
            todo=suggestion(sink, names) or "name one of those that sparkonce status lists",
        )
    return found


def admin_of(url: str, given: tuple[str, ...]) -> Admin:
    """The commands over the store at a URL."""
    connector = for_url(url)
    raw = {"url": url, **dict(pair(text) for text in given)}
    return Admin(connector.connect(options.parse(connector.options, raw, complete=False)))


def pair(text: str) -> tuple[str, str]:
    """The name and the value of an option.

    Raises:
        BadParameter: it is none.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--option")
    return name, value


def seconds(text: str, option: str = "--grace") -> float:
    """A time, such as 90s or 30d.

    Raises:
        BadParameter: it is none.
    """
    try:
        return float(GRACE(text))
    except ValueError as error:
        raise click.BadParameter(f"it must be {error}", param_hint=option) from None


def _hint(error: click.ClickException) -> str:
    """What may stand in place of an argument that is missing."""
    if not isinstance(error, click.MissingParameter) or error.param is None:
        return ""
    return {
        "FORMAT": f"One of {', '.join(names())}.",
        "SINK": "sparkonce status URL lists the sinks.",
        "URL": "It looks like redis://localhost:6379/0.",
    }.get(error.param.metavar or str(error.param.name).upper(), "")


class Commands(click.Group):
    """Commands whose errors are told in one way: without a traceback, and as JSON on demand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        # Before the arguments are parsed: a wrong use is told as JSON, too.
        ctx.meta["as_json"] = "--json" in args
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """See click."""
        tame()
        try:
            return super().invoke(ctx)
        except SparkonceError as error:
            if not ctx.meta["as_json"]:
                raise click.ClickException("\n".join(error.lines())) from None
            told, code = error.to_json(), 1
        except click.ClickException as error:
            todo = _hint(error)
            if not ctx.meta["as_json"]:
                if not todo:
                    raise
                raise click.UsageError(f"{error.format_message()} {todo}", ctx) from None
            name, what = type(error).__name__, error.format_message()
            told, code = {"type": name, "what": what, "why": "", "todo": todo}, error.exit_code
        say(json.dumps({"error": told}))
        raise click.exceptions.Exit(code)
