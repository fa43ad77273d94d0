"""`sparkonce letters` in each store: what it shows, moves and deletes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
import redis
from click.testing import CliRunner, Result
from elasticsearch import Elasticsearch
from integration.support.epochs import DirectQuery, ElasticsearchQuery, MySqlQuery
from pymysql.cursors import Cursor

import pyspark_elasticsearch.journal.dead_letters as of_elasticsearch
import pyspark_mysql.journal.dead_letters as of_mysql
import pyspark_redis.journal.dead_letters as of_redis
from sparkonce.operate.cli import main
from sparkonce.operate.letters import AT_ONCE

ROWS = pa.schema([("id", pa.int64()), ("n", pa.int64())])


class Place(NamedTuple):
    """A query that puts rows aside, and what the command needs to find them."""

    query: DirectQuery
    url: str
    options: tuple[str, ...]
    box: Any


def letters(place: Place, *arguments: str) -> Result:
    run = ["letters", place.url, *arguments, *place.options]
    return CliRunner().invoke(main, run, catch_exceptions=False)


def of(place: Place) -> tuple[str, ...]:
    """The options by which others' letters in the same store are left out."""
    return "-o", "onBadRow=deadLetter", "-o", f"deadLetter={place.query.options['deadLetter']}"


def listed(place: Place) -> Any:
    return json.loads(letters(place, "--json", *of(place)).output)


def moved(folder: Path) -> list[dict[str, Any]]:
    lines = (path.read_text().splitlines() for path in folder.glob("[!.]*"))
    return [json.loads(line) for some in lines for line in some]


@pytest.fixture
def put_aside(place: Place) -> int:
    """So many rows, of two epochs; a few more than are deleted at once."""
    rows = [{"id": number, "n": 300} for number in range(AT_ONCE + 7)]
    place.query.run(0, rows[: AT_ONCE // 2])
    place.query.run(1, rows[AT_ONCE // 2 :])
    return len(rows)


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
        assert "dead letters are in " in refused.output

    def test_all_letters_are_read_page_by_page(self, place: Place, put_aside: int) -> None:
        name = place.query.options["deadLetter"]
        shown = json.loads(letters(place, name, "--limit", "5000", "--json").output)
        assert sorted(json.loads(one["row"])["id"] for one in shown) == [*range(put_aside)]

    def test_letters_that_came_meanwhile_stay(
        self, place: Place, put_aside: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read, late = place.box.read, [{"id": 9999, "n": 300}]

        def meanwhile(*arguments: object) -> object:
            if late:
                place.query.run(2, [late.pop()])
            return read(*arguments)

        monkeypatch.setattr(place.box, "read", meanwhile)
        gone = letters(place, place.query.options["deadLetter"], "--delete", "--yes")
        assert gone.output == f"{put_aside:,} letters deleted.\n"
        (kind,) = listed(place)
        assert kind["letters"] == 1

    def test_single_letters_are_deleted_by_id(self, place: Place, put_aside: int) -> None:
        name = place.query.options["deadLetter"]
        first, second, *_ = json.loads(letters(place, name, "--json").output)
        gone = letters(place, name, "--delete", "--yes", "--id", first["id"], "--id", second["id"])
        assert gone.output == "2 letters deleted.\n"
        left = json.loads(letters(place, name, "--limit", "5000", "--json").output)
        assert len(left) == put_aside - 2
        assert {first["id"], second["id"]}.isdisjoint(one["id"] for one in left)

    def test_to_delete_a_place_must_be_named(self, place: Place) -> None:
        assert letters(place, "--delete", "--yes").exit_code == 2
        assert letters(place, "--move", "folder").exit_code == 2

    def test_letters_move_once_whatever_comes_between(
        self, place: Place, put_aside: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A command that dies before it deletes, or before its file has its name."""
        name, folder = place.query.options["deadLetter"], tmp_path / "of" / "orders"
        move = name, "--move", str(folder), "--yes", "--sink", place.query.name
        for dies, step in ((Path, "rename"), (place.box, "drop")):
            with monkeypatch.context() as dying:
                dying.setattr(dies, step, lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    letters(place, *move)
        there = len(moved(folder))
        assert there > 0
        said = letters(place, *move).output
        assert f"{put_aside - there:,} letters moved. Deleted {there} from " in said
        assert letters(place, *move).output == "0 letters moved.\n"
        assert listed(place) == []
        found = [json.loads(one["row"])["id"] for one in moved(folder)]
        assert sorted(found) == [*range(put_aside)]
        assert {one.suffix for one in folder.iterdir()} == {".json", ""}, "and the lock"

    def test_two_commands_do_not_move_into_one_directory(
        self, place: Place, put_aside: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        move = place.query.options["deadLetter"], "--move", str(tmp_path), "--yes"
        read, twin = place.box.read, list[Result]()

        def meanwhile(*arguments: object) -> object:
            if not twin:
                twin.append(letters(place, *move))
            return read(*arguments)

        monkeypatch.setattr(place.box, "read", meanwhile)
        assert letters(place, *move).output.endswith(f"\n{put_aside:,} letters moved.\n")
        assert "Another command moves letters into" in twin[0].output
        assert twin[0].exit_code == 1
        assert len(moved(tmp_path)) == put_aside

    def test_a_directory_is_for_one_sink(
        self, place: Place, put_aside: int, tmp_path: Path
    ) -> None:
        name, first = place.query.options["deadLetter"], place.query.name
        place.query.options["sinkId"] = "another"
        place.query.query_id = place.query.run_id = "another"
        place.query.run(0, [{"id": 1, "n": 300}])
        move = name, "--move", str(tmp_path), "--yes"
        assert "Name one with --sink: " in letters(place, *move).output
        assert letters(place, *move, "--sink", first).exit_code == 0
        refused = letters(place, *move, "--sink", place.query.name)
        assert f"has letters of sink {first}" in refused.output
        assert len(moved(tmp_path)) == put_aside

    def test_what_would_be_passed_over_is_refused(
        self, place: Place, put_aside: int, tmp_path: Path
    ) -> None:
        name, folder = place.query.options["deadLetter"], str(tmp_path / "folder")
        (kind,) = listed(place)
        for wrong in (
            ("--move", folder, "--id", "1"),
            ("--move", folder, "--limit", "1"),
            ("--move", folder, "--delete"),
            ("--id", "1"),
            ("--delete", "--limit", "1"),
        ):
            assert letters(place, name, *wrong, "--yes").exit_code == 2, wrong
        for acts in (("--move", folder), ("--delete",), ()):
            misspelt = letters(place, name, *acts, "--yes", "--sink", f"{kind['sink']}x")
            assert f"did you mean '{kind['sink']}'" in misspelt.output
            assert misspelt.exit_code == 1
        assert not (tmp_path / "folder").exists()
        assert letters(place, name, "--delete", "--yes", "--id", "0").output == (
            "0 letters deleted.\n"
        )
        assert listed(place)[0]["letters"] == put_aside


class TestInMySql(Letters):
    @pytest.fixture
    def place(self, mysql: Cursor, own_url: str, unique: str) -> Place:
        mysql.execute(f"CREATE TABLE {unique}.t (id BIGINT, n TINYINT)")
        aside = {"onBadRow": "deadLetter", "deadLetter": "bad", "maxBadRows": "100%"}
        query = MySqlQuery(ROWS, url=own_url, dbtable="t", **aside)
        return Place(query, own_url, (), of_mysql.LetterBox)

    def test_names_of_sinks_are_told_apart_by_case(self, mysql: Cursor, place: Place) -> None:
        place.query.sink.check()
        database, reason = place.url.rpartition("/")[2], "Value 5 can't be 'x'"
        for sink in ("Orders@1", "orders@1"):
            mysql.execute(
                f"INSERT INTO {database}.bad"
                " (sink, epoch, target, reason, row_key, row_data, base64)"
                " VALUES (%s, 0, 't', %s, '{}', '{}', '[]')",
                (sink, reason),
            )
        assert [kind["letters"] for kind in listed(place)] == [1, 1]
        assert {kind["sink"] for kind in listed(place)} == {"Orders@1", "orders@1"}
        assert {kind["reason"] for kind in listed(place)} == {"Value ... can't be ..."}


class TestInRedis(Letters):
    @pytest.fixture
    def place(self, redis_url: str, unique: str) -> Place:
        with redis.Redis.from_url(redis_url) as client:
            client.set(f"{unique}:300", "no hash")
        bad = {"onBadRow": "deadLetter", "deadLetter": "bad", "maxBadRows": "100%"}
        query = DirectQuery(ROWS, url=redis_url, keyPrefix=unique, key=f"{unique}:{{n}}", **bad)
        return Place(query, redis_url, ("-o", f"keyPrefix={unique}"), of_redis.LetterBox)


class TestInElasticsearch(Letters):
    @pytest.fixture
    def place(self, elastic: Elasticsearch, elasticsearch_url: str, index: str) -> Place:
        fields = {"id": {"type": "long"}, "n": {"type": "byte"}}
        elastic.indices.create(index=index, mappings={"properties": fields})
        bad = {"onBadRow": "deadLetter", "deadLetter": f"{index}-bad", "maxBadRows": "100%"}
        query = ElasticsearchQuery(
            ROWS, url=elasticsearch_url, index=index, indexPrefix=index, **bad
        )
        prefix = ("-o", f"indexPrefix={index}")
        return Place(query, elasticsearch_url, prefix, of_elasticsearch.LetterBox)

    def test_letters_of_several_shards_are_all_read(
        self, elastic: Elasticsearch, place: Place
    ) -> None:
        """Many of them were written in the same millisecond."""
        name = place.query.options["deadLetter"]
        fields = {"sink": {"type": "keyword"}, "at": {"type": "date"}}
        shards = {"number_of_shards": 3}
        elastic.indices.create(index=name, mappings={"properties": fields}, settings=shards)
        letter = {"sink": "s@1", "epoch": 0, "partition": 0, "index": "i", "reason": "r", "at": 1}
        letter |= {"key": "{}", "row": "{}", "base64": []}
        lines = [line for _ in range(2000) for line in ({"index": {}}, letter)]
        elastic.bulk(index=name, operations=lines, refresh=True)
        (kind,) = listed(place)
        assert kind["letters"] == 2000
        gone = letters(place, name, "--delete", "--yes", *of(place))
        assert gone.output == "2,000 letters deleted.\n"
        assert listed(place) == []
