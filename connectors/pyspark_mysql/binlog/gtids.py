"""What texts of GTIDs stand for: sets of MySQL's, or positions of MariaDB's."""

from __future__ import annotations

import re

from pyspark_mysql.binlog.positions import GtidPosition
from pyspark_mysql.binlog.sets import GtidSet
from pyspark_mysql.binlog.transactions import Gtids

FORM = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
SOURCE = rf"{FORM}((:[a-z_]\w*)?:\d+(-\d+)?)+"
SET, SPAN = re.compile(rf"{SOURCE}(,{SOURCE})*", re.I), re.compile(r":(\d+)-(\d+)")
POSITION = re.compile(r"\d+-\d+-\d+(,\d+-\d+-\d+)*")


def gtids(text: str, *, mariadb: bool) -> Gtids:
    """What a text stands for."""
    return GtidPosition(text) if mariadb else GtidSet(text)


def is_gtids(text: str) -> bool:
    """Whether a text is a set, or a position."""
    return is_of(text, mariadb=False) or is_of(text, mariadb=True)


def is_of(text: str, *, mariadb: bool) -> bool:
    """Whether a text is what such a server writes; an empty one is of both."""
    if mariadb or not text:
        return not text or bool(POSITION.fullmatch(text))
    spans = ((int(low), int(high)) for low, high in SPAN.findall(text))
    return bool(SET.fullmatch(text)) and all(low <= high for low, high in spans)


def is_one(text: str) -> bool:
    """Whether a text names one transaction."""
    return bool(re.fullmatch(rf"{FORM}(:[a-z_]\w*)?:\d+|\d+-\d+-\d+", text))
