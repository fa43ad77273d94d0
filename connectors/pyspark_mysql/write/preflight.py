"""What server and target must be like; all of it is checked before any row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pymysql

from pyspark_mysql.journal.tables import NO_SUCH_TABLE, is_there, require_transactions
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
from pyspark_mysql.target.coercions import Coercion, members, of_null
from pyspark_mysql.target.columns import (
    SUMS,
    TEXTS,
    UNFIT_KEYS,
    TableColumn,
    definition,
    misfit,
    named,
    unaddable,
    unfilled,
)
from pyspark_mysql.target.lookup import Target, columns_of, look_up, triggers
from pyspark_mysql.write.gathering import writer_for
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.statements import probes
from sparkonce import codec
from sparkonce.change import Names
from sparkonce.errors import RESTART, FailureKind, OptionError, StoreRefused, StoreUnsafe
from sparkonce.option_values import suggestion
from sparkonce.protocol import Plan, digest

TOO_LARGE = (139, 1070, 1071, 1074, 1117, 1118, 1163, 1170, 3152)
"""Numbers by which a server says that a table, a key or a type has no room for columns."""
UNMADE = {
    **dict.fromkeys(
        TOO_LARGE,
        "the server has no room in a table, a key or a type for what the query's columns need",
    ),
    1060: "two of the query's columns have one name for the server, which knows no case in it",
    3750: "sql_require_primary_key is set there, and without option key the table has none",
}
"""Why a table can't be made."""
TABLE_IS_THERE = 1050
NO_RIGHT = (1142, 1143, 1227)

FACTS = ("kind", "sql_type", "charset", "width", "room", "nullable", "numbered")
"""What of a column says which values it holds as they are."""

# A row that is deleted on the way takes those below it along; one that is set to NULL does not.
# So SET NULL counts only in the last link, the foreign key of the target itself.
LEADS_BACK = """
WITH RECURSIVE parents (db, name) AS (
  SELECT unique_constraint_schema, referenced_table_name
  FROM information_schema.referential_constraints
  WHERE constraint_schema = %s AND table_name = %s AND delete_rule IN ('CASCADE', 'SET NULL')
  UNION
  SELECT f.unique_constraint_schema, f.referenced_table_name
  FROM parents JOIN information_schema.referential_constraints f
    ON f.constraint_schema = parents.db AND f.table_name = parents.name
  WHERE f.delete_rule = 'CASCADE'
) SELECT 1 FROM parents WHERE LOWER(db) = LOWER(%s) AND LOWER(name) = LOWER(%s)
"""


def require_fit_server(session: MySqlSession) -> None:
    """Refuse settings under which a commit would fail in any case.

    Raises:
        StoreUnsafe: the binary log can't hold what a commit does.
    """
    with translated("asking the server for its settings"):
        settings = session.variables("log_bin", "binlog_format")
    if settings.get("log_bin") == "ON" and settings.get("binlog_format") == "STATEMENT":
        raise StoreUnsafe(
            "The server has binlog_format=STATEMENT",
            why="InnoDB takes no writes at READ COMMITTED then, and replicas could differ",
            todo="SET GLOBAL binlog_format = 'ROW' (or MIXED), also in its configuration",
        )


def require_fit_target(session: MySqlSession, detail: TableRows, *, create: bool) -> None:
    """Refuse a target that the rows don't fit; with `create`, make one that is not there.

    Raises:
        OptionError: table, columns, types or keys don't fit the query.
        StoreUnsafe: its engine has no transactions.
        StoreRefused: a right is missing.
    """
    with translated(f"looking at table {detail.table_name}"):
        made = create and not is_there(session, detail.table) and _make(session, detail)
    try:
        _require_fit_there(session, detail)
    except Exception:
        if made:
            _take_back(session, detail)
        raise


def _require_fit_there(session: MySqlSession, detail: TableRows) -> None:
    with translated(f"looking at table {detail.table_name}"):
        target = _require_fit(session, detail, ())
    written = detail.written_to(target.columns)
    # MariaDB hides unique keys from those who have rights to single columns only.
    looks = session.live.mariadb and detail.updates
    shows = [f"SHOW CREATE TABLE {identifier(*detail.table)}"] if looks else []
    _require_rights(session, written, [*probes(written), *shows])
    with translated("trying a temporary table"):
        # Whether this user may have temporary tables only a try tells.
        try:
            writer_for(session, detail, target).begin()
        except pymysql.MySQLError as error:
            # MariaDB says 1005 of a temporary table, and the number of its engine in words.
            if number(error) not in TOO_LARGE and not re.search(r"errno: (139|185)\b", str(error)):
                raise
            raise OptionError(
                f"Rows for table {detail.table_name} can't be gathered: {message(error)}",
                why=f"writeMode={detail.mode} with these options gathers the rows of an epoch in a"
                " temporary table, which has up to two columns more than the query",
                todo="drop columns before the sink, or leave opColumn and sequenceColumn out",
            ) from None


def _make(session: MySqlSession, detail: TableRows) -> bool:
    """Whether the table was not made by someone else in the same moment.

    Rights are tried first: the servers look at them before they look for the table, and who may
    make a table may not be allowed to drop it.
    """
    ddl = target_ddl(detail, mariadb=session.live.mariadb)
    _require_rights(session, detail, probes(detail), there=False)
    try:
        session.run(ddl)
    except pymysql.MySQLError as error:
        if number(error) == TABLE_IS_THERE:
            return False
        # What elsewhere is said of a row, as 1118 (too large), is said of the table here.
        failure = failure_of(error)
        unknown = failure.kind is FailureKind.ROW or failure is OTHER
        if not unknown and number(error) not in UNMADE:
            raise
        raise OptionError(
            f"Option createTable can't make table {detail.table_name}: {message(error)}",
            why=UNMADE.get(number(error), "the server does not make such a table"),
            todo="set option key, rename, cast or drop columns before the sink, or create the table"
            " by hand",
        ) from None
    return True


def target_ddl(detail: TableRows, *, mariadb: bool) -> str:
    """The statement by which option ``createTable`` makes a target; the key is its primary key.

    Raises:
        OptionError: a name or a type can't be had.
    """
    for name in detail.columns:
        if not NAME.fullmatch(name):
            raise OptionError(
                f"Option createTable can't make a column of the name {name!r}",
                why=f"the servers take {NAME_RULE}",
                todo="rename it before the sink",
            )
    kinds = dict(detail.kinds)
    kinds |= {name: SUMS.get(kinds[name], kinds[name]) for name in detail.added}
    columns = [
        definition(name, kinds[name], in_key=name in detail.key, mariadb=mariadb)
        for name in detail.columns
    ]
    if detail.key:
        columns.append(f"PRIMARY KEY ({', '.join(map(identifier, detail.key))})")
    return f"CREATE TABLE {identifier(*detail.table)} ({', '.join(columns)}) ENGINE=InnoDB"


def _take_back(session: MySqlSession, detail: TableRows) -> None:
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


def fitted(session: MySqlSession, plan: Plan[TableRows]) -> Plan[TableRows]:
    """The plan for the target as it is, where there is one."""
    with translated(f"looking at table {plan.detail.table_name}"):
        table, columns = columns_of(session, plan.detail.table)
    checked = checked_columns(plan.detail, columns)
    # One target has one ledger, by whichever of its names a query calls it.
    detail = replace(plan.detail, table=table, checked=checked)
    plan = replace(plan, detail=detail, target=detail.target, stored=codec.dump(detail))
    return replace(plan, shape=digest(json.dumps(codec.dump(checked), sort_keys=True)))


def checked_columns(detail: TableRows, columns: Iterable[TableColumn]) -> Mapping[str, TableColumn]:
    """The columns of a table that make other values of some, by their names in the query."""
    return {
        name: TableColumn(name, **{fact: getattr(column, fact) for fact in FACTS})
        for name, column in named(columns, detail.columns).items()
        if of_null(column) or detail.coercions_by(name, column)
    }


def require_still_fit(session: MySqlSession, detail: TableRows, held: Sequence[Names]) -> Target:
    """Look at the target again, in a transaction that has sent `statements.metadata_lock`.

    `held` are the other tables that the transaction writes to.

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
            todo=f"{error.todo}, {RESTART}",
        ) from None
    require_kept(detail, target.columns)
    return target


def _require_fit(session: MySqlSession, detail: TableRows, held: Sequence[Names]) -> Target:
    require_transactions(session, detail.table, *held)
    target = look_up(session, detail.table)
    left = {column.name.lower(): column for column in target.columns}
    for name in detail.written_to(target.columns).columns:
        # Taken out: two of the query's columns can't be one of the table's.
        _require_column(detail, name, left.pop(name.lower(), None), target)
    if detail.makes_rows:
        _require_values(session, detail, target)
    if detail.updates:
        _require_key(detail, target)
    if detail.op:
        _require_no_cascade(session, detail)
    return target


def _require_column(
    detail: TableRows, name: str, column: TableColumn | None, target: Target
) -> None:
    kind = detail.kinds[name]
    if column is None:
        names = [column.name for column in target.columns]
        raise OptionError(
            f"Column {name!r} of the query is not in the table",
            why=f"the table's columns are {', '.join(names)}",
            todo=suggestion(name, names) or "add it to the table, or drop it",
        )
    if name in detail.looked_up and kind == "string" and column.kind in UNFIT_KEYS:
        raise OptionError(
            f"Option key names column {name!r}, which is of type {column.sql_type} in the table",
            why="its values have several spellings, and the server makes one of them: rows that"
            " Spark tells apart would become one",
            todo="alter the column to VARCHAR or VARBINARY, or take another key",
        )
    problem = misfit(kind, column) or (name in detail.added and unaddable(kind, column))
    if problem:
        raise OptionError(
            f"Column {name!r} of type {kind} does not fit column {column.name!r} of type"
            f" {column.sql_type}",
            why=problem,
            todo="cast or drop the query's column, or alter the table's",
        )


def _require_values(session: MySqlSession, detail: TableRows, target: Target) -> None:
    """See that each column has a value in a new row; what a trigger does only the row tells."""
    missing = unfilled(target.columns, detail.columns)
    if missing and ("INSERT", "BEFORE") not in triggers(session, detail.table):
        raise OptionError(
            f"The table's column {missing[0].name!r} of type {missing[0].sql_type} gets no value",
            why="it can't be null and has no default, the query has no such column, and no BEFORE"
            " INSERT trigger that the user may see could fill it",
            todo="add it to the query, or give it a default; if a trigger fills it, grant the user"
            " TRIGGER on the table",
        )


def _require_key(detail: TableRows, target: Target) -> None:
    keys = target.unique_keys
    listed = ", ".join(map(str, keys)) or "none"
    own = [key for key in keys if key.is_of(detail.key)]
    if not own:
        raise OptionError(
            f"Option key={','.join(detail.key)!r} is no unique key of the table",
            why=f"without one every epoch would insert its rows anew; the table has {listed}",
            todo="name the columns of one of those, or make it the primary key or a unique index",
        )
    if target.others(detail.key, detail.columns) and own[0].nullable:
        raise OptionError(
            f"Option key={','.join(detail.key)!r} may be null, and the table has several unique"
            f" keys: {listed}",
            why="a row could be taken for a stored one by another key, and not be told from it",
            todo="declare the key's columns NOT NULL, or drop the other unique keys",
        )


def _require_no_cascade(session: MySqlSession, detail: TableRows) -> None:
    """Refuse a target in which deleting a row changes other rows, as far as the user sees them."""
    if session.run(LEADS_BACK, *detail.table, *detail.table):
        raise OptionError(
            f"Option opColumn: {detail.table_name} has a foreign key that leads back to it,"
            " with ON DELETE CASCADE or SET NULL",
            why="an epoch's deletes come before its writes, so that they would also take rows that"
            " the epoch had let go of before",
            todo="make the foreign key ON DELETE RESTRICT, or drop it: a change stream tells of"
            " each row by itself",
        )


def _require_rights(
    session: MySqlSession, detail: TableRows, statements: Sequence[str], *, there: bool = True
) -> None:
    """Try each kind of statement that a commit sends, on no row at all."""
    for statement in statements:
        try:
            session.run(statement)
        except pymysql.MySQLError as error:
            # The right is there: the servers look at rights before they look for the table.
            if number(error) == NO_SUCH_TABLE and not there:
                continue
            if number(error) not in NO_RIGHT:
                raise translate(error, f"trying what writeMode={detail.mode} does") from None
            raise StoreRefused(
                f"The user lacks a right: {error.args[1]}",
                why=f"writeMode={detail.mode} needs it",
                todo=GRANT,
            ) from None


def require_kept(detail: TableRows, columns: Iterable[TableColumn]) -> None:
    """Refuse a table that could make other values of rows, which were checked against another.

    A column that holds all that the other one did is fine: a row that the server refused may have
    asked for that.

    Raises:
        StoreRefused: it was altered.
    """
    if detail.checked is None:  # no table was looked up for the plan
        return
    for name, now in named(columns, detail.columns).items():
        then = detail.checked.get(name)
        if not _holds_all(now, then, detail.coercions_by(name, now)):
            was = then.declared if then else "of another type"
            raise StoreRefused(
                f"Column {name!r} of table {detail.table_name} was {was}, and is {now.declared}",
                why="rows were checked against the column as it was, and it could make other"
                " values of them",
                todo="restart the query, which checks its rows anew; if the error stays, the epoch"
                " is decided: alter the column back, or widen it, until that epoch is finished",
            )


def _holds_all(now: TableColumn, then: TableColumn | None, makes: list[Coercion]) -> bool:
    """Whether a column, which `makes` other values, holds as it is all that it held before.

    There is no `then` where it made no other value of any.
    """
    if of_null(now) and not (then and of_null(then)):
        return False
    if not makes or (then and then.declared == now.declared):
        return True
    if then is None or now.kind != then.kind:
        return False
    # Older servers call utf8mb3 utf8.
    same = now.charset.replace("utf8mb3", "utf8") == then.charset.replace("utf8mb3", "utf8")
    widened = now.room >= then.room
    if now.kind in ("enum", "set"):
        return members(now) >= members(then) and (same or now.charset == "utf8mb4")
    if now.kind in ("char", "varchar"):
        return widened and (same or now.charset == "utf8mb4")
    return same and (now.sql_type == then.sql_type or (now.kind in TEXTS and widened))
