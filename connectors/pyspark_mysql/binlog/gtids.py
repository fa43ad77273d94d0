"""What texts of GTIDs stand for: sets of MySQL's, or positions of MariaDB's."""

from __future__ import annotations

import re

from pyspark_mysql.binlog.positions import GtidPosition
from pyspark_mysql.binlog.sets import GtidSet
from pyspark_mysql.binlog.transactions import Gtids

FORM = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
SET = re.compile(rf"({FORM}(:[a-z_]\w*|:\d+(-\d+)?)+)(,{FORM}(:[a-z_]\w*|:\d+(-\d+)?)+)*", re.I)
POSITION = re.compile(r"\d+-\d+-\d+(,\d+-\d+-\d+)*")


def gtids(text: str, *, mariadb: bool) -> Gtids:
    """What a text stands for."""
    return GtidPosition(text) if mariadb else GtidSet(text)


def is_gtids(text: str) -> bool:
    """Whether a text is a set, or a position."""
    return is_of(text, mariadb=False) or is_of(text, mariadb=True)


def is_of(text: str, *, mariadb: bool) -> bool:
    """Whether a text is what such a server writes; an empty one is of both."""
    return not text or bool((POSITION if mariadb else SET).fullmatch(text))


def is_one(text: str) -> bool:
    """Whether a text names one transaction."""
    return bool(re.fullmatch(rf"{FORM}(:[a-z_]\w*)?:\d+|\d+-\d+-\d+", text))
