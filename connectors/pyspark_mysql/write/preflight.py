"""Checks the server and the target before any row is written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pymysql

from pyspark_mysql.journal.tables import is_there, require_transactions
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.failures import (
    failure_of,
    message,
    number,
    translated,
)
from pyspark_mysql.server.literals import identifier
from pyspark_mysql.target.coercions import Coercion, members, of_null
from pyspark_mysql.target.columns import (
    TEXTS,
    UNFIT_KEYS,
    TableColumn,
    misfit,
    named,
    unaddable,
    unfilled,
)
from pyspark_mysql.target.foreign_keys import require_no_cascade, require_no_links
from pyspark_mysql.target.lookup import Target, columns_of, look_up, triggers
from pyspark_mysql.write.creation import (
    add_columns,
    is_too_large,
    make_table,
    require_rights,
    take_back,
)
from pyspark_mysql.write.gathering import writer_for
from pyspark_mysql.write.plan import TableRows
from pyspark_mysql.write.statements import probes
from sparkonce import codec
from sparkonce.change import Names, Update
from sparkonce.errors import RESTART, FailureKind, OptionError, StoreRefused, StoreUnsafe
from sparkonce.option_values import suggestion
from sparkonce.protocol import Plan, digest

NO_COLUMN = 1054
FACTS = ("kind", "sql_type", "charset", "width", "room", "nullable", "numbered")
"""The attributes of a column that decide which values it stores unchanged."""


def require_fit_server(session: MySqlSession) -> None:
    """Reject settings under which every commit would fail.

    Raises:
        StoreUnsafe: the binary log can't record the writes of a commit.
    """
    with translated("asking the server for its settings"):
        settings = session.variables("log_bin", "binlog_format")
    if settings.get("log_bin") == "ON" and settings.get("binlog_format") == "STATEMENT":
        raise StoreUnsafe(
            "The server has binlog_format=STATEMENT",
            why="with it InnoDB rejects writes at READ COMMITTED, and replicas could differ",
            todo="SET GLOBAL binlog_format = 'ROW' (or MIXED), also in its configuration",
        )


def require_fit_target(
    session: MySqlSession, detail: TableRows, *, create: bool, add: bool
) -> None:
    """Reject a target that the rows don't fit.

    With `create`, create a missing target; with `add`, add missing columns.

    Raises:
        OptionError: table, columns, types or keys don't fit the query.
        StoreUnsafe: its engine has no transactions.
        StoreRefused: the user lacks a right.
    """
    with translated(f"looking at table {detail.table_name}"):
        made = create and not is_there(session, detail.table) and make_table(session, detail)
    try:
        if add and not made:
            add_columns(session, detail)
        _require_fit_there(session, detail)
    except Exception:
        if made:
            take_back(session, detail)
        raise


def _require_fit_there(session: MySqlSession, detail: TableRows) -> None:
    with translated(f"looking at table {detail.table_name}"):
        target = _require_fit(session, detail, ())
    written = detail.written_to(target.columns)
    # MariaDB hides unique keys from users who have rights only to single columns.
    looks = session.live.mariadb and detail.updates
    shows = [f"SHOW CREATE TABLE {identifier(*detail.table)}"] if looks else []
    require_rights(session, written, [*probes(written), *shows])
    with translated("trying a temporary table"):
        # Only an attempt shows whether this user may create temporary tables.
        try:
            writer_for(session, detail, target).begin()
        except pymysql.MySQLError as error:
            if number(error) == NO_COLUMN and detail.replaces:
                raise OptionError(
                    f"The server rejects option replaceWhere: {message(error)}",
                    why="the sink checks all rows of the batch by it",
                    todo="name columns of the query, without the name of the table",
                ) from None
            if not is_too_large(error):
                raise
            raise OptionError(
                f"Rows for table {detail.table_name} can't be gathered: {message(error)}",
                why=f"writeMode={detail.mode} with these options gathers the rows of an epoch in a"
                " temporary table, which has up to two columns more than the query",
                todo="drop columns before the sink, or omit opColumn and sequenceColumn",
            ) from None


def require_fit_table(
    session: MySqlSession, detail: TableRows, table: Names, *, create: bool, add: bool
) -> None:
    """The same for one of several tables, whose name rows have.

    Raises:
        OptionError, StoreUnsafe, StoreRefused: as `require_fit_target`.
    """
    with translated(f"looking at table {'.'.join(table)}"):
        _, columns = columns_of(session, table)
    require_fit_target(session, detail.into(table, columns), create=create, add=add)


def fitted_table(session: MySqlSession, detail: TableRows, table: Names, made: str) -> TableRows:
    """The detail for the current shape of one of several tables, which rows name as `made`."""
    with translated(f"looking at table {'.'.join(table)}"):
        own_name, columns = columns_of(session, table)
    detail = detail.into(own_name, columns, made)
    return replace(detail, checked=checked_columns(detail, columns))


def fitted(session: MySqlSession, plan: Plan[TableRows]) -> Plan[TableRows]:
    """The plan for the current shape of the target, if the target exists."""
    with translated(f"looking at table {plan.detail.table_name}"):
        table, columns = columns_of(session, plan.detail.table)
    checked = checked_columns(plan.detail, columns)
    # A target has one ledger, whichever of its names a query uses.
    detail = replace(plan.detail, table=table, checked=checked)
    plan = replace(plan, detail=detail, target=detail.target, stored=codec.dump(detail))
    return replace(plan, shape=digest(json.dumps(codec.dump(checked), sort_keys=True)))


def checked_columns(detail: TableRows, columns: Iterable[TableColumn]) -> Mapping[str, TableColumn]:
    """The columns of a table that would change some values, by their names in the query."""
    return {
        name: TableColumn(name, **{fact: getattr(column, fact) for fact in FACTS})
        for name, column in named(columns, detail.columns).items()
        if of_null(column) or detail.coercions_by(name, column)
    }


def require_still_fit(session: MySqlSession, detail: TableRows, held: Sequence[Names]) -> Target:
    """Check the target again, in a transaction that has sent `statements.metadata_lock`.

    `held` are the other tables that the transaction writes to.

    Raises:
        StoreRefused: the rows no longer fit the target, or were checked against another shape.
        StoreUnsafe: the engine of a table has changed.
    """
    try:
        target = _require_fit(session, detail, held)
    except OptionError as error:
        raise StoreRefused(
            error.what,
            why=f"someone dropped, renamed or altered the table after the check; {error.why}",
            todo=f"{error.todo}, {RESTART}",
        ) from None
    require_kept(detail, target.columns)
    return target


def _require_fit(session: MySqlSession, detail: TableRows, held: Sequence[Names]) -> Target:
    require_transactions(session, detail.table, *held)
    target = look_up(session, detail.table)
    left = {column.name.lower(): column for column in target.columns}
    for name in detail.written_to(target.columns).columns:
        # pop: two columns of the query can't be the same column of the table.
        _require_column(detail, name, left.pop(name.lower(), None), target)
    if detail.makes_rows:
        _require_values(session, detail, target)
    if detail.updates:
        _require_key(detail, target)
    if detail.replaces:
        _require_condition(session, detail)
    if isinstance(detail.change, Update):
        _require_set(detail, target)
        _require_index(detail, target)
    if detail.op:
        require_no_cascade(session, detail.table, "opColumn")
    if detail.parts:
        require_no_links(session, detail.table, detail.parts)
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
            todo=suggestion(name, names) or "add it to the table, or drop it from the query",
        )
    if name in detail.looked_up and kind == "string" and column.kind in UNFIT_KEYS:
        raise OptionError(
            f"Option key names column {name!r}, which is of type {column.sql_type} in the table",
            why="its values have several spellings, and the server stores one of them: keys that"
            " differ in Spark would become one key",
            todo="alter the column to VARCHAR or VARBINARY, or use another key",
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
    """Require a value for each column of a new row; a BEFORE INSERT trigger may supply it."""
    missing = unfilled(target.columns, detail.columns)
    if missing and ("INSERT", "BEFORE") not in triggers(session, detail.table):
        raise OptionError(
            f"The table's column {missing[0].name!r} of type {missing[0].sql_type} gets no value",
            why="the column is NOT NULL without a default, the query lacks it, and the user sees no"
            " BEFORE INSERT trigger that could fill it",
            todo="add it to the query, or give it a default; if a trigger fills it, grant the user"
            " TRIGGER on the table",
        )


def _require_condition(session: MySqlSession, detail: TableRows) -> None:
    if not detail.overwrites:
        raise OptionError(
            "Option replaceWhere needs a batch in mode overwrite",
            why="only such a batch replaces rows",
            todo='write with df.write.mode("overwrite"), or omit the option',
        )
    require_no_cascade(session, detail.table, "replaceWhere")
    try:
        session.run(f"DELETE FROM {identifier(*detail.table)}{detail.replaced} AND 1 = 0")
    except pymysql.MySQLError as error:
        if failure_of(error).kind in (FailureKind.LOST, FailureKind.PASSING):
            raise
        raise OptionError(
            f"The server rejects option replaceWhere: {message(error)}",
            why="the sink deletes the rows of the table for which it holds",
            todo="correct the condition; it may name columns of the query",
        ) from None


def _require_set(detail: TableRows, target: Target) -> None:
    if not detail.written_to(target.columns).set_columns:
        raise OptionError(
            f"The query has no column of table {detail.table_name} besides those of option key",
            why="writeMode=update sets the other columns of stored rows",
            todo="select the columns to set",
        )


def _require_index(detail: TableRows, target: Target) -> None:
    key = {name.lower() for name in detail.key}
    if not target.finds_by(key):
        raise OptionError(
            f"No index of table {detail.table_name} begins with a column of option"
            f" key={','.join(detail.key)!r}",
            why="writeMode=update would read the whole table for each epoch, and lock it",
            todo=f"ALTER TABLE {identifier(*detail.table)} ADD INDEX"
            f" ({', '.join(map(identifier, detail.key))})",
        )


def _require_key(detail: TableRows, target: Target) -> None:
    keys = target.unique_keys
    listed = ", ".join(map(str, keys)) or "none"
    own = [key for key in keys if key.is_of(detail.key)]
    if not own:
        raise OptionError(
            f"Option key={','.join(detail.key)!r} is not a unique key of the table",
            why=f"without one every epoch would insert its rows again; the table has {listed}",
            todo="name the columns of a unique key, or declare these columns as one",
        )
    if target.others(detail.key, detail.columns) and own[0].nullable:
        raise OptionError(
            f"Option key={','.join(detail.key)!r} may be null, and the table has several unique"
            f" keys: {listed}",
            why="the server could match a row with a stored row by another unique key, and nothing"
            " would show that the rows differ",
            todo="declare the key's columns NOT NULL, or drop the other unique keys",
        )


def require_kept(detail: TableRows, columns: Iterable[TableColumn]) -> None:
    """Reject an altered table that could change values of rows that tasks have checked.

    A column that holds all values that the former one held is accepted: the user may have widened
    it for a row that the server rejected.

    Raises:
        StoreRefused: someone altered the table.
    """
    if detail.checked is None:  # the plan was made without a table
        return
    for name, now in named(columns, detail.columns).items():
        then = detail.checked.get(name)
        if not _holds_all(now, then, detail.coercions_by(name, now)):
            was = then.declared if then else "of another type"
            raise StoreRefused(
                f"Column {name!r} of table {detail.table_name} was {was}, and is {now.declared}",
                why="tasks checked the rows against the former column, and the new one could change"
                " their values",
                todo="restart the query, which checks its rows again; if the error persists, the"
                " epoch is decided: alter the column back, or widen it, until sparkonce has"
                " finished that epoch",
            )


def _holds_all(now: TableColumn, then: TableColumn | None, makes: list[Coercion]) -> bool:
    """Whether a column stores unchanged all values that it stored before.

    `makes` are its coercions. `then` is None if the former column had none.
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
