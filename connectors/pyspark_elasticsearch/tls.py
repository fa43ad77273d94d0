"""TLS to the cluster: verified unless told otherwise."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkonce.errors import OptionError

FILES = ("tlsCaFile", "tlsCertFile", "tlsKeyFile")


def settings(options: Mapping[str, Any], *, tls: bool) -> dict[str, Any]:
    """The client's settings for what it asks of the cluster's certificate.

    Raises:
        OptionError: options contradict each other, or a file is not there.
    """
    given = {name: str(options[name]) for name in FILES if options.get(name)}
    if not tls:
        for name in [*given, *(["tlsMode"] if options["tlsMode"] == "unverified" else [])]:
            raise OptionError(
                f"Options url=http:// and {name} contradict each other",
                why="http:// speaks no TLS",
                todo="write https:// in option url",
            )
        return {}
    for name, path in given.items():
        if not Path(path).is_file():
            raise OptionError(
                f"Option {name}={path!r} names no file",
                why="it is read on the driver and on every executor",
                todo="put the file there, readable by Spark's user",
            )
    if options["tlsMode"] == "unverified":
        names = {"client_cert": "tlsCertFile", "client_key": "tlsKeyFile"}
        own = {name: given[option] for name, option in names.items() if option in given}
        return {"verify_certs": False, "ssl_show_warn": False, **own}
    return {"ssl_context": _context(given)}


def _context(files: Mapping[str, str]) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=files.get("tlsCaFile"))
    if "tlsCertFile" in files:
        made.load_cert_chain(files["tlsCertFile"], files.get("tlsKeyFile"))
    return made
