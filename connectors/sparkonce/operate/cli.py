"""The ``sparkonce`` command: manages the ledgers of a store, without Spark."""

from __future__ import annotations

import click

from sparkonce import __version__
from sparkonce.operate import formats, letters, sinks, watching
from sparkonce.operate.arguments import Commands


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Manage the ledgers of exactly-once sinks for Spark Structured Streaming.

    URL is the URL that the query uses, such as redis://localhost:6379/0.
    """


for command in (
    *(sinks.status, sinks.recover, sinks.gc, sinks.forget, sinks.show_offsets),
    *(letters.letters, sinks.doctor, watching.watch, watching.metrics),
    *(formats.check, formats.show_options, formats.ddl),
):
    main.add_command(command)
