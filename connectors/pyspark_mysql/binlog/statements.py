"""Judges what a logged statement may have done to a table, because the log has no rows of it.

A list of forms has the statements that do not change the table. Any other statement may have
changed it. Of some the effect is known: they empty tables, create one, or alter its columns.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pymysql

from pyspark_mysql.binlog.alter_table import Unproven, column_clauses
from pyspark_mysql.binlog.events import LoggedStatement
from pyspark_mysql.binlog.layouts import (
    KEEPS_ZEROS,
    PADS,
    STRICT,
    Alteration,
    ColumnClause,
    Creation,
    Emptying,
    KnownEffect,
)
from pyspark_mysql.binlog.names import FollowedNames, TableName, folded
from pyspark_mysql.binlog.tokens import (
    ANSI_QUOTES,
    NO_BACKSLASH_ESCAPES,
    UNKNOWN,
    Cursor,
    Token,
    split,
    tokens_of,
)

# Python's names of character sets that it decodes as the server does.
CODECS = {"binary": "utf-8", "utf8": "utf-8", "utf8mb3": "utf-8", "utf8mb4": "utf-8"}
CODECS |= {"ascii": "ascii", "latin1": "cp1252"}
# Character sets that Python decodes to some other letters, but with the same ends of words.
ALIKE = {"big5": "big5", "gb2312": "gb2312", "gbk": "gbk", "gb18030": "gb18030"}
ALIKE |= {"sjis": "shift_jis", "cp932": "cp932", "ujis": "euc_jp", "euckr": "euc_kr"}

# Statements that change no table, whatever follows these words.
FREE = """
CREATE [ OR REPLACE ] [ ALGORITHM = word ] [ MATERIALIZED ] [ DEFINER = user ] [ secured ] view ...
CREATE [ OR REPLACE ] [ DEFINER = user ] [ AGGREGATE ] { PROCEDURE | FUNCTION | TRIGGER } ...
CREATE [ OR REPLACE ] [ DEFINER = user ] { EVENT | PACKAGE } ...
CREATE [ OR REPLACE ] { USER | ROLE | SERVER | LIBRARY | SPATIAL REFERENCE SYSTEM } ...
CREATE [ ONLINE | OFFLINE ] [ OR REPLACE ] [ UNIQUE | FULLTEXT | SPATIAL | VECTOR ] INDEX ...
CREATE { DATABASE | SCHEMA | TABLESPACE | UNDO TABLESPACE | [ TEMPORARY ] SEQUENCE } ...
ALTER [ ALGORITHM = word ] [ MATERIALIZED ] [ DEFINER = user ] [ secured ] { view | EVENT } ...
ALTER { PROCEDURE | FUNCTION | USER | ROLE | SERVER | SEQUENCE | INSTANCE | LIBRARY } ...
ALTER [ UNDO ] TABLESPACE ...
ALTER { DATABASE | SCHEMA } [ name ] [ DEFAULT ] { CHARACTER | CHARSET | COLLATE } ...
ALTER { DATABASE | SCHEMA } [ name ] [ DEFAULT ] { COMMENT | ENCRYPTION | READ ONLY } ...
DROP { VIEW | PROCEDURE | FUNCTION | TRIGGER | EVENT | PACKAGE | USER | ROLE | SERVER } ...
DROP { SEQUENCE | LIBRARY | TABLESPACE | UNDO TABLESPACE | SPATIAL REFERENCE SYSTEM } ...
DROP TEMPORARY { TABLE | TABLES | SEQUENCE } ...
DROP [ ONLINE | OFFLINE ] INDEX [ IF EXISTS ] index ON ...
RENAME USER ...
GRANT ...
REVOKE ...
SET { PASSWORD | DEFAULT ROLE } ...
FLUSH ...
REPAIR [ NO_WRITE_TO_BINLOG | LOCAL ] VIEW ...
{ ANALYZE | OPTIMIZE | CHECK } [ NO_WRITE_TO_BINLOG | LOCAL ] { TABLE | TABLES } ...
BEGIN
COMMIT
SAVEPOINT name
XA { START | BEGIN | END | PREPARE | COMMIT | ROLLBACK } ...
"""

BACK = "ROLLBACK [ WORK ] [ TO [ SAVEPOINT ] name ]"

# Statements that change only the tables that they name.
NAMING = """
TRUNCATE [ TABLE ] name [ waiting ]
DROP { TABLE | TABLES } [ IF EXISTS ] names [ RESTRICT | CASCADE ] [ waiting ]
RENAME { TABLE | TABLES } [ IF EXISTS ] renamed
REPAIR [ NO_WRITE_TO_BINLOG | LOCAL ] { TABLE | TABLES } names ...
DROP [ ONLINE | OFFLINE ] INDEX [ IF EXISTS ] PRIMARY ON name ...
"""

# Changes no existing table, if it has no query.
CREATING = "CREATE [ TEMPORARY ] TABLE ..."

# What RDS logs as statements in every format. No table of that database has triggers.
OF_AMAZON = """
INSERT INTO MYSQL . rds () VALUES () [ ON DUPLICATE KEY UPDATE word = word ]
DELETE FROM MYSQL . rds WHERE word = '
"""

# MariaDB. A sequence also replaces a table.
REPLACING = "CREATE OR REPLACE [ TEMPORARY ] { TABLE | SEQUENCE } [ IF NOT EXISTS ] (name) ..."

ALTERING = "ALTER [ ONLINE | OFFLINE ] (ignore) TABLE [ IF EXISTS ] (name) [ waiting ] (...)"
OF_DATABASE = "{ DROP | CREATE OR REPLACE } { DATABASE | SCHEMA } [ IF EXISTS ] (name) ..."

# MariaDB. Excludes settings that change how the server parses the rest.
SETTING = "SET STATEMENT setting = value [ , setting = value ] [ , setting = value ] FOR (...)"

# Clauses of ALTER TABLE that change neither rows nor columns of the table.
CLAUSES = """
ADD { INDEX | KEY } [ IF NOT EXISTS ] [ index ] [ using ] () options
ADD { UNIQUE | FULLTEXT | SPATIAL } [ INDEX | KEY ] [ IF NOT EXISTS ] [ index ] [ using ] () options
ADD CONSTRAINT [ index ] UNIQUE [ INDEX | KEY ] [ index ] [ using ] () options
ADD [ CONSTRAINT [ IF NOT EXISTS ] [ index ] ] CHECK () [ [ NOT ] ENFORCED ]
ADD [ CONSTRAINT [ index ] ] FOREIGN KEY [ IF NOT EXISTS ] [ index ] () REFERENCES name () keeping
DROP { INDEX | KEY | CHECK | CONSTRAINT | FOREIGN KEY } [ IF EXISTS ] index
RENAME { INDEX | KEY } index TO index
ALTER { INDEX | KEY } [ IF EXISTS ] index { VISIBLE | INVISIBLE | IGNORED | NOT IGNORED }
ALTER { CHECK | CONSTRAINT } index [ NOT ] ENFORCED
COMMENT [ = ] '
AUTO_INCREMENT [ = ] word
{ STATS_PERSISTENT | STATS_AUTO_RECALC | STATS_SAMPLE_PAGES } [ = ] word
{ ALGORITHM | LOCK } [ = ] word
{ ENABLE | DISABLE } KEYS
"""

# Clauses that change no other table, whatever names they contain.
WITHIN = "{ ADD | DROP | MODIFY | CHANGE | ALTER | RENAME { COLUMN | INDEX | KEY } } ..."

PART = r"(?:`\d+|[\w$]+) "
NAME = rf"{PART}(?:\. {PART})?"
WAITING = r"(?:WAIT \w+ |NOWAIT )"
RENAMED = rf"{NAME}{WAITING}?TO {NAME}"
OPTION = (
    rf"(?:USING \w+ |COMMENT ' |KEY_BLOCK_SIZE (?:= )?\w+ |WITH PARSER {PART}|(?:IN)?VISIBLE"
    " |(?:NOT )?IGNORED )*"
)
SETTINGS = "(?:MAX_STATEMENT_TIME|(?:INNODB_)?LOCK_WAIT_TIMEOUT|(?:FOREIGN_KEY|UNIQUE)_CHECKS) "
# The expressions for the placeholders of forms.
SYMBOLS = {
    "[": "(?:",
    "]": ")?",
    "{": "(?:",
    "}": ")",
    "|": "|",
    "...": ".*",
    "(...)": "(.*)",
    "word": r"[\w$]+ ",
    "name": NAME,
    "(name)": f"({NAME})",
    "names": f"{NAME}(?:, {NAME})*",
    "renamed": f"{RENAMED}(?:, {RENAMED})*",
    "waiting": WAITING,
    "(ignore)": "(IGNORE )?",  # MariaDB; deletes rows that a new unique key would reject
    "index": rf"(?!PRIMARY ){PART}",
    "user": rf"(?:{PART}|' )(?:@ (?:{PART}|' )|\(\) )?",
    "rds": "(?:RDS_HEARTBEAT2|RDS_SYSINFO|RDS_MONITOR) ",
    "secured": r"SQL SECURITY \w+ ",
    "view": "(?:JSON (?:RELATIONAL )?DUALITY )?VIEW ",
    "using": r"USING \w+ ",
    "options": OPTION,
    "keeping": "(?:ON (?:DELETE|UPDATE) (?:RESTRICT|NO ACTION) )*",
    "setting": SETTINGS,
    "value": r"(?:[\w$.']+ )+",
}

BEFORE_NAMES = (
    "TABLES? TRUNCATE EXISTS TO AS ON LIKE REFERENCES ADD DROP CHANGE MODIFY ALTER RENAME COLUMN"
    " AFTER INDEX KEY CONSTRAINT CHECK PARTITION SEQUENCE DATABASE SCHEMA SAVEPOINT , [.]"
)
# What no server accepts: a name in place of a string, or a string in place of a name.
IMPOSSIBLE = re.compile(rf"COMMENT (?:= )?[^'= ]|(?<![^ ])(?:{'|'.join(BEFORE_NAMES.split())}) '")

# Words that both servers reserve: without quotes they are no names, except after a point.
RESERVED = ("TABLE", "IF", "EXISTS", "TO", "RESTRICT", "CASCADE", "INDEX", "ON")

# First words of statements that leave columns as they are.
DATA = ("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "TRUNCATE", "REPAIR", "WITH")


class Effect(enum.Enum):
    """What a statement may have changed of a table; TAKEN_BACK: it rolled back logged rows."""

    NOTHING = 0
    ROWS = 1
    COLUMNS = 2
    TAKEN_BACK = 3


# The number of bytes of a statement that are parsed.
LONGEST = 1 << 20


def known_effect(
    logged: LoggedStatement, names: FollowedNames, *, mariadb: bool
) -> KnownEffect | None:
    """What a statement did to followed tables, if it has one of three forms; else None.

    The settings by which the server parsed it must not matter.
    """
    # Servers mark each DROP TABLE so; one of a temporary table says TEMPORARY in the log.
    if logged.of_session and logged.text[:4].upper() != b"DROP":
        return None
    readings = [*_readings(logged, names, mariadb=mariadb)]
    found = [one.known(mariadb=mariadb) for one in readings if one.is_possible]
    is_certain = readings[0].is_possible and all(one == found[0] for one in found)
    return found[0] if is_certain else None


def effect(logged: LoggedStatement, names: FollowedNames, *, mariadb: bool) -> Effect:
    """What a statement may have changed of the tables with these names."""
    first, *others = _readings(logged, names, mariadb=mariadb)
    done = first.effect()
    found = (one.effect() for one in others if one.is_possible and done is Effect.NOTHING)
    return next((one for one in found if one is not Effect.NOTHING), done)


def _readings(
    logged: LoggedStatement, names: FollowedNames, *, mariadb: bool
) -> Iterator[_Statement]:
    """The statement as parsed with the logged settings, and then with other possible settings."""
    # The log has the settings of the session that executes a prepared statement. The session that
    # prepared it may have had others.
    text, is_whole = _decoded(logged, names)
    texts = [text]
    if not logged.text.isascii() and mariadb:
        texts.append(logged.text.decode("latin1"))
    for one in texts:
        for other in (0, ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ANSI_QUOTES | NO_BACKSLASH_ESCAPES):
            if not other or any(sign in one for sign in '"\\'):
                tokens = [*tokens_of(one, logged.mode ^ other, mariadb=mariadb)]
                tokens += [] if is_whole else [UNKNOWN]
                yield _Statement(tokens, logged, names)


class _Statement:
    """A statement in tokens. Names without a database belong to the default database."""

    def __init__(
        self, tokens: Sequence[Token], logged: LoggedStatement, names: FollowedNames
    ) -> None:
        self.tokens, self.logged, self.names = tokens, logged, names
        self.default = folded(logged.database)
        self.shape = _shape(tokens)
        if found := _form(SETTING).fullmatch(self.shape):
            self.shape = found[1]

    def effect(self) -> Effect:
        """See `effect`."""
        if not self.shape or _matches_any(FREE, self.shape):
            return Effect.NOTHING
        if _matches_any(BACK, self.shape):
            return Effect.TAKEN_BACK
        if UNKNOWN not in self.tokens and self._passes():
            return Effect.NOTHING
        return Effect.ROWS if self.shape.split(" ")[0] in DATA else Effect.COLUMNS

    def known(self, *, mariadb: bool) -> KnownEffect | None:
        """See `known_effect`."""
        found = Cursor(self.tokens)
        if found.word("CREATE"):
            return self._created(found)
        if found.word("TRUNCATE"):
            found.word("TABLE")
            return self._emptied(found)
        if found.word("DROP"):
            is_table = found.word("TABLE", "TABLES")
            found.words("IF EXISTS")
            return self._emptied(found) if is_table else None
        return self._altered(found, mariadb=mariadb) if found.word("ALTER") else None

    def _created(self, found: Cursor) -> Creation | None:
        if not found.word("TABLE") or found.peek("IF") or self._has_query:
            return None
        name = self._followed(found)
        return Creation(name) if name else None

    def _emptied(self, found: Cursor) -> Emptying | None:
        names = [self._followed(found)]
        while found.sign(","):
            names.append(self._followed(found))
        found.word("RESTRICT", "CASCADE")
        _wait(found)
        found.sign(";")
        if not found.ended or None in names:
            return None
        return Emptying(tuple(one for one in names if one))

    def _altered(self, found: Cursor, *, mariadb: bool) -> Alteration | None:
        if not found.word("TABLE"):
            return None
        found.words("IF EXISTS")
        name = self._followed(found)
        _wait(found)
        clauses = list[ColumnClause]()
        for one in split([token for token in found.rest if token.kind != ";"]):
            if not _matches_any(CLAUSES, _shape(one)):
                try:
                    clauses += column_clauses(one, mariadb=mariadb)
                except Unproven:
                    return None
        mode = self.logged.mode
        strict = bool(mode & STRICT) and not mode & PADS
        if not mode & KEEPS_ZEROS and any(one.numbered for one in clauses):
            return None
        return Alteration(name, tuple(clauses), strict) if name else None

    def _followed(self, found: Cursor) -> TableName | tuple[()] | None:
        """A name: that of a followed table, empty for another table, None if it is uncertain."""
        table = found.name()
        database = self.logged.database
        if found.sign("."):
            database, table = table, found.name()
        if self.names.match(database, table):
            return database, table
        return None if self.names.may_match(folded(database), folded(table)) else ()

    @property
    def is_possible(self) -> bool:
        """Whether a server may have parsed the text in this way."""
        return UNKNOWN not in self.tokens and not IMPOSSIBLE.search(self.shape)

    def _passes(self) -> bool:
        """Whether the statement has one of the forms that do not change the table."""
        if _matches_any(NAMING, self.shape):
            return not self._names(self.shape.partition(" ")[2])  # without the verb
        if _matches_any(CREATING, self.shape):
            return not self._has_query
        if _matches_any(OF_AMAZON, self.shape):
            return [one.kind for one in self.tokens].count("(") <= 2  # no call of a function
        if found := _form(REPLACING).fullmatch(self.shape):
            return not self._has_query and not self._names(found[1])
        if found := _form(ALTERING).fullmatch(self.shape):
            ignore, name, clauses = found.groups()
            keeps_all = all(_matches_any(CLAUSES, one) for one in _split(clauses))
            return self._alters_other(name, clauses) or (not ignore and keeps_all)
        found = _form(OF_DATABASE).fullmatch(self.shape)
        return found is not None and not self.names.may_match_database(self._text(found[1].strip()))

    def _alters_other(self, name: str, clauses: str) -> bool:
        """Whether an ALTER changes another table, and has no clause that uses this one."""
        return not self._names(name) and not any(
            self._names(one) for one in _split(clauses) if not _matches_any(WITHIN, one)
        )

    @property
    def _has_query(self) -> bool:
        """Whether it may contain a query, which may call functions that change any table."""
        words = [one.text.upper() if one.kind == "word" else one.kind for one in self.tokens]
        values = [words[at + 1] for at, one in enumerate(words[:-1]) if one == "VALUES"]
        queries = "SELECT" in words or any(one not in ("LESS", "IN") for one in values)
        return queries or words.count("TABLE") > 1

    def _names(self, shape: str) -> bool:
        """Whether a part of the statement contains the name of a followed table, or may do so."""
        words = shape.split()
        parts = [self._text(one) for one in words]
        for at, one in enumerate(parts):
            is_name = words[at][0] in "`$_" or words[at][0].isalnum()
            is_full = at > 1 and parts[at - 1] == "."
            is_verb = words[at] in RESERVED and not is_full
            if not is_name or is_verb or parts[at + 1 : at + 2] == ["."]:
                continue
            databases = {parts[at - 2]} if is_full else {self.default, *parts}
            if any(self.names.may_match(database, one) for database in databases):
                return True
        return False

    def _text(self, part: str) -> str:
        """A word of the shape in the form in which names are compared."""
        return folded(self.tokens[int(part[1:])].text if part[:1] == "`" else part)


def _wait(found: Cursor) -> None:
    """Take MariaDB's time-out of a lock."""
    if found.word("WAIT"):
        found.number()
    else:
        found.word("NOWAIT")


def _split(clauses: str) -> list[str]:
    return [one + " " for one in clauses.rstrip(" ").split(" , ")]


def _shape(tokens: Sequence[Token]) -> str:
    """Words, and placeholders for names, strings and parenthesised lists; a blank after each."""
    depth, found = 0, list[str]()
    for at, (kind, text) in enumerate(tokens):
        depth += kind == "("
        if depth == 0:
            is_word = kind == "word" or (kind == "`" and folded(text) == "primary")
            found.append(text.upper() if is_word else f"`{at}" if kind == "`" else kind)
        elif kind == ")":
            depth -= 1
            found += ["()"] * (depth == 0)
    if found[-1:] == [";"]:
        found.pop()
    return "".join(one + " " for one in found)


def _matches_any(forms: str, shape: str) -> bool:
    return any(one.fullmatch(shape) for one in _forms(forms))


@lru_cache
def _forms(text: str) -> list[re.Pattern[str]]:
    return [_form(one) for one in text.strip().splitlines()]


@lru_cache
def _form(text: str) -> re.Pattern[str]:
    """The regular expression of a form, which matches shapes."""
    return re.compile("".join(SYMBOLS.get(one) or re.escape(one + " ") for one in text.split()))


def _decoded(logged: LoggedStatement, names: FollowedNames) -> tuple[str, bool]:
    """The text of a statement as far as it is certain, and whether that is the whole text."""
    # In most character sets only ASCII is certain.
    charsets: Any = pymysql.charset  # the stubs don't have their names
    try:
        name = charsets.charset_by_id(logged.collation).name if logged.collation else "utf8mb4"
    except KeyError:  # newer than the client's list, so it belongs to utf8mb4
        name = "utf8mb4"
    if name == "swe7":  # has letters in place of signs
        return "", False
    codec = CODECS.get(name, "ascii")
    if names.is_ascii:  # words beyond ASCII are none of them
        codec = ALIKE.get(name, codec)
    text = logged.text[:LONGEST]
    try:
        return text.decode(codec), len(text) == len(logged.text)
    except ValueError:
        first = next(at for at, one in enumerate(text) if one > 127)
        return text[:first].decode(), False
