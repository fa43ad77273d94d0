"""Commands that ask no ledger: options, ddl, check."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from sparkonce.errors import SparkonceError
from sparkonce.feeds import Followable
from sparkonce.operate.arguments import as_json, pair, with_options
from sparkonce.operate.checkup import checkup
from sparkonce.operate.printing import page_of_options
from sparkonce.operate.terminal import page, say
from sparkonce.options import Option
from sparkonce.reading import Readable
from sparkonce.registry import for_name
from sparkonce.store import Connector


@click.command("options")
@click.argument("name", metavar="FORMAT")
@as_json
def show_options(name: str, as_json: bool) -> None:
    """Print the options of FORMAT (redis, mysql, ...) in Markdown: of writes, reads and streams."""
    connector = for_name(name)
    sources = sources_of(connector)
    if as_json:
        shown = [option.to_json() for option in connector.options]
        for source, table in sources.items():
            shown += [{**option.to_json(), "of": source} for option in table]
        page(json.dumps(shown, indent=2))
    else:
        page(page_of_options(connector.name, connector.options, sources))


def sources_of(connector: Connector) -> dict[str, Sequence[Option]]:
    """The options of a connector's sources, by what Spark calls each."""
    found = dict[str, Sequence[Option]]()
    if isinstance(connector, Readable):
        found["spark.read"] = connector.reads
    if isinstance(connector, Followable):
        found["spark.readStream"] = connector.follows
    return found


@click.command()
@click.argument("name", metavar="FORMAT")
@as_json
def ddl(name: str, as_json: bool) -> None:
    """Print the statements that make the own tables of FORMAT (mysql, ...)."""
    statements = for_name(name).ddl()
    if as_json:
        page(json.dumps(statements, indent=2))
    elif statements:
        page("".join(f"{statement};\n\n" for statement in statements))
    else:
        say(f"The connector {name} needs no tables of its own.")


@click.command()
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
        for said in checkup(for_name(name), dict(map(pair, given)), schema):
            done.append(said)
            if not as_json:
                say(said)
    except SparkonceError as error:
        if not as_json:
            raise
        say(json.dumps({"checked": done, "error": error.to_json()}))
        raise click.exceptions.Exit(1) from None
    say(json.dumps({"checked": done}) if as_json else "No query was started.")
