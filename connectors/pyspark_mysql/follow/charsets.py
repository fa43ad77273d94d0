"""The server's character sets, as it describes them."""

from __future__ import annotations

from collections.abc import Mapping

import pymysql

from pyspark_mysql.binlog.charsets import CODECS, Charsets
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.failures import number
from pyspark_mysql.server.literals import identifier

NAMES = [
    f"SELECT id, character_set_name FROM information_schema.{table} WHERE id IS NOT NULL"
    for table in ("collation_character_set_applicability", "collations")
]
"""MariaDB has all collations in another table."""

OF_ONE_BYTE = "SELECT character_set_name FROM information_schema.character_sets WHERE maxlen = 1"
UNKNOWN_COLUMN = 1054
BYTES = f"(SELECT UNHEX('{bytes(range(256)).hex()}') AS bytes) AS every"


def charsets(session: Session) -> Charsets:
    """Ask for all of them.

    Raises:
        pymysql.MySQLError: the server does not answer.
    """
    return Charsets(_names(session), _letters(session))


def _names(session: Session) -> dict[int, str]:
    for asked in NAMES:
        try:
            return {int(one): str(name) for one, name in session.run(asked)}
        except pymysql.MySQLError as error:
            if number(error) != UNKNOWN_COLUMN:
                raise
    return {}


def _letters(session: Session) -> Mapping[str, str]:
    """What each byte is; the server makes a question mark of one that is nothing."""
    found = [str(name) for (name,) in session.run(OF_ONE_BYTE)]
    names = [one for one in found if one not in (*CODECS, "binary")]
    asked = (f"CONVERT(CONVERT(bytes USING {identifier(one)}) USING utf8mb4)" for one in names)
    (texts,) = session.run(f"SELECT {', '.join(asked)} FROM {BYTES}")
    told = zip(names, texts, strict=True)
    return {name: text for name, text in told if text and len(text) == 256}
