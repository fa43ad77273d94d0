"""How the commands of ``sparkonce`` tell their errors."""

from __future__ import annotations

import json
from typing import Any

import click

from sparkonce.errors import SparkonceError
from sparkonce.logs import tame
from sparkonce.operate.terminal import say
from sparkonce.registry import names


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
