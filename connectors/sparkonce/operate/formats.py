"""Commands that ask no ledger: options, ddl, check."""

from __future__ import annotations

import json

import click

from sparkonce.errors import SparkonceError
from sparkonce.operate.arguments import as_json, pair, with_options
from sparkonce.operate.checkup import checkup
from sparkonce.operate.printing import page_of_options
from sparkonce.options import known
from sparkonce.reading import Readable
from sparkonce.registry import for_name


@click.command("options")
@click.argument("name", metavar="FORMAT")
@as_json
def show_options(name: str, as_json: bool) -> None:
    """Print the options of FORMAT (redis, mysql, ...) in Markdown: of writes, and of reads."""
    connector = for_name(name)
    reads = connector.reads if isinstance(connector, Readable) else ()
    if as_json:
        of_reads = [{**option.to_json(), "of": "reads"} for option in known(reads)]
        shown = [option.to_json() for option in known(connector.options)]
        click.echo(json.dumps([*shown, *of_reads], indent=2))
    else:
        click.echo(page_of_options(connector.name, connector.options, reads), nl=False)


@click.command()
@click.argument("name", metavar="FORMAT")
@as_json
def ddl(name: str, as_json: bool) -> None:
    """Print the statements that make the own tables of FORMAT (mysql, ...)."""
    statements = for_name(name).ddl()
    if as_json:
        click.echo(json.dumps(statements, indent=2))
    elif statements:
        click.echo("".join(f"{statement};\n\n" for statement in statements), nl=False)
    else:
        click.echo(f"The connector {name} needs no tables of its own.")


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
                click.echo(said)
    except SparkonceError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"checked": done, "error": error.to_json()}))
        raise click.exceptions.Exit(1) from None
    click.echo(json.dumps({"checked": done}) if as_json else "No query was started.")
