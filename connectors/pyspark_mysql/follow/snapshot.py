"""Snapshot of a table as of a GTID set: read without a lock, and repeatable.

A separate transaction reads each piece and sees a later state. The log has the rows that changed
since; the first change of a row has its values in the snapshot. The server logs a transaction
before it is visible, so the log lacks no change that the piece shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from pyspark_mysql.binlog.gtids import gtids
from pyspark_mysql.binlog.reader import RowChanges
from pyspark_mysql.follow.changes import Changes
from pyspark_mysql.follow.condition import SnapshotCondition
from pyspark_mysql.follow.fitness import gtids_at, log_server
from pyspark_mysql.follow.table import BEFORE, META, OP, FollowedTable
from pyspark_mysql.read import ranges
from pyspark_mysql.read.axes import Numbers, axis
from pyspark_mysql.read.columns import ResultColumn, wire_form
from pyspark_mysql.read.one_state import begun, place_in_log
from pyspark_mysql.read.rows import rows
from pyspark_mysql.server.client import MySqlSession
from pyspark_mysql.server.literals import identifier
from sparkonce.errors import StoreRefused, StoreUnreachable, StoreUnsafe

READ = "r"
"""The `_op` of a row of the snapshot, as in Debezium."""

ENOUGH = 100_000
"""The number of changes after which only the first change of each row is kept."""

AT = "sparkonce at"
"""A name that no column has."""


@dataclass(frozen=True)
class SnapshotPiece:
    """A split: the rows whose key begins with a number of a range, as of the snapshot."""

    behind: str  # the GTID set of the snapshot
    low: int | None = None  # the lower bound, exclusive; None: no bound
    high: int | None = None  # the upper bound, inclusive; None: no bound
    condition: SnapshotCondition | None = None  # on the rows; None: all rows


def require_snapshot(table: FollowedTable) -> None:
    """Reject a table whose earlier state can't be reconstructed."""
    if not table.key:
        raise StoreRefused(
            f"startingPosition=snapshot: table {table.full_name} has no primary key",
            why="without a key the connector can't match logged changes with the rows that it read",
            todo="give the table one, or begin with startingPosition=latest",
        )
    if table.engine != "InnoDB":
        raise StoreUnsafe(
            f"startingPosition=snapshot: table {table.full_name} has the engine {table.engine}",
            why="the engine offers no consistent read while others write",
            todo="ALTER TABLE ... ENGINE=InnoDB, or begin with startingPosition=latest",
        )
    if table.cascade:
        raise StoreRefused(
            f"startingPosition=snapshot: foreign key {table.cascade} changes rows of table"
            f" {table.full_name}",
            why="the binary log lacks these changes, so the former values of rows are unknown",
            todo="ALTER it to ON DELETE and ON UPDATE RESTRICT, or begin with"
            " startingPosition=latest",
        )
    table.require_key()


def next_border(
    session: MySqlSession, table: FollowedTable, low: int | None, most: int
) -> int | None:
    """The number up to which the table has `most` rows after `low`.

    None if it has fewer rows, or if its key can't be divided.
    """
    first = _divided(table)
    if first is None:
        return None
    name, where = identifier(first.name), _where(first, SnapshotPiece("", low))
    with session.limited():
        found = session.run(
            f"SELECT {name} FROM {table.relation}{where} ORDER BY {name} LIMIT 1 OFFSET {most - 1}"
        )
    return int(found[0][0]) if found else None


def pieces(
    session: MySqlSession, table: FollowedTable, whole: SnapshotPiece, many: int
) -> Sequence[SnapshotPiece]:
    """The piece divided into `many` pieces, if the server can estimate the rows of each."""
    first = _divided(table)
    if first is None or (whole.low, whole.high) != (None, None):
        return [whole]
    with session.limited():
        begins = ranges.borders(session, table.relation, [Numbers(first)], many)
    ends = [int(number) - 1 for (number,) in begins]
    return [
        replace(whole, low=low, high=high)
        for low, high in zip([None, *ends], [*ends, None], strict=True)
    ]


class Snapshot:
    """Reads pieces of the snapshot as rows of a schema."""

    def __init__(self, session: MySqlSession, table: FollowedTable, schema: pa.Schema) -> None:
        self.session, self.table, self.schema = session, table, schema
        self.fields = [one for one in schema if one.name not in (*META, BEFORE)]
        # Keys are compared as numbers: a TINYINT(1) may hold more than true and false.
        kinds = {name: table.columns[name].natural for name in table.key}
        kinds |= {name: pa.int8() for name, kind in kinds.items() if types.is_boolean(kind)}
        self.key = [pa.field(*one) for one in kinds.items()]
        self.columns = [*self.key, *self.fields]

    def read(self, piece: SnapshotPiece, since: Iterable[RowChanges]) -> Iterator[pa.RecordBatch]:
        """The rows of a piece.

        Args:
            piece: the piece.
            since: the changes logged after the snapshot; read once the transaction's state is
                fixed.

        Raises:
            StoreRefused: the log lacks changes of rows.
            StoreUnreachable: the server does not show the state yet.
        """
        forms = [wire_form(self.table.column(one.name), one.type) for one in self.columns]
        where, schema = _where(_divided(self.table), piece), pa.schema(self.columns)
        judged = piece.condition.fields if piece.condition else []
        with _held(self.session, piece.behind):
            touched = self._touched(since, judged)
            with closing(rows(self.session, forms, self.table.relation, where, schema)) as found:
                for batch in found:
                    yield self._as_changes(_without(batch, touched, self.table.key))
        yield from self._former(piece, touched)

    def _touched(self, since: Iterable[RowChanges], judged: Sequence[pa.Field]) -> pa.Table:
        """The first change of each row: its key, its operation, and its former values."""
        former = pa.struct([*self.columns, *judged])
        kinds = [pa.field(OP, pa.string()), pa.field(BEFORE, former)]
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
        """Rows of the piece that changed since, with their values in the snapshot."""
        for batch in touched.filter(pc.not_equal(touched[OP], "c")).to_batches():
            former = pa.RecordBatch.from_struct_array(batch[BEFORE])
            inside = _is_in(former, piece, _divided(self.table))
            former = former if inside is None else former.filter(inside)
            if piece.condition:
                former = piece.condition.judged(self.session, former)
            yield self._as_changes(former)

    def _as_changes(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        # The schema may have a column of the key as another type: it follows the key.
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
    whole = types.is_integer(kind) or (types.is_decimal(kind) and first.scale == 0)
    return first if whole and axis(first, {}) else None


def _where(first: ResultColumn | None, piece: SnapshotPiece) -> str:
    found = [piece.condition.sql] if piece.condition else []
    if first is not None:
        name = identifier(first.name)
        bounds = (">", piece.low), ("<=", piece.high)
        found += [f"{name} {sign} {bound}" for sign, bound in bounds if bound is not None]
    return f" WHERE {' AND '.join(found)}" if found else ""


def _is_in(
    rows: pa.RecordBatch, piece: SnapshotPiece, first: ResultColumn | None
) -> pa.Array | None:
    """Which rows are in a piece; None if all are."""
    inside, numbers = None, rows.column(0)
    for bound, is_within in ((piece.low, pc.greater), (piece.high, pc.less_equal)):
        if first is not None and bound is not None:
            one = is_within(numbers, pa.scalar(bound, numbers.type))
            inside = one if inside is None else pc.and_(inside, one)
    return inside


def _without(batch: pa.RecordBatch, touched: pa.Table, key: Sequence[str]) -> Any:
    """The rows whose keys did not change."""
    if not len(touched):
        return batch
    keys = pa.Table.from_arrays(batch.columns[: len(key)], names=[*key])
    numbered = keys.append_column(AT, pa.array(np.arange(len(batch))))
    left = numbered.join(touched.select(key), [*key], join_type="left anti", use_threads=False)
    return batch.take(left[AT].combine_chunks().sort())


@contextmanager
def _held(session: MySqlSession, behind: str) -> Iterator[None]:
    """A transaction with a consistent view that includes the transactions `behind`."""
    with session.connected() as live:
        shown = log_server(session).executed
        with begun(live):
            shown = gtids_at(live, *place_in_log(live)) if live.mariadb else shown
            if lacking := gtids(shown, mariadb=live.mariadb).lacks(behind):
                raise StoreUnreachable(
                    f"The server does not show transactions {lacking} yet",
                    why="they are being committed, or the server is a replica that lags",
                    todo="the query retries; check the server's replication",
                )
            yield
