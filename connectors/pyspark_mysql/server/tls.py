"""TLS to the server: on and verified by default, unless no network lies between."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from pyspark_mysql.server.address import Address
from sparkonce import connections
from sparkonce.errors import OptionError


def context(options: Mapping[str, Any], address: Address) -> ssl.SSLContext | None:
    """What the client asks of the server's certificate; None for a connection without TLS.

    Raises:
        OptionError: options contradict each other, or a file is not there.
    """
    given = connections.given(options)
    mode = options["tlsMode"] or ("off" if address.local and not given else "verify")
    if mode == "off":
        if given:
            raise OptionError(
                f"Options tlsMode=off and {next(iter(given))} contradict each other",
                why="without TLS no certificate is looked at",
                todo="leave one of them out",
            )
        return None
    connections.require_there(given)
    return connections.context(given, verify=mode == "verify")
