"""A table as it was behind some transactions: read without a lock, and again whenever asked for.

Each piece is read in a transaction of its own, which sees a later state. The log tells which rows
were touched since: of these the first touch says what they were. Whatever a transaction sees was
logged before, so a log that is read afterwards lacks nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyspark_mysql.binlog.gtids import gtids
from pyspark_mysql.binlog.reader import RowChanges
from pyspark_mysql.follow.changes import Changes
from pyspark_mysql.follow.fitness import gtids_at, log_server
from pyspark_mysql.follow.table import BEFORE, META, OP, FollowedTable
from pyspark_mysql.read import ranges
from pyspark_mysql.read.columns import ResultColumn, wire_form
from pyspark_mysql.read.one_state import begun, place_in_log
from pyspark_mysql.read.rows import rows
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import StoreRefused, StoreUnreachable, StoreUnsafe

READ = "r"
"""What happened to a row that was there before: Debezium's word."""

ENOUGH = 100_000
"""Touches of rows, of which the first ones are kept."""

AT = "sparkonce at"
"""No column's name."""


@dataclass(frozen=True)
class SnapshotPiece:
    """A split: rows whose key begins with a number in a range, as they were."""

    behind: str  # the transactions that had been
    low: int | None = None  # a number below all of theirs; None if there is no such bound
    high: int | None = None  # the highest one; likewise


def require_snapshot(table: FollowedTable) -> None:
    """Refuse a table of which no earlier state can be made."""
    if not table.key:
        raise StoreRefused(
            f"startingPosition=snapshot: table {table.full_name} has no primary key",
            why="nothing tells which rows were changed while the table is read",
            todo="give it one, or begin with startingPosition=latest",
        )
    if table.engine != "InnoDB":
        raise StoreUnsafe(
            f"startingPosition=snapshot: table {table.full_name} has the engine {table.engine}",
            why="it shows no state of one moment while others write",
            todo="ALTER TABLE ... ENGINE=InnoDB, or begin with startingPosition=latest",
        )
    if table.cascade:
        raise StoreRefused(
            f"startingPosition=snapshot: foreign key {table.cascade} changes rows of table"
            f" {table.full_name}",
            why="the binary log does not have these changes, so what rows were can't be told",
            todo="ALTER it to ON DELETE and ON UPDATE RESTRICT, or begin with"
            " startingPosition=latest",
        )
    table.require_key()


def next_border(
    session: MySqlSession, table: FollowedTable, low: int | None, most: int
) -> int | None:
    """The number up to which so many rows come; None if these are all, or can't be divided."""
    first = _divided(table)
    if first is None:
        return None
    name, where = identifier(first.name), _condition(first, SnapshotPiece("", low))
    with session.limited():
        found = session.run(
            f"SELECT {name} FROM {table.relation}{where} ORDER BY {name} LIMIT 1 OFFSET {most - 1}"
        )
    return int(found[0][0]) if found else None


def pieces(
    session: MySqlSession, table: FollowedTable, whole: SnapshotPiece, many: int
) -> Sequence[SnapshotPiece]:
    """The same in so many pieces, where the server knows of about how many rows each has."""
    first = _divided(table)
    if first is None or (whole.low, whole.high) != (None, None):
        return [whole]
    with session.limited():
        begins = ranges.borders(session, table.relation, first, many)
    ends = [one - 1 for one in begins]
    return [
        SnapshotPiece(whole.behind, low, high)
        for low, high in zip([None, *ends], [*ends, None], strict=True)
    ]


class Snapshot:
    """Reads pieces, as rows of a schema."""

    def __init__(self, session: MySqlSession, table: FollowedTable, schema: pa.Schema) -> None:
        self.session, self.table, self.schema = session, table, schema
        self.fields = [one for one in schema if one.name not in (*META, BEFORE)]
        # Keys are told apart by numbers: a TINYINT(1) may be more than true and false.
        kinds = {name: table.columns[name].natural for name in table.key}
        kinds |= {name: pa.int8() for name, kind in kinds.items() if types.is_boolean(kind)}
        self.key = [pa.field(*one) for one in kinds.items()]
        self.columns = [*self.key, *self.fields]

    def read(self, piece: SnapshotPiece, since: Iterable[RowChanges]) -> Iterator[pa.RecordBatch]:
        """The rows of a piece.

        Args:
            piece: which.
            since: what was logged behind it; asked for when the rows that are there are fixed.

        Raises:
            StoreRefused: something changed rows without telling of each.
            StoreUnreachable: the server does not show the state yet.
        """
        forms = [wire_form(self.table.column(one.name), one.type) for one in self.columns]
        where, schema = _condition(_divided(self.table), piece), pa.schema(self.columns)
        with _held(self.session, piece.behind):
            touched = self._touched(since)
            with closing(rows(self.session, forms, self.table.relation, where, schema)) as found:
                for batch in found:
                    yield self._as_changes(_without(batch, touched, self.table.key))
        yield from self._former(piece, touched)

    def _touched(self, since: Iterable[RowChanges]) -> pa.Table:
        """The first touch of each row: its key, whether it was there, and what it was."""
        kinds = [pa.field(OP, pa.string()), pa.field(BEFORE, pa.struct(self.columns))]
        schema = pa.schema([*self.key, *kinds])
        changes = Changes(schema, self.table.key, self.table)
        found, new = schema.empty_table(), list[pa.RecordBatch]()
        for batch in changes.batches(since):
            new.append(batch)
            if sum(map(len, new)) > ENOUGH:
                found, new = self._first(found, new), []
        return self._first(found, new)

    def _first(self, found: pa.Table, new: Sequence[pa.RecordBatch]) -> pa.Table:
        both = pa.concat_tables([found, pa.Table.from_batches(new, found.schema)])
        numbered = both.select(self.table.key).append_column(AT, pa.array(np.arange(len(both))))
        firsts = numbered.group_by(list(self.table.key)).aggregate([(AT, "min")])
        return both.take(firsts[f"{AT}_min"].combine_chunks().sort())

    def _former(self, piece: SnapshotPiece, touched: pa.Table) -> Iterator[pa.RecordBatch]:
        """Rows of the piece that were touched since, as they were."""
        for batch in touched.filter(pc.not_equal(touched[OP], "c")).to_batches():
            former = pa.RecordBatch.from_struct_array(batch[BEFORE])
            inside = _is_in(former, piece, _divided(self.table))
            yield self._as_changes(former if inside is None else former.filter(inside))

    def _as_changes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # A column of the key may be asked for, too, as another type: it stands behind the key.
        found = {field.name: len(self.key) + at for at, field in enumerate(self.fields)}
        columns = [
            batch.column(found[field.name]) if field.name in found else _meta(field, len(batch))
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def _meta(field: pa.Field, many: int) -> pa.Array:
    if field.name == OP:
        return pa.repeat(READ, many).cast(field.type)
    return pa.nulls(many, field.type)


def _divided(table: FollowedTable) -> ResultColumn | None:
    """The first column of the key, if it is a whole number."""
    first = table.columns[table.key[0]]
    kind = first.natural
    whole = types.is_integer(kind) or types.is_decimal(kind)
    return first if whole and ranges.divides(first) else None


def _condition(first: ResultColumn | None, piece: SnapshotPiece) -> str:
    if first is None:
        return ""
    name = identifier(first.name)
    low = [f"{name} > {piece.low}"] if piece.low is not None else []
    high = [f"{name} <= {piece.high}"] if piece.high is not None else []
    return f" WHERE {' AND '.join(low + high)}" if low or high else ""


def _is_in(
    rows: pa.RecordBatch, piece: SnapshotPiece, first: ResultColumn | None
) -> pa.Array | None:
    """Which rows lie in a piece; None if all do."""
    inside, numbers = None, rows.column(0)
    for bound, is_within in ((piece.low, pc.greater), (piece.high, pc.less_equal)):
        if first is not None and bound is not None:
            one = is_within(numbers, pa.scalar(bound, numbers.type))
            inside = one if inside is None else pc.and_(inside, one)
    return inside


def _without(batch: pa.RecordBatch, touched: pa.Table, key: Sequence[str]) -> Any:
    """Rows whose keys were not touched."""
    if not len(touched):
        return batch
    keys = pa.Table.from_arrays(batch.columns[: len(key)], names=[*key])
    numbered = keys.append_column(AT, pa.array(np.arange(len(batch))))
    left = numbered.join(touched.select(key), [*key], join_type="left anti", use_threads=False)
    return batch.take(left[AT].combine_chunks().sort())


@contextmanager
def _held(session: MySqlSession, behind: str) -> Iterator[None]:
    """A transaction that sees one state, in which some transactions have been."""
    with session.connected() as live:
        shown = log_server(session).executed
        with begun(live):
            shown = gtids_at(live, *place_in_log(live)) if live.mariadb else shown
            if lacking := gtids(shown, mariadb=live.mariadb).lacks(behind):
                raise StoreUnreachable(
                    f"The server does not show transactions {lacking} yet",
                    why="they are being committed, or it is a replica that is behind",
                    todo="the query tries it again; look at the server's replication",
                )
            yield
