"""What commands have in common: URL, options of the connector, sinks that are named, JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from sparkonce import option_values as values
from sparkonce import options
from sparkonce.errors import OptionError
from sparkonce.operate.admin import Admin, SinkStatus
from sparkonce.registry import for_url
from sparkonce.suggestions import suggestion

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
