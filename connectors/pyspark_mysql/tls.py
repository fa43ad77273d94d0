"""TLS to the server: on and verified by default, unless no network lies between."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark_mysql.address import Address
from sparkonce.errors import OptionError

FILES = ("tlsCaFile", "tlsCertFile", "tlsKeyFile")


def context(options: Mapping[str, Any], address: Address) -> ssl.SSLContext | None:
    """What the client asks of the server's certificate; None for a connection without TLS.

    Raises:
        OptionError: options contradict each other, or a file is not there.
    """
    given = {name: str(options[name]) for name in FILES if options.get(name)}
    mode = options["tlsMode"] or ("off" if address.local and not given else "verify")
    if mode == "off":
        if given:
            raise OptionError(
                f"Options tlsMode=off and {next(iter(given))} contradict each other",
                why="without TLS no certificate is looked at",
                todo="leave one of them out",
            )
        return None
    for name, path in given.items():
        if not Path(path).is_file():
            raise OptionError(
                f"Option {name}={path!r} names no file",
                why="it is read on the driver and on every executor",
                todo="put the file there, readable by Spark's user",
            )
    return _context(mode, given)


def _context(mode: str, files: Mapping[str, str]) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=files.get("tlsCaFile"))
    if mode == "unverified":
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if "tlsCertFile" in files:
        made.load_cert_chain(files["tlsCertFile"], files.get("tlsKeyFile"))
    return made
