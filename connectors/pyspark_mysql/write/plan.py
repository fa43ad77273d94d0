"""The plan of a query: table, columns and write mode from the options, as manifests store it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_mysql.server import address
from pyspark_mysql.target.coercions import Coercion, coercions
from pyspark_mysql.target.columns import TableColumn, kind_of, named
from pyspark_mysql.target.names import LIKE
from pyspark_mysql.write import contradictions
from sparkonce import change, checks, codec, templates
from sparkonce.change import Append, Change, Delete, Increment, Names, Update, Upsert
from sparkonce.errors import OptionError
from sparkonce.protocol import Plan
from sparkonce.templates import Segment, Template
from sparkonce.values import spark_types

if TYPE_CHECKING:
    import pyarrow as pa

    from sparkonce.options import Options

MODES = ("append", "upsert", "update", "increment", "delete")
ADDABLE = re.compile(r"tinyint|smallint|int|bigint|decimal.*|float|double")
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
        replaces: the condition of the rows that an epoch deletes first; empty for all.
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
    replaces: str = ""
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
    def replaced(self) -> str:
        """The clause that chooses the rows which an overwrite deletes."""
        return f" WHERE (\n{self.replaces}\n)" if self.replaces else ""

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
        return bool(self.op or self.order or isinstance(self.change, Update))

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
        return not isinstance(self.change, Delete | Update)

    @property
    def looked_up(self) -> Names:
        """The columns by which the server finds stored rows."""
        return () if isinstance(self.change, Append) else self.key

    @property
    def set_columns(self) -> Names:
        """The columns that are set in stored rows only."""
        updates = isinstance(self.change, Update)
        return tuple(name for name in self.columns if updates and name not in self.key)

    @property
    def updates(self) -> bool:
        """Whether a row changes a stored row that the server finds by a unique key, or is new."""
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
        own = [name for name in columns if name.lower() in contradictions.OWN_COLUMNS]
        if own and self.folded:
            raise contradictions.reserved_column(own[0])
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
    checks.refuse(contradictions.of_names(table, options))
    parts = template(options, schema)
    if options["rowColumn"]:
        return _of_json(options, schema, table, parts)
    key = tuple(checks.key_column("key", name, schema) for name in options["key"] or ())
    kinds = {field.name: kind_of(field) for field in schema}
    does = change.parse(options, schema, key, lambda: _added(key, schema))
    checks.refuse(change.contradictions(does, options))
    checks.refuse(contradictions.of_change(does, options))
    checks.refuse(contradictions.of_columns(does, key, kinds))
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
        replaces=options["replaceWhere"] or "",
    )
    return Plan(
        target=rows.target,
        repeatable=isinstance(does, Upsert | Update),
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
    checks.refuse(contradictions.of_row(row, schema, parts, options))
    key = tuple(options["key"] or ())
    # Without option key it is the primary key of each table.
    does = change.parse(options, schema, key or (row,), usual=Upsert)
    checks.refuse(change.contradictions(does, options))
    checks.refuse(contradictions.of_change(does, options))
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
                isinstance(plan.detail.change, Update),
                "Mode overwrite and option writeMode=update contradict each other",
                "the sink would first empty the table, and then find no row to update",
                "omit writeMode, or use mode append",
            ),
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
