"""Creates targets and adds columns to them, as options createTable and addColumns allow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress

import pymysql

from pyspark_mysql.journal.tables import NO_SUCH_TABLE, require_transactions
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import (
    GRANT,
    OTHER,
    failure_of,
    message,
    number,
    translate,
    translated,
)
from pyspark_mysql.server.literals import NAME, NAME_RULE, identifier
from pyspark_mysql.target.columns import SUMS, definition
from pyspark_mysql.target.lookup import columns_of
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.statements import probes
from sparkonce.change import Delete, Names
from sparkonce.errors import FailureKind, OptionError, StoreRefused

TOO_LARGE = (139, 1070, 1071, 1074, 1117, 1118, 1163, 1170, 3152)
"""Numbers of errors that mean that a table, a key or a type has no room for the columns."""
UNMADE = {
    **dict.fromkeys(
        TOO_LARGE,
        "the server has no room in a table, a key or a type for what the query's columns need",
    ),
    1060: "two of the query's columns have the same name for the server, which ignores case",
    3750: "the server sets sql_require_primary_key, and without option key the table has no key",
}
"""Why the server cannot create a table."""
TABLE_IS_THERE = 1050
ADDED_MEANWHILE = 1060
"""The error of a new column that exists: another task or query has added it."""

NO_RIGHT = (1142, 1143, 1227)


def make_table(session: MySqlSession, detail: TableRows) -> bool:
    """Create the table; False if someone else created it at the same moment.

    The rights are tested first: a server checks rights before it looks for the table, and a user
    who may create a table may lack the right to drop it.
    """
    ddl = target_ddl(detail, mariadb=session.live.mariadb)
    require_rights(session, detail, probes(detail), there=False)
    try:
        session.run(ddl)
    except pymysql.MySQLError as error:
        if number(error) == TABLE_IS_THERE:
            return False
        # Numbers that elsewhere concern a row, such as 1118 (too large), concern the table here.
        failure = failure_of(error)
        unknown = failure.kind is FailureKind.ROW or failure is OTHER
        if not unknown and number(error) not in UNMADE:
            raise
        raise OptionError(
            f"Option createTable can't create table {detail.table_name}: {message(error)}",
            why=UNMADE.get(number(error), "the server rejects the definition of the table"),
            todo="set option key, rename, cast or drop columns before the sink, or create the table"
            " by hand",
        ) from None
    return True


def target_ddl(detail: TableRows, *, mariadb: bool) -> str:
    """The statement by which option ``createTable`` creates a target; `key` is its primary key.

    Raises:
        OptionError: MySQL has no equivalent of a name or a type.
    """
    columns = _definitions(detail, detail.columns, mariadb=mariadb)
    if detail.key:
        columns.append(f"PRIMARY KEY ({', '.join(map(identifier, detail.key))})")
    return f"CREATE TABLE {identifier(*detail.table)} ({', '.join(columns)}) ENGINE=InnoDB"


def is_too_large(error: pymysql.MySQLError) -> bool:
    """Whether a table, a key or a type has no room for the columns."""
    # For some tables MariaDB reports 1005, with the engine's number in the text.
    of_engine = re.search(r"errno: (139|185)\b", str(error))
    return number(error) in TOO_LARGE or of_engine is not None


def _definitions(detail: TableRows, names: Names, *, mariadb: bool) -> list[str]:
    for name in names:
        if not NAME.fullmatch(name):
            raise OptionError(
                f"The sink can't create a column named {name!r}",
                why=f"the servers accept {NAME_RULE}",
                todo="rename the column before the sink",
            )
    kinds = dict(detail.kinds)
    kinds |= {name: SUMS.get(kinds[name], kinds[name]) for name in detail.added}
    return [
        definition(name, kinds[name], in_key=name in detail.key, mariadb=mariadb) for name in names
    ]


def add_columns(session: MySqlSession, detail: TableRows) -> None:
    """Add the columns that the table lacks, nullable and behind all others.

    Raises:
        OptionError: a type or a name has no equivalent, or the table has no room.
    """
    with translated(f"adding columns to table {detail.table_name}"):
        require_transactions(session, detail.table)
        tried: Names = ()
        while (lacking := _lacking(session, detail)) and lacking != tried:
            tried = lacking
            added = ", ".join(
                f"ADD COLUMN {one}"
                for one in _definitions(detail, lacking, mariadb=session.live.mariadb)
            )
            try:
                session.run(f"ALTER TABLE {identifier(*detail.table)} {added}")
            except pymysql.MySQLError as error:
                if number(error) == ADDED_MEANWHILE:  # or twice in the query, which is refused
                    continue
                if not is_too_large(error):
                    raise
                raise OptionError(
                    f"Option addColumns can't add {', '.join(lacking)} to table"
                    f" {detail.table_name}: {message(error)}",
                    why="the table or a row of it has no room for more columns",
                    todo="drop columns before the sink, or write into another table",
                ) from None


def _lacking(session: MySqlSession, detail: TableRows) -> Names:
    """The columns that the table lacks, except those of the key."""
    _, columns = columns_of(session, detail.table)
    there = {column.name.lower() for column in columns}
    if not columns or isinstance(detail.change, Delete):
        return ()
    written = detail.written_to(columns).columns
    return tuple(name for name in written if name.lower() not in there and name not in detail.key)


def take_back(session: MySqlSession, detail: TableRows) -> None:
    """Drop the new table, unless someone has already written to it."""
    table = identifier(*detail.table)
    with suppress(pymysql.MySQLError):  # without the rights the empty table remains
        # Without the lock someone could insert a row between SELECT and DROP.
        session.run(f"LOCK TABLES {table} WRITE")
        try:
            if not session.run(f"SELECT 1 FROM {table} LIMIT 1"):
                session.run(f"DROP TABLE {table}")
        finally:
            session.run("UNLOCK TABLES")


def require_rights(
    session: MySqlSession, detail: TableRows, statements: Sequence[str], *, there: bool = True
) -> None:
    """Run each kind of statement that a commit sends, without any row."""
    for statement in statements:
        try:
            session.run(statement)
        except pymysql.MySQLError as error:
            # The user has the right: a server checks rights before it looks for the table.
            if number(error) == NO_SUCH_TABLE and not there:
                continue
            if number(error) not in NO_RIGHT:
                raise translate(error, f"testing writeMode={detail.mode}") from None
            raise StoreRefused(
                f"The user lacks a right: {error.args[1]}",
                why=f"writeMode={detail.mode} needs it",
                todo=GRANT,
            ) from None
