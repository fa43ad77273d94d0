"""All that the command writes to a terminal: names that others chose can't steer it."""

from __future__ import annotations

import re

import click

from sparkonce.errors import in_one_line

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
