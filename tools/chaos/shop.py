"""A database whose tables change, are altered and emptied, and two copies of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from elasticsearch import Elasticsearch
from elasticsearch.helpers import scan

SOURCE, COPY = "shop", "copy"
FORM = "(id INT PRIMARY KEY, n BIGINT NOT NULL, t VARCHAR(20))"
FIRST = ("t0", "t1", "t2")
JOINS = 3
"""How many tables are created later."""

IDS = 300
MOST = 6
"""The most columns that a table gets."""

Rows = dict[int, dict[str, Any]]


class Shop:
    """Draws statements on the database. A copy gets each new column before the source has it."""

    def __init__(self, chance: random.Random, source: str = SOURCE, copy: str = COPY) -> None:
        self.chance, self.number = chance, 0
        self.source, self.copy = source, copy
        self.tables = [*FIRST]
        self.added: dict[str, list[str]] = {name: [] for name in FIRST}

    def definitions(self) -> list[str]:
        """The statements that create both databases."""
        made = [f"CREATE DATABASE {name}" for name in (self.source, self.copy)]
        return [*made, *self.tables_of_both()]

    def tables_of_both(self) -> list[str]:
        """The statements that create the first tables in both databases."""
        return [one for name in FIRST for one in self._made(name)]

    def change(self) -> str:
        """A statement that changes rows."""
        name, one, number = self.chance.choice(self.tables), self._id(), self._next()
        table, text = f"{self.source}.{name}", self.chance.choice(("NULL", "''", f"'t{number}'"))
        draw = self.chance.random()
        if draw < 0.4:
            return f"REPLACE INTO {table} (id, n, t) VALUES ({one}, {number}, {text})"
        if draw < 0.7:
            return f"UPDATE {table} SET n = n + 1, t = {text} WHERE id BETWEEN {one} AND {one + 9}"
        if draw < 0.85:
            return f"UPDATE IGNORE {table} SET id = {self._id()} WHERE id = {one}"
        return f"DELETE FROM {table} WHERE id BETWEEN {one} AND {one + 5}"

    def alteration(self) -> list[str]:
        """Statements that alter, empty or create a table."""
        draw, name, number = self.chance.random(), self.chance.choice(FIRST), self._next()
        table, columns = f"{self.source}.{name}", self.added[name]
        if draw < 0.2 and len(self.tables) < len(FIRST) + JOINS:
            new = f"t{len(self.tables)}"
            self.tables.append(new)
            return self._made(new)
        if draw < 0.4:
            return [f"TRUNCATE {table}"]
        column = f"c{number}"
        known = self.chance.choice(columns) if columns else ""
        added = f"ALTER TABLE {self.copy}.{name} ADD COLUMN {column} BIGINT"
        # Each row is written again, so that copies have what the statement did to it.
        rewritten = f"UPDATE {table} SET n = n + 1, {column} = {number} + id"
        if known and draw < 0.6:
            columns.remove(known)
            columns.append(column)
            renamed = f"ALTER TABLE {table} RENAME COLUMN {known} TO {column}"
            return [added, renamed, rewritten]
        if known and (draw < 0.7 or len(columns) >= MOST):
            columns.remove(known)
            return [f"ALTER TABLE {table} DROP COLUMN {known}"]
        columns.append(column)
        place = self.chance.choice(("", " FIRST", " AFTER id"))
        return [added, f"ALTER TABLE {table} ADD COLUMN {column} BIGINT{place}", rewritten]

    def _made(self, name: str) -> list[str]:
        # The copy first: the stream finds the source's table at any moment.
        return [f"CREATE TABLE {one}.{name} {FORM}" for one in (self.copy, self.source)]

    def _id(self) -> int:
        return self.chance.randrange(IDS)

    def _next(self) -> int:
        self.number += 1
        return self.number


def rows_of(names: Sequence[str], found: Sequence[Sequence[Any]]) -> Rows:
    """Rows by their ids."""
    rows = (dict(zip(names, one, strict=True)) for one in found)
    return {row["id"]: row for row in rows}


def documents(client: Elasticsearch, table: str) -> Rows:
    """The documents of a table's index by their ids; none if there is no index."""
    index = f"{SOURCE}.{table}"
    with closing(client):
        if not client.indices.exists(index=index):
            return {}
        client.indices.refresh(index=index)
        hits = [hit["_source"] for hit in scan(client, index=index, size=1000)]
    return {row["id"]: row for row in hits}


def differing(source: Rows, target: Rows, columns: Sequence[str]) -> tuple[int, int]:
    """The number of missing or stale rows, by the source's columns, and of surplus rows."""

    def of(row: Mapping[str, Any] | None) -> Any:
        return row and [row.get(name) for name in columns]

    stale = sum(of(target.get(key)) != of(row) for key, row in source.items())
    return stale, len(target.keys() - source.keys())
