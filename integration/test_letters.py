"""`sparkonce letters` in MySQL, MariaDB and Elasticsearch: each row is written again once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from elasticsearch import Elasticsearch
from integration.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery
from pymysql.cursors import Cursor

import pyspark_elasticsearch.journal.letterbox as of_elasticsearch
import pyspark_mysql.journal.letterbox as of_mysql
from sparkonce.operate.cli import main
from sparkonce.operate.replaying import MOST

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64())])
DDL = "id bigint, n bigint"


class Place(NamedTuple):
    """Where rows go and are put aside; each row counts, as it is appended without a key."""

    query: DirectQuery
    url: str
    options: tuple[str, ...]
    widen: Callable[[], None]
    stored: Callable[[], Counter[int]]
    box: Any


@pytest.fixture
def mysql_place(mysql: Cursor, mysql_url: str, unique: str) -> Iterator[Place]:
    mysql.execute(f"CREATE DATABASE {unique}")
    mysql.execute(f"CREATE TABLE {unique}.t (id BIGINT, n TINYINT)")
    url = f"{mysql_url.rpartition('/')[0]}/{unique}"
    aside = {"onBadRow": "deadLetter", "deadLetter": "bad", "maxBadRows": "100%"}

    def stored() -> Counter[int]:
        mysql.execute(f"SELECT id FROM {unique}.t")
        return Counter(id_ for (id_,) in mysql.fetchall())

    yield Place(
        MySqlQuery(ROWS, url=url, dbtable="t", **aside),
        url,
        ("-o", "dbtable=t"),
        lambda: mysql.execute(f"ALTER TABLE {unique}.t MODIFY n BIGINT"),
        stored,
        of_mysql.Box,
    )
    mysql.execute(f"DROP DATABASE {unique}")


@pytest.fixture
def elasticsearch_place(elastic: Elasticsearch, elasticsearch_url: str, index: str) -> Place:
    fields = {"id": {"type": "long"}, "n": {"type": "byte"}}
    elastic.indices.create(index=index, mappings={"properties": fields})
    bad = {"onBadRow": "deadLetter", "deadLetter": f"{index}-bad", "maxBadRows": "100%"}

    def stored() -> Counter[int]:
        elastic.indices.refresh(index=index)
        hits = elastic.search(index=index, size=10_000)["hits"]["hits"]
        return Counter(hit["_source"]["id"] for hit in hits)

    lenient = {"n": {"type": "byte", "ignore_malformed": True}}
    return Place(
        ElasticsearchQuery(ROWS, url=elasticsearch_url, index=index, indexPrefix=index, **bad),
        elasticsearch_url,
        ("-o", f"index={index}", "-o", f"indexPrefix={index}"),
        lambda: elastic.indices.put_mapping(index=index, properties=lenient),
        stored,
        of_elasticsearch.Box,
    )


def letters(place: Place, *arguments: str) -> Result:
    run = ["letters", place.url, *arguments, *place.options]
    return CliRunner().invoke(main, run, catch_exceptions=False)


def listed(place: Place) -> Any:
    """What is in the place of the query, as others may have letters in the same store."""
    name = place.query.options["deadLetter"]
    own = ("-o", "onBadRow=deadLetter", "-o", f"deadLetter={name}")
    return json.loads(letters(place, "--json", *own).output)


def replay(place: Place, *arguments: str) -> Result:
    name = place.query.options["deadLetter"]
    return letters(place, name, "--replay", "--schema", DDL, *arguments)


def rows(count: int) -> list[dict[str, int]]:
    return [{"id": number, "n": 300} for number in range(count)]


@pytest.fixture
def put_aside(place: Place) -> int:
    """So many rows, of two epochs; a few more than a batch of letters has."""
    place.query.run(0, rows(MOST + 7)[: MOST // 2])
    place.query.run(1, rows(MOST + 7)[MOST // 2 :])
    return MOST + 7


class Letters:
    """What holds in each store."""

    def test_letters_are_listed_by_reason_and_shown(self, place: Place, put_aside: int) -> None:
        shown = letters(place).output
        assert f"{put_aside:,} letters of {place.query.name}, the last at " in shown
        (kind,) = listed(place)
        assert (kind["sink"], kind["letters"]) == (place.query.name, put_aside)
        shown = json.loads(letters(place, kind["place"], "--limit", "3", "--json").output)
        assert [json.loads(one["row"])["n"] for one in shown] == [300] * 3
        assert {one["epoch"] for one in shown} == {0}
        assert letters(place, kind["place"], "--limit", "2").output.count("  row  ") == 2
        refused = letters(place, "elsewhere")
        assert refused.exit_code == 1
        assert "they are in " in refused.output

    def test_rows_are_refused_as_long_as_nothing_is_mended_and_letters_stay(
        self, place: Place, put_aside: int
    ) -> None:
        assert replay(place).exit_code == 1
        assert place.stored() == Counter()
        assert listed(place)[0]["letters"] == put_aside

    def test_each_row_is_written_again_once(self, place: Place, put_aside: int) -> None:
        place.widen()
        assert replay(place).output.endswith(f"{put_aside:,} letters written again.\n")
        assert place.stored() == Counter(range(put_aside))
        assert listed(place) == []
        assert json.loads(replay(place, "--json").output) == {"written_again": 0}
        assert place.stored() == Counter(range(put_aside))

    def test_a_replay_that_dies_before_it_deletes_writes_nothing_twice(
        self, place: Place, put_aside: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place.widen()

        def dies(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(place.box, "drop", dies)
            assert replay(place).exit_code != 0
        assert place.stored() == Counter(range(MOST))
        assert replay(place).exit_code == 0
        assert place.stored() == Counter(range(put_aside))

    def test_letters_that_came_meanwhile_stay(
        self, place: Place, put_aside: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, late = place.box.read, [{"id": 9999, "n": 300}]

        def meanwhile(*arguments: object) -> object:
            if late:
                place.query.run(2, [late.pop()])
            return read(*arguments)

        monkeypatch.setattr(place.box, "read", meanwhile)
        assert letters(place, place.query.options["deadLetter"], "--delete", "--yes").exit_code == 0
        (kind,) = listed(place)
        assert kind["letters"] == 1
        assert put_aside

    def test_two_operators_write_each_row_once(
        self, place: Place, put_aside: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place.widen()
        read = place.box.read
        others: list[Result] = []

        def beside(*arguments: object) -> object:
            found = read(*arguments)
            if not others:
                others.append(Result.__new__(Result))  # once, not for the reads of the other one
                others[0] = replay(place)
            return found

        monkeypatch.setattr(place.box, "read", beside)
        mine = replay(place)
        assert others[0].exit_code == 0
        assert place.stored() == Counter(range(put_aside)), mine.output

    def test_schema_is_needed_and_is_that_of_the_query(self, place: Place, put_aside: int) -> None:
        name = place.query.options["deadLetter"]
        assert "--replay needs --schema" in letters(place, name, "--replay").output
        wrong = letters(place, name, "--replay", "--schema", "id bigint")
        assert "it has 'n', and the schema has not" in wrong.output
        assert put_aside


class TestInMySql(Letters):
    @pytest.fixture
    def place(self, mysql_place: Place) -> Place:
        return mysql_place


class TestInElasticsearch(Letters):
    @pytest.fixture
    def place(self, elasticsearch_place: Place) -> Place:
        return elasticsearch_place
