"""Tables with triggers: what a trigger and the table make of a row is the same by LOAD DATA."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pymysql.cursors import Cursor

from sparkonce.errors import BadRow

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("word", pa.string())])
COLUMNS = "id BIGINT PRIMARY KEY, n BIGINT NOT NULL, word VARCHAR(5), seen BIGINT"
FILLS = "SET NEW.n = COALESCE(NEW.n, 7)"
NOTES = "SET NEW.seen = NEW.id"
MODES = [{"writeMode": "append"}, {"writeMode": "upsert", "key": "id"}]


@pytest.fixture
def triggered(make: Any, mysql: Cursor, table: str, local_infile: Any) -> Any:
    """Make a query into a table with a trigger, on a server that allows LOAD DATA LOCAL."""

    def triggered(trigger: str, **options: str) -> Any:
        local_infile(True)
        query = make(SCHEMA, COLUMNS, **options)
        mysql.execute(f"CREATE TRIGGER {table}_t BEFORE INSERT ON {table} FOR EACH ROW {trigger}")
        return query

    return triggered


def rows_with_a_null() -> list[dict[str, Any]]:
    return [
        {"id": number, "n": None if number == 450 else number, "word": None}
        for number in range(600)
    ]


@pytest.mark.parametrize("options", MODES)
def test_null_for_a_column_that_is_not_null_is_refused(
    triggered: Any, stored: Any, options: dict[str, str]
) -> None:
    query = triggered(NOTES, chunkRows="200", **options)
    with pytest.raises(BadRow, match=r"id=450.*'n' cannot be null"):
        query.run(0, rows_with_a_null())
    assert stored() == []


@pytest.mark.parametrize("options", MODES)
def test_null_that_a_trigger_fills_is_filled(
    triggered: Any, stored: Any, options: dict[str, str]
) -> None:
    query = triggered(FILLS, chunkRows="200", **options)
    query.run(0, rows_with_a_null())
    assert stored("id, n") == [(i, 7 if i == 450 else i) for i in range(600)]


@pytest.mark.parametrize("options", MODES)
@pytest.mark.parametrize("fills", [True, False])
def test_a_column_that_a_trigger_may_fill_needs_no_value_of_the_query(
    triggered: Any, mysql: Cursor, table: str, stored: Any, options: dict[str, str], fills: bool
) -> None:
    query = triggered(NOTES, **options)
    mysql.execute(f"ALTER TABLE {table} ADD must INT NOT NULL")
    mysql.execute(
        f"CREATE TRIGGER {table}_f BEFORE INSERT ON {table} FOR EACH ROW SET"
        f" NEW.{'must' if fills else 'seen'} = NEW.id"
    )
    query.sink.store.session.pool.close_idle()  # so that all is checked again
    rows = [{"id": number, "n": 1, "word": None} for number in range(600)]
    if fills:
        query.run(0, rows)
        assert stored("id, must") == [(number, number) for number in range(600)]
    else:
        with pytest.raises(BadRow, match="doesn't have a default value"):
            query.run(0, rows)
        assert stored() == []
