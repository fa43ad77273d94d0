"""The files of TLS that options name, and what a client makes of them."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparkonce.errors import OptionError

FILES = ("tlsCaFile", "tlsCertFile", "tlsKeyFile")


def given(options: Mapping[str, Any]) -> dict[str, str]:
    """The options that name files, and the files."""
    return {name: str(options[name]) for name in FILES if options.get(name)}


def require_there(files: Mapping[str, str]) -> None:
    """Refuse files that are not there.

    Raises:
        OptionError: it names the option.
    """
    for name, path in files.items():
        if not Path(path).is_file():
            raise OptionError(
                f"Option {name}={path!r} names no file",
                why="it is read on the driver and on every executor",
                todo="put the file there, readable by Spark's user",
            )


def context(files: Mapping[str, str], *, verify: bool = True) -> ssl.SSLContext:
    """What a client asks of the server's certificate.

    Args:
        files: as `given`; without ``tlsCaFile`` the system's certificates are trusted.
        verify: whether the certificate and the host's name are checked.
    """
    made = ssl.create_default_context(cafile=files.get("tlsCaFile"))
    if not verify:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if "tlsCertFile" in files:
        made.load_cert_chain(files["tlsCertFile"], files.get("tlsKeyFile"))
    return made
