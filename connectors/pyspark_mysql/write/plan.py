"""The plan of a query: table, columns and write mode from the options, as manifests store it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_mysql.server import address
from pyspark_mysql.target.coercions import Coercion, coercions
from pyspark_mysql.target.columns import TableColumn, kind_of, named
from pyspark_mysql.target.names import LIKE, PREFIX
from sparkonce import change, checks, codec, templates
from sparkonce.change import Append, Change, Delete, Increment, Names, Upsert
from sparkonce.errors import OptionError
from sparkonce.protocol import Plan
from sparkonce.templates import Segment, Template
from sparkonce.values import spark_types

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.checks import Contradiction
    from sparkonce.options import Options

MODES = ("append", "upsert", "increment", "delete")
EXACT_KEY = re.compile(
    r"boolean|tinyint|smallint|int|bigint|decimal.*|string|binary|date|timestamp.*|time|interval"
)
TIMESTAMPS = ("timestamp", "timestamp_ntz")
SEQUENCES = ("tinyint", "smallint", "int", "bigint", "decimal", "date", *TIMESTAMPS)
ADDABLE = re.compile(r"tinyint|smallint|int|bigint|decimal.*|float|double")
OWN_COLUMNS = ("sparkonce_flag", "sparkonce_row")
"""Additional columns of a temporary table: whether the row deletes, and its number."""
CELLS = 48_000
"""Values in a chunk: each chunk is a transaction, which the server syncs to disk."""


@dataclass(frozen=True)
class TableRows:
    """The detail of a plan: the table, and how rows change it.

    Attributes:
        table: database and name.
        change: the write mode.
        key: columns that identify a row, also for append.
        columns: in the order of a chunk's rows.
        kinds: the type of each column.
        aside: whether a task stores bad rows separately in chunks.
        schema: of the query, as Spark's DDL.
        overwrites: whether the epoch empties the table first.
        checked: the columns of the table that would silently change some values, by their names in
            the query; None before the look-up of the table. Tasks check rows by them.
        parts: of the template that names the table of each row; empty for a single table.
        made: the name of the table, as the template made it.
        row: the column that has each row as a JSON object, with columns of its table.
        fields: all columns of that table, as Spark's DDL.
        required: its columns that a new row must fill.
        skips: whether a row of which a unique key exists is skipped.
    """

    table: Names
    change: Change
    key: Names
    columns: Names
    kinds: Mapping[str, str]
    aside: bool
    schema: str
    overwrites: bool = False
    checked: Mapping[str, TableColumn] | None = None
    parts: tuple[Segment, ...] = ()
    made: str = ""
    row: str | None = None
    fields: str = ""
    required: Names = ()
    skips: bool = False

    @property
    def table_name(self) -> str:
        """The table, for messages."""
        return ".".join(self.table)

    @property
    def target(self) -> str:
        """The name of the target in the ledger."""
        return f"table:{self.table_name}"

    @property
    def mode(self) -> str:
        """The write mode, for messages."""
        return change.mode_of(self.change)

    @property
    def op(self) -> str | None:
        """The column with the operation of a row: write or delete."""
        return self.change.op if isinstance(self.change, Upsert) else None

    @property
    def order(self) -> str | None:
        """The column whose highest value wins among the rows of a key."""
        return self.change.order if isinstance(self.change, Upsert) else None

    @property
    def folded(self) -> bool:
        """Whether only one row of each key is written."""
        return bool(self.op or self.order)

    @property
    def added(self) -> Names:
        """Columns whose values are added to stored values."""
        return self.change.added if isinstance(self.change, Increment) else ()

    @property
    def keeps_nulls(self) -> bool:
        """Whether a null keeps the stored value."""
        return isinstance(self.change, Upsert) and self.change.nulls == "keep"

    @property
    def makes_rows(self) -> bool:
        """Whether the table may gain rows."""
        return not isinstance(self.change, Delete)

    @property
    def looked_up(self) -> Names:
        """The columns by which the server finds stored rows."""
        return () if isinstance(self.change, Append) else self.key

    @property
    def updates(self) -> bool:
        """Whether stored rows are changed; the server finds them by a unique key."""
        return isinstance(self.change, Upsert | Increment)

    def coercions_by(self, name: str, column: TableColumn) -> list[Coercion]:
        """The coercions of a column of the table for the query's column of this name."""
        return coercions(column, self.kinds[name], in_key=name in self.looked_up)

    def written_to(self, columns: Iterable[TableColumn]) -> TableRows:
        """The detail without the sequence column, if the table lacks it."""
        return self._without({self.order}, columns)

    def into(self, table: Names, columns: Iterable[TableColumn] = (), made: str = "") -> TableRows:
        """The detail for one of several tables.

        It need not have the column that names it. Letters of rejected rows get the value from the
        name, so a table must have the columns of a template whose names do not tell their values.
        """
        optional = {*templates.columns(self.parts)} - {*self.key}
        if not templates.is_invertible(self.parts):
            optional = set()
        return replace(self._without(optional, columns), table=table, made=made)

    def of_columns(
        self, schema: pa.Schema, columns: Names, primary: Names, required: Names
    ) -> TableRows:
        """The detail for rows that are JSON objects with columns of a table.

        Args:
            schema: of all columns of the table.
            columns: those that a row may fill.
            primary: the primary key of the table.
            required: the columns that a new row must fill.

        Raises:
            OptionError: the key is no column that a row may fill, or a column has a reserved name.
        """
        own = [name for name in columns if name.lower() in OWN_COLUMNS]
        if own and self.folded:
            raise reserved_column(own[0])
        known = {name.lower(): name for name in columns}
        for name in self.key:
            if name.lower() not in known:
                raise OptionError(
                    f"Option key names column {name!r}, which table {self.table_name} lacks or"
                    " computes",
                    why=f"its other columns are {', '.join(columns)}",
                    todo="name columns that all tables have, or omit key: it defaults to the"
                    " primary key of each table",
                )
        key, does = tuple(known[name.lower()] for name in self.key), self.change
        if isinstance(does, Upsert):
            key = key or primary
            does = replace(does, key=key)
        return replace(
            self,
            columns=columns,
            kinds={name: kind_of(schema.field(name)) for name in columns},
            key=key,
            change=does,
            fields=spark_types.to_ddl(schema),
            required=required,
        )

    @property
    def filled(self) -> dict[str, str]:
        """The value of the column that named the table."""
        return templates.filled_by(self.parts, self.made)

    def _without(self, some: Set[str | None], columns: Iterable[TableColumn]) -> TableRows:
        """The detail without those columns of `some` that the table lacks."""
        there = named(columns, self.columns)
        left = tuple(name for name in self.columns if name in there or name not in some)
        return replace(self, columns=left)


def plan(options: Options, schema: pa.Schema) -> Plan[TableRows]:
    """The plan that options describe.

    Raises:
        OptionError: options contradict each other or the schema.
    """
    table = address.database(options), str(options["dbtable"][-1])
    checks.refuse(_of_names(table, options))
    parts = template(options, schema)
    if options["rowColumn"]:
        return _of_json(options, schema, table, parts)
    key = tuple(checks.key_column("key", name, schema) for name in options["key"] or ())
    kinds = {field.name: kind_of(field) for field in schema}
    does = change.parse(options, schema, key, lambda: _added(key, schema))
    checks.refuse(change.contradictions(does, options))
    checks.refuse(_of_change(does, options))
    checks.refuse(_of_columns(does, key, kinds))
    op = does.op if isinstance(does, Upsert) else None
    every = tuple(name for name in schema.names if name != op)
    written = key if isinstance(does, Delete) else every
    rows = TableRows(
        table=table,
        change=does,
        key=key,
        columns=written,
        kinds={name: kinds[name] for name in written},
        aside=options["onBadRow"] == "deadLetter",
        schema=spark_types.to_ddl(schema),
        parts=parts,
        skips=options["onDuplicate"] == "ignore",
    )
    return Plan(
        target=rows.target,
        repeatable=isinstance(does, Upsert),
        columns=len(rows.columns),
        cells=CELLS,
        detail=rows,
        stored=codec.dump(rows),
        key=key,
        commutes=change.commutes(does),
    )


def _of_json(
    options: Options, schema: pa.Schema, table: Names, parts: tuple[Segment, ...]
) -> Plan[TableRows]:
    """The plan for rows that are JSON objects, whose columns only their tables tell."""
    row = checks.column("rowColumn", options["rowColumn"], schema)
    checks.refuse(_of_row(row, schema, parts, options))
    key = tuple(options["key"] or ())
    # Without option key it is the primary key of each table.
    does = change.parse(options, schema, key or (row,), usual=Upsert)
    checks.refuse(change.contradictions(does, options))
    checks.refuse(_of_change(does, options))
    rows = TableRows(
        table=table,
        change=does,
        key=key,
        columns=(),
        kinds={},
        aside=options["onBadRow"] == "deadLetter",
        schema=spark_types.to_ddl(schema),
        parts=parts,
        row=row,
    )
    return Plan(
        target=rows.target,
        repeatable=isinstance(does, Upsert),
        columns=len(schema),
        cells=CELLS,
        detail=rows,
        stored=codec.dump(rows),
        commutes=change.commutes(does),
    )


def _of_row(
    row: str, schema: pa.Schema, parts: Sequence[Segment], options: Options
) -> Iterator[Contradiction]:
    kind = kind_of(schema.field(row))
    yield (
        kind != "string",
        f"Option rowColumn names column {row!r} of type {kind}",
        "it must be a string, for example to_json(struct(*))",
        "cast it before the sink, or name another column",
    )
    yield (
        not templates.is_invertible(parts),
        "Option rowColumn needs a template of one column, without a date, in option dbtable",
        "the columns of a single table can be columns of the query, and a dead letter takes the"
        " value of the column from the name",
        "write dbtable={_table}, or select the columns",
    )
    for name, given, why, todo in (
        ("createTable", options["createTable"], "JSON does not tell types", "create the tables"),
        ("addColumns", options["addColumns"], "JSON does not tell types", "alter the tables"),
        ("sequenceColumn", options["sequenceColumn"], "rows are written in their order", ""),
        (
            f"writeMode={options['writeMode']}",
            options["writeMode"] not in (None, "append", "upsert"),
            "a row is written as a whole",
            "",
        ),
    ):
        both = f"Options rowColumn and {name} contradict each other"
        yield given, both, why, todo or f"omit {name.partition('=')[0]}"


def overwriting(plan: Plan[TableRows], options: Options) -> Plan[TableRows]:
    """The plan that empties the table first, in the transaction that fills it.

    Readers see the old rows until the transaction has written all new ones.

    Raises:
        OptionError: the options exclude one transaction, or the mode writes no rows.
    """
    checks.refuse(
        [
            change.deletes(plan.detail.change),
            (
                plan.detail.parts,
                f"Mode overwrite and option dbtable={plan.detail.table[1]} contradict each other",
                "the sink would have to empty tables that no row names",
                "name one table, or use mode append",
            ),
            (
                options["atomicity"] == "chunk",
                "Mode overwrite and option atomicity=chunk contradict each other",
                "mode overwrite empties and fills the table in one transaction",
                "omit atomicity, or use mode append",
            ),
        ]
    )
    rows = replace(plan.detail, overwrites=True)
    return replace(plan, detail=rows, stored=codec.dump(rows), repeatable=True)


def template(options: Options, schema: pa.Schema) -> tuple[Segment, ...]:
    """The parts of option ``dbtable``, if it is a template."""
    if not isinstance(options["dbtable"][-1], Template):
        return ()
    return templates.parse("dbtable", ".".join(options["dbtable"]), schema, LIKE)


def _added(key: Names, schema: pa.Schema) -> Names:
    def is_addable(field: pa.Field) -> bool:
        return ADDABLE.fullmatch(kind_of(field)) is not None

    fields = [field for field in schema if field.name not in key]
    return tuple(checks.require_addable(fields, is_addable, "only numbers are added"))


def _of_names(table: Names, options: Options) -> Iterator[Contradiction]:
    """Reject reserved names, and a table of bad rows that is the target, whatever its case."""
    letters = (table[0], *(options["deadLetter"] or ("",)))[-2:]
    for option, name in (("dbtable", table[1]), ("deadLetter", letters[1])):
        yield (
            name.lower().startswith(PREFIX),
            f"Option {option} is {name}, but names that begin with {PREFIX} are reserved",
            "the connector's own tables and temporary ones have these names, and could collide",
            "rename the table",
        )
    yield (
        [name.lower() for name in letters] == [name.lower() for name in table],
        f"Options dbtable and deadLetter both name {'.'.join(letters)}",
        "bad rows would be among the stored rows",
        "name another table in deadLetter; it is created on first use",
    )


def _of_change(does: Change, options: Options) -> Iterator[Contradiction]:
    given = "opColumn" if options["opColumn"] else "sequenceColumn"
    for name, value, fits in (
        ("writeMode", change.mode_of(does), "upsert"),
        ("atomicity", options["atomicity"], "epoch"),
        ("nulls", options["nulls"], "write"),
    ):
        yield (
            options[given] and value != fits,
            f"Options {given} and {name}={value} contradict each other",
            "only the last row of each key in an epoch is written",
            f"omit {name}, or set it to {fits}",
        )
    yield (
        options["onDuplicate"] == "ignore" and not isinstance(does, Append),
        f"Options onDuplicate=ignore and writeMode={change.mode_of(does)} contradict each other",
        "only an appended row can be a duplicate",
        "omit onDuplicate, or omit key and set writeMode=append",
    )
    yield (
        options["atomicity"] == "chunk" and isinstance(options["dbtable"][-1], Template),
        "Option atomicity=chunk and a template in dbtable contradict each other",
        "all tables of an epoch change in one transaction",
        "omit atomicity",
    )
    yield (
        isinstance(does, Delete) and options["createTable"],
        "Options writeMode=delete and createTable contradict each other",
        "a new table has no rows to delete",
        "omit createTable",
    )


def _of_columns(does: Change, key: Names, kinds: Mapping[str, str]) -> Iterator[Contradiction]:
    op, order = (does.op, does.order) if isinstance(does, Upsert) else (None, None)
    for option, column, allowed in (
        ("opColumn", op, ("string",)),
        ("sequenceColumn", order, SEQUENCES),
    ):
        kind = kinds[column] if column else ""
        yield (
            column and kind.partition("(")[0] not in allowed,
            f"Option {option} names column {column!r} of type {kind}",
            f"its type must be {', '.join(allowed)}",
            "cast it before the sink",
        )
    for name in key:
        yield (
            not EXACT_KEY.fullmatch(kinds[name]),
            f"Option key names column {name!r} of type {kinds[name]}",
            "the server does not compare values of this type exactly",
            "cast it to string, decimal or a whole number before the sink",
        )
    temporary = isinstance(does, Delete) or op or order
    for name in key if isinstance(does, Delete) else kinds:
        if temporary and name != op and name.lower() in OWN_COLUMNS:
            raise reserved_column(name)


def reserved_column(name: str) -> OptionError:
    """The error for a column whose name the connector needs."""
    return OptionError(
        f"Column {name!r} has a name that the connector needs in its temporary table",
        why="the connector numbers and flags rows in that table",
        todo="rename the column, in the query and in the table",
    )
