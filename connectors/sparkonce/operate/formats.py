"""Commands that need no ledger: options, ddl, check."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import click
import pyarrow as pa

from sparkonce import options
from sparkonce.errors import OptionError, SparkonceError
from sparkonce.operate.arguments import as_json, page, page_of_options, pair, say, with_options
from sparkonce.options import Option
from sparkonce.reading import Followable, Readable
from sparkonce.store import Connector, KeepsTables, for_name
from sparkonce.values import spark_types

UNREADABLE = (
    *(AssertionError, AttributeError, ImportError, KeyError, RecursionError),
    *(TypeError, ValueError),
)
"""Errors that Spark raises for JSON that is not a schema."""


def _checkup(connector: Connector, raw: Mapping[str, str], schema: str | None) -> Iterator[str]:
    """Yield the result of each check that passes; they are the checks at the start of a query.

    The schema is DDL or the JSON of ``df.schema.json()``. Without it, only options and server are
    checked.
    """
    parsed = options.parse(connector.options, raw)
    yield f"options: all {len(raw)} are known and valid"
    plan = None
    if schema is not None:
        columns = read_schema(schema)
        plan = connector.plan(parsed, columns)
        yield f"schema: options and columns fit; {len(columns)} columns go to {plan.target}"
    connector.connect(parsed).check(plan)
    yield "server: reachable, and its settings and the connector's rights suffice"
    fits = f"{plan.target} accepts these columns" if plan else "not checked without --schema"
    yield f"target: {fits}"


def read_schema(text: str) -> pa.Schema:
    """Parse a schema: DDL, or Spark's JSON.

    Raises:
        OptionError: the text is neither, or has a column that can't be written.
    """
    if not text.lstrip().startswith("{"):
        return spark_types.parse(text)
    # Only JSON needs PySpark; DDL does not.
    from pyspark.sql.types import StructType

    from sparkonce.spark.types import arrow_schema

    try:
        schema = StructType.fromJson(json.loads(text))
    except UNREADABLE as error:
        raise OptionError(
            "The schema can't be read",
            why=f"it begins like JSON, but is not the output of df.schema.json(): {error}",
            todo='pass that, or names and types, such as "id bigint, tags array<string>"',
        ) from None
    return arrow_schema(schema)


@click.command("options")
@click.argument("name", metavar="FORMAT")
@as_json
def show_options(name: str, as_json: bool) -> None:
    """Print all options of FORMAT (redis, mysql, ...): for writes, reads and streams."""
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
    """The options of a connector's sources, by Spark's name for each."""
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
    """Print the statements that create the connector's own tables for FORMAT (mysql, ...)."""
    connector = for_name(name)
    statements = connector.ddl() if isinstance(connector, KeepsTables) else []
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
    """Run the checks of a query of FORMAT (redis, mysql, ...), without Spark.

    Like the start of a query, it creates the connector's own tables or indices, and with
    createTable or createIndex the target. It writes no row.
    """
    done: list[str] = []
    try:
        for said in _checkup(for_name(name), dict(map(pair, given)), schema):
            done.append(said)
            if not as_json:
                say(said)
    except SparkonceError as error:
        if not as_json:
            raise
        say(json.dumps({"checked": done, "error": error.to_json()}))
        raise click.exceptions.Exit(1) from None
    say(json.dumps({"checked": done}) if as_json else "No query was started.")
