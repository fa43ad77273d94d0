"""Option ``sequenceColumn``: which row of a key an epoch leaves, wherever in it the row is.

Each chunk carries the id and the sequence of its operations. All of them are compared before the
first chunk is applied, and those that lose are never sent: so a delete with a higher sequence in
an earlier chunk wins over an older write in a later one. The outcome follows from the manifest
alone, so a roll-forward comes to the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_elasticsearch.keys import numbers

ID, SEQUENCE = "id", "sequence"


def order_of(ids: Any, sequence: Any) -> bytes:
    """What a chunk carries of the order of its operations."""
    batch = pa.record_batch([ids, sequence], names=[ID, SEQUENCE])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def highest_of_each(ids: Any, sequence: Any) -> Any:
    """The places of the rows that win among these, in their order; of equal ones the last."""
    table = pa.table({ID: ids, SEQUENCE: sequence, "place": numbers(len(ids))})
    return _winners(table, ["place"]).column("place").sort().combine_chunks()


def losers(orders: Sequence[bytes]) -> Mapping[int, frozenset[int]]:
    """For each chunk, by its place among all, the places of operations that lose."""
    tables = [_numbered(order, ordinal) for ordinal, order in enumerate(orders) if order]
    if not tables:
        return {}
    whole = pa.concat_tables(tables).combine_chunks()
    won = _winners(whole, ["ordinal", "place"])
    if len(won) == len(whole):
        return {}
    lost = whole.select(won.schema.names).join(won, won.schema.names, join_type="left anti")
    found: dict[int, set[int]] = defaultdict(set)
    for ordinal, place in zip(
        *(lost.column(n).to_pylist() for n in ("ordinal", "place")), strict=True
    ):
        found[ordinal].add(place)
    return {ordinal: frozenset(places) for ordinal, places in found.items()}


def _numbered(order: bytes, ordinal: int) -> pa.Table:
    table = pa.ipc.open_stream(pa.py_buffer(order)).read_all()
    # The ids of a large epoch are more than the 2 GB that Arrow's strings have room for.
    table = table.set_column(0, ID, table.column(ID).cast(pa.large_string()))
    table = table.append_column("ordinal", pa.repeat(pa.scalar(ordinal, pa.int64()), len(table)))
    return table.append_column("place", numbers(len(table)))


def _winners(table: pa.Table, order: list[str]) -> pa.Table:
    """Where the rows are with the highest sequence of their id; of equal ones the last there."""
    keys = [(SEQUENCE, "ascending"), *((name, "ascending") for name in order)]
    ranked = table.take(pc.sort_indices(table, sort_keys=keys))
    ranked = ranked.append_column("rank", numbers(len(ranked)))
    kept = ranked.group_by(ID).aggregate([("rank", "max")]).column("rank_max").combine_chunks()
    return ranked.select(order).take(kept)
