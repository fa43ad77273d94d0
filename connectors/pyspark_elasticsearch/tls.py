"""TLS to the cluster: verified unless told otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sparkonce import tls as tls_files
from sparkonce.errors import OptionError


def settings(options: Mapping[str, Any], *, tls: bool) -> dict[str, Any]:
    """The client's settings for what it asks of the cluster's certificate.

    Raises:
        OptionError: options contradict each other, or a file is not there.
    """
    given = tls_files.given(options)
    if not tls:
        for name in [*given, *(["tlsMode"] if options["tlsMode"] == "unverified" else [])]:
            raise OptionError(
                f"Options url=http:// and {name} contradict each other",
                why="http:// speaks no TLS",
                todo="write https:// in option url",
            )
        return {}
    tls_files.require_there(given)
    if options["tlsMode"] == "unverified":
        names = {"client_cert": "tlsCertFile", "client_key": "tlsKeyFile"}
        own = {name: given[option] for name, option in names.items() if option in given}
        return {"verify_certs": False, "ssl_show_warn": False, **own}
    return {"ssl_context": tls_files.context(given)}
