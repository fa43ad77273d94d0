"""What server and target must be like; all of it is checked before any row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import pymysql

from pyspark_mysql.journal.tables import NO_SUCH_TABLE
from pyspark_mysql.server.client import Session
from pyspark_mysql.server.engines import is_there, require_transactions
from pyspark_mysql.server.failures import (
    MENDED,
    OTHER,
    Kind,
    known,
    message,
    number,
    translate,
    translated,
)
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.cascades import require_no_cascade
from pyspark_mysql.target.columns import Column, misfit, unaddable, unfilled, unfit_key
from pyspark_mysql.target.creation import target_ddl
from pyspark_mysql.target.lookup import Target, described, look, stored
from pyspark_mysql.target.shape import require_kept, shaped
from pyspark_mysql.write.apply import Applier
from pyspark_mysql.write.plan import TableRows, target_of
from pyspark_mysql.write.statements import idle
from sparkonce.change import Names
from sparkonce.errors import OptionError, StoreRefused, StoreUnsafe
from sparkonce.option_values import suggestion
from sparkonce.protocol import Plan

TOO_LARGE = (139, 1070, 1071, 1074, 1117, 1118, 1163, 1170, 3152)
"""Numbers by which a server says that a table, a key or a type has no room for columns."""


def require_fit_server(session: Session) -> None:
    """Refuse settings under which a commit would fail in any case.

    Raises:
        StoreUnsafe: the binary log can't hold what a commit does.
    """
    with translated("asking the server for its settings"):
        names = "('log_bin', 'binlog_format')"
        found = session.run(f"SHOW GLOBAL VARIABLES WHERE variable_name IN {names}")
    settings = {name.lower(): value.upper() for name, value in found}
    if settings.get("log_bin") == "ON" and settings.get("binlog_format") == "STATEMENT":
        raise StoreUnsafe(
            "The server has binlog_format=STATEMENT",
            why="InnoDB takes no writes at READ COMMITTED then, and replicas could differ",
            todo="SET GLOBAL binlog_format = 'ROW' (or MIXED), also in its configuration",
        )


def require_fit_target(session: Session, detail: TableRows, *, create: bool) -> None:
    """Refuse a target that the rows don't fit.

    Args:
        session: of the server.
        detail: of the plan.
        create: whether a table that is not there may be made.

    Raises:
        OptionError: table, columns, types or keys don't fit the query.
        StoreUnsafe: its engine has no transactions.
        StoreRefused: a right is missing.
    """
    with translated(f"looking at table {detail.shown}"):
        made = create and not is_there(session, detail.table) and _make(session, detail)
    try:
        _require_fit_there(session, detail)
    except Exception:
        if made:
            _take_back(session, detail)
        raise


def _require_fit_there(session: Session, detail: TableRows) -> None:
    with translated(f"looking at table {detail.shown}"):
        target = _require_fit(session, detail, ())
    written = stored(detail, target)
    _require_rights(session, written, [*idle(written), *_looks(session, detail)])
    with translated("trying a temporary table"):
        # Whether this user may have temporary tables only a try tells.
        try:
            Applier(session, detail, target, None).way.begin()
        except pymysql.MySQLError as error:
            if not _is_too_large(error):
                raise
            raise OptionError(
                f"Rows for table {detail.shown} can't be gathered: {message(error)}",
                why=f"writeMode={detail.mode} with these options gathers the rows of an epoch in a"
                " temporary table, which has up to two columns more than the query",
                todo="drop columns before the sink, or leave opColumn and sequenceColumn out",
            ) from None


def _is_too_large(error: pymysql.MySQLError) -> bool:
    """MariaDB says 1005 of a temporary table, and the number of its engine in words."""
    return number(error) in TOO_LARGE or re.search(r"errno: (139|185)\b", str(error)) is not None


def _make(session: Session, detail: TableRows) -> bool:
    """Whether the table was not made by someone else in the same moment.

    Rights are tried first: the servers look at them before they look for the table, and who may
    make a table may not be allowed to drop it.
    """
    ddl = target_ddl(detail, mariadb=session.live.mariadb)
    _require_rights(session, detail, idle(detail), there=False)
    try:
        session.run(ddl)
    except pymysql.MySQLError as error:
        if number(error) == TABLE_IS_THERE:
            return False
        # Kind.ROW, too: what elsewhere is said of a row, as 1118 (too large), is said of the table.
        unknown = known(error).kind is Kind.ROW or known(error) is OTHER
        if not unknown and number(error) not in UNMADE:
            raise
        raise OptionError(
            f"Option createTable can't make table {detail.shown}: {message(error)}",
            why=UNMADE.get(number(error), "the server does not make such a table"),
            todo="set option key, rename, cast or drop columns before the sink, or create the table"
            " by hand",
        ) from None
    return True


def _take_back(session: Session, detail: TableRows) -> None:
    """Drop the table that was made, unless someone has written to it already."""
    table = identifier(*detail.table)
    with suppress(pymysql.MySQLError):  # without the rights to do so it stays, empty
        # Else a row could come between the look and DROP.
        session.run(f"LOCK TABLES {table} WRITE")
        try:
            if not session.run(f"SELECT 1 FROM {table} LIMIT 1"):
                session.run(f"DROP TABLE {table}")
        finally:
            session.run("UNLOCK TABLES")


def fitted(session: Session, plan: Plan[TableRows]) -> Plan[TableRows]:
    """The plan for the target as it is, where there is one."""
    with translated(f"looking at table {plan.detail.shown}"):
        table, columns = described(session, plan.detail.table)
    # One target has one ledger, by whichever of its names a query calls it.
    detail = replace(plan.detail, table=table)
    return shaped(replace(plan, detail=detail, target=target_of(detail)), columns)


def require_still_fit(session: Session, detail: TableRows, held: Sequence[Names]) -> Target:
    """Look at the target again, in the transaction that writes to it and keeps it as it is.

    Args:
        session: in a transaction that has sent `holding`.
        detail: of the plan.
        held: the other tables that the transaction writes to.

    Raises:
        StoreRefused: the rows no longer fit it, or were checked against another.
        StoreUnsafe: an engine was changed.
    """
    try:
        target = _require_fit(session, detail, held)
    except OptionError as error:
        raise StoreRefused(
            error.what,
            why=f"the table was dropped, renamed or altered since it was checked; {error.why}",
            todo=f"{error.todo}, {MENDED}",
        ) from None
    require_kept(detail, target.columns)
    return target


def _require_fit(session: Session, detail: TableRows, held: Sequence[Names]) -> Target:
    require_transactions(session, detail.table, *held)
    target = look(session, detail.table)
    _require_columns(stored(detail, target), target.columns)
    if detail.makes_rows:
        _require_values(session, detail, target.columns)
    if detail.updates:
        _require_key(detail, target)
    require_no_cascade(session, detail)
    return target


def _require_columns(detail: TableRows, columns: list[Column]) -> None:
    by_name = {column.name.lower(): column for column in columns}
    for name in detail.columns:
        column = by_name.pop(name.lower(), None)
        if column is None:
            raise _no_column(name, columns)
        problem = misfit(detail.kinds[name], column)
        if name in detail.added:
            problem = problem or unaddable(detail.kinds[name], column)
        if name in detail.looked_up:
            _require_fit_key(name, detail.kinds[name], column)
        if problem:
            raise OptionError(
                f"Column {name!r} of type {detail.kinds[name]} does not fit column"
                f" {column.name!r} of type {column.shown}",
                why=problem,
                todo="cast or drop the query's column, or alter the table's",
            )


def _require_values(session: Session, detail: TableRows, columns: list[Column]) -> None:
    """See that each column has a value in a new row; what a trigger does only the row tells."""
    missing = unfilled(columns, detail.columns)
    if missing and not session.run(FILLS, *detail.table):
        raise OptionError(
            f"The table's column {missing[0].name!r} of type {missing[0].shown} gets no value",
            why="it can't be null and has no default, the query has no such column, and no BEFORE"
            " INSERT trigger that the user may see could fill it",
            todo="add it to the query, or give it a default; if a trigger fills it, grant the user"
            " TRIGGER on the table",
        )


def _require_fit_key(name: str, kind: str, column: Column) -> None:
    problem = unfit_key(kind, column)
    if problem:
        raise OptionError(
            f"Option key names column {name!r}, which is of type {column.shown} in the table",
            why=f"{problem}: rows that Spark tells apart would become one",
            todo="alter the column to VARCHAR or VARBINARY, or take another key",
        )


def _no_column(name: str, columns: list[Column]) -> OptionError:
    names = [column.name for column in columns]
    return OptionError(
        f"Column {name!r} of the query is not in the table",
        why=f"the table's columns are {', '.join(names)}",
        todo=suggestion(name, names) or "add it to the table, or drop it",
    )


def _require_key(detail: TableRows, target: Target) -> None:
    keys = target.unique_keys
    shown = ", ".join(key.shown for key in keys) or "none"
    own = [key for key in keys if key.is_of(detail.key)]
    if not own:
        raise OptionError(
            f"Option key={','.join(detail.key)!r} is no unique key of the table",
            why=f"without one every epoch would insert its rows anew; the table has {shown}",
            todo="name the columns of one of those, or make it the primary key or a unique index",
        )
    if target.others(detail) and own[0].nullable:
        raise OptionError(
            f"Option key={','.join(detail.key)!r} may be null, and the table has several unique"
            f" keys: {shown}",
            why="a row could be taken for a stored one by another key, and not be told from it",
            todo="declare the key's columns NOT NULL, or drop the other unique keys",
        )


def _require_rights(
    session: Session, detail: TableRows, statements: Sequence[str], *, there: bool = True
) -> None:
    """Try each kind of statement that a commit sends, on no row at all."""
    for statement in statements:
        try:
            session.run(statement)
        except pymysql.MySQLError as error:
            # The right is there: the servers look at rights before they look for the table.
            if number(error) == NO_SUCH_TABLE and not there:
                continue
            if number(error) not in _NO_RIGHT:
                raise translate(error, f"trying what writeMode={detail.mode} does") from None
            raise StoreRefused(
                f"The user lacks a right: {error.args[1]}",
                why=f"writeMode={detail.mode} needs it",
                todo="grant it as docs/permissions.md lists",
            ) from None


def _looks(session: Session, detail: TableRows) -> list[str]:
    """MariaDB hides unique keys from those who have rights to single columns only."""
    if not session.live.mariadb or not detail.updates:
        return []
    return [f"SHOW CREATE TABLE {identifier(*detail.table)}"]


FILLS = """
SELECT 1 FROM information_schema.triggers WHERE event_object_schema = %s
  AND event_object_table = %s AND event_manipulation = 'INSERT' AND action_timing = 'BEFORE' LIMIT 1
"""
UNMADE = {
    **dict.fromkeys(
        TOO_LARGE,
        "the server has no room in a table, a key or a type for what the query's columns need",
    ),
    1060: "two of the query's columns have one name for the server, which knows no case in it",
    3750: "sql_require_primary_key is set there, and without option key the table has none",
}
"""Why a table can't be made."""
_NO_RIGHT = (1142, 1143, 1227)
TABLE_IS_THERE = 1050
