"""The address of the server: parses URLs in the form of MySQL and of JDBC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from sparkonce.errors import OptionError
from sparkonce.urls import login, require_server

_FORM = re.compile(
    r"(jdbc:)?(mysql|mariadb)://([^/?#\s]*@)?([\w.-]+|\[[0-9a-fA-F:.]+\])?(:[0-9]{1,5})?"
    r"(/(?:[\w$.-]|%[0-9a-fA-F]{2})*)?"
)
_PARAMETER = re.compile(r"([A-Za-z][\w.]*)=[^@]*")
"""A certain parameter of a URL: with an @ it may be the rest of a password."""
_LOCAL = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


@dataclass(frozen=True)
class Address:
    """A server and a user.

    Attributes:
        database: the database that the URL names; empty if it names none.
    """

    host: str
    port: int
    database: str
    user: str | None
    password: str | None

    @property
    def local(self) -> bool:
        """Whether the server is on this host."""
        return _LOCAL.fullmatch(self.host) is not None


def url(text: str) -> str:
    """Parse option ``url``.

    Raises:
        ValueError: the text is not a URL, or has parts that would be silently ignored.
    """
    plain, _, parameters = text.partition("?")
    if parameters and _FORM.fullmatch(plain):
        raise ValueError(
            f"without parameters{_names(parameters)}; options user, password and tls* replace the"
            " relevant ones, and the others are specific to Connector/J"
        )
    if not _FORM.fullmatch(text):
        raise ValueError(
            "like mysql://user:password@host:3306/database (or mariadb://, or jdbc:mysql://);"
            " in a password, write # / ? @ as %23 %2F %3F %40; in a database's name, write all"
            " characters except letters, digits and _ $ . - in this way; nothing may follow it"
        )
    require_server(text.removeprefix("jdbc:"))
    return text


def _names(parameters: str) -> str:
    found = [_PARAMETER.fullmatch(part) for part in parameters.split("&")]
    names = [one[1] for one in found if one]
    return f" ({', '.join(names)})" if len(names) == len(found) else ""


def parse(options: Mapping[str, Any]) -> Address:
    """The address in options ``url`` and ``user``.

    Raises:
        OptionError: the URL and an option both set the user or the password.
    """
    text = str(options["url"]).removeprefix("jdbc:")
    parts, (user, password) = urlsplit(text), login(text, options)
    return Address(
        host=parts.hostname or "localhost",
        port=parts.port or 3306,
        database=unquote(parts.path.strip("/")),
        user=user,
        password=password,
    )


def database(options: Mapping[str, Any]) -> str:
    """The database of target, ledger and log.

    Raises:
        OptionError: neither the URL nor option ``dbtable`` names one.
    """
    named: tuple[str, ...] = options.get("dbtable") or ()
    found = named[0] if len(named) == 2 else parse(options).database
    if not found:
        raise OptionError(
            "Neither option url nor option dbtable names a database",
            why="target and ledger need a database",
            todo="write mysql://host:3306/database, or dbtable=database.table",
        )
    return found
