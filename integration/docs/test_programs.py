"""The programs in the docs run as they stand, but for their addresses and names.

Those of dead-letters.md have tests of their own; of writing-a-connector.md the quick rules run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis
from demo.java import java_home
from elasticsearch import Elasticsearch
from integration.support.marks import slow_rows
from integration.support.mysql import logging_server
from integration.support.servers.finder import or_skip
from integration.support.servers.mysql import connect as connect_mysql
from pymysql.cursors import Cursor
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.kit import tutorial

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ELSEWHERE = {
    "opensearch.md": "that of elasticsearch.md, with another format",
    "quickstart.md": "the program of README",
    "dead-letters.md": "test_dead_letters",
    "writing-a-connector.md": "tests/kit/test_tutorial, and the last tests here",
}
USER = {"user": 7, "clicks": 2, "name": "x", "id": 1, "order_id": 5, "line_no": 1}
Run = Callable[..., None]


def programs(page: str) -> list[str]:
    """The programs of a page; of two that are compared the one for sparkonce."""
    found = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.S | re.M)
    afters = [re.search(r"^\S[^\n]*# after\n.*", one, re.S | re.M) for one in found]
    return [after[0] if after else one for one, after in zip(found, afters, strict=True)]


@pytest.fixture
def run(spark: SparkSession, tmp_path: Path) -> Iterator[Run]:
    """Run a program over one row, as a batch and as a stream, until all is done."""
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "0.json").write_text(json.dumps(USER))
    others = {query.runId for query in spark.streams.active}

    def own() -> list[StreamingQuery]:
        return [query for query in spark.streams.active if query.runId not in others]

    def run(code: str, columns: str, changed: Mapping[str, str], **names: Any) -> None:
        for here, there in {**changed, "/data/": f"{tmp_path}/"}.items():
            code = code.replace(here, there)
        batch = (
            spark.read.schema(
                "user int, clicks int, name string, id int, order_id int, line_no int"
            )
            .json(str(tmp_path / "rows"))
            .select(*columns.split())
        )
        stream = spark.readStream.schema(batch.schema).json(str(tmp_path / "rows"))
        is_stream = "writeStream" in code
        df: DataFrame = stream if is_stream else batch
        exec(code, {"spark": spark, "df": df, "users": stream, "batch": batch, **names})
        for query in own():
            query.processAllAvailable()
            query.stop()

    yield run
    for query in own():
        query.stop()


@pytest.fixture
def keys(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        yield client


@pytest.fixture
def shop(mysql: Cursor, own_url: str, unique: str) -> str:
    """A database with the tables of the pages, at a URL without a password."""
    mysql.execute(
        f"CREATE TABLE {unique}.orders (order_id BIGINT, line_no INT, name TEXT,"
        " PRIMARY KEY (order_id, line_no))"
    )
    mysql.execute(f"CREATE TABLE {unique}.users (id BIGINT PRIMARY KEY, name TEXT)")
    return own_url


def rows(mysql: Cursor, database: str, table: str) -> list[tuple[Any, ...]]:
    mysql.execute(f"SELECT * FROM {database}.{table}")
    return list(mysql.fetchall())


def test_each_program_is_run_by_some_test() -> None:
    here = {"index.md": 1, "mysql.md": 1, "elasticsearch.md": 1, "batch.md": 4, "migration.md": 6}
    here |= {"reading.md": 3, "following.md": 5, "redis.md": 1, "which-one.md": 5}
    counts = {page.name: len(programs(page.name)) for page in DOCS.glob("*.md")}
    assert {name: n for name, n in counts.items() if n and name not in ELSEWHERE} == here
    readme = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.S | re.M)
    assert programs("quickstart.md") == readme
    assert programs("redis.md") == programs("index.md")
    again = [("index.md", 0), ("batch.md", 2), ("batch.md", 1), ("reading.md", 0)]
    again += [("following.md", 0)]
    assert programs("which-one.md") == [programs(page)[nth] for page, nth in again]


@pytest.mark.parametrize(
    ("page", "nth"), [("index.md", 0), ("migration.md", 1), ("migration.md", 2)]
)
def test_streams_into_redis(
    run: Run, keys: redis.Redis, redis_url: str, unique: str, page: str, nth: int
) -> None:
    changed = {"redis://localhost:6379/0": redis_url, "redis://cache:6379/0": redis_url}
    run(programs(page)[nth], "user clicks", {**changed, "user:{user}": f"{unique}:{{user}}"})
    assert keys.hget(f"{unique}:7", "clicks") == "2"


def test_batches_into_redis(run: Run, keys: redis.Redis, redis_url: str, unique: str) -> None:
    changed = {"redis://cache:6379/0": redis_url, "person:{name}": f"{unique}:{{name}}"}
    run(programs("migration.md")[3], "name clicks", changed)
    assert keys.hgetall(f"{unique}:x") == {"name": "x", "clicks": "2"}


def test_code_that_is_replaced_does_what_it_did(
    run: Run, keys: redis.Redis, redis_url: str, unique: str
) -> None:
    """The first program of the page is the writer by hand, that the second one stands for."""
    client = f'redis.Redis.from_url("{redis_url}")'
    changed = {'redis.Redis("cache")': client, "user:{row.user}": f"{unique}:{{row.user}}"}
    run(f"import redis\n{programs('migration.md')[0]}", "user clicks", changed)
    assert keys.hget(f"{unique}:7", "clicks") == "2"


def test_streams_into_mysql(
    run: Run, mysql: Cursor, shop: str, unique: str, tmp_path: Path
) -> None:
    mysql.execute(f"CREATE USER {unique} IDENTIFIED BY 'pw'")
    mysql.execute(f"GRANT ALL ON {unique}.* TO {unique}")
    (tmp_path / "secret").write_text("pw\n")
    url = shop.replace("root@", f"{unique}@")
    changed = {"mysql://app@db.example:3306/shop": url}
    changed["/run/secrets/mysql"] = str(tmp_path / "secret")
    run(programs("mysql.md")[0], "order_id line_no name", changed)
    assert rows(mysql, unique, "orders") == [(5, 1, "x")]
    mysql.execute(f"DROP USER {unique}")


@pytest.mark.parametrize(
    ("page", "nth"), [("batch.md", 0), ("batch.md", 2), ("batch.md", 3), ("migration.md", 5)]
)
def test_batches_into_mysql(
    run: Run, mysql: Cursor, shop: str, unique: str, page: str, nth: int
) -> None:
    mysql.execute(f"ALTER TABLE {unique}.orders DROP PRIMARY KEY, ADD PRIMARY KEY (order_id)")
    mysql.execute(f"ALTER TABLE {unique}.orders DROP line_no")
    changed = {"mysql://app@db/shop": shop, "jdbc:mysql://db:3306/shop": f"jdbc:{shop}"}
    changed['user="app", password=secret'] = ""
    run(programs(page)[nth], "order_id name", changed)
    assert rows(mysql, unique, "orders") == [(5, "x")]


def test_a_table_is_read(spark: SparkSession, mysql: Cursor, shop: str, unique: str) -> None:
    mysql.execute(f"INSERT INTO {unique}.orders VALUES (5, 1, 'x'), (6, 1, NULL)")
    code = programs("reading.md")[0].replace("mysql://app@db:3306/shop", shop)
    assert read(spark, code, "orders") == [(5, 1, "x"), (6, 1, None)]


def test_a_table_is_followed_into_an_index(
    run: Run, spark: SparkSession, elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    with or_skip(lambda: logging_server("mysql")) as server:
        with connect_mysql(server.url) as client, client.cursor() as cursor:
            cursor.execute("CREATE TABLE orders (id INT PRIMARY KEY, name TEXT)")
            cursor.execute("INSERT INTO orders VALUES (5, 'x')")
        elastic.indices.create(index=index, mappings={"properties": {"id": {"type": "long"}}})
        changed = {
            "https://search:9200": elasticsearch_url,
            '"index", "orders"': f'"index", "{index}"',
        }
        changed["mysql://follower@db:3306/shop"] = server.url
        run(programs("following.md")[0], "id", changed, spark=spark)
    elastic.indices.refresh(index=index)
    (hit,) = elastic.search(index=index)["hits"]["hits"]
    assert (hit["_source"]["id"], hit["_source"]["name"]) == (5, "x")


def test_an_index_is_read(
    spark: SparkSession, elastic: Elasticsearch, elasticsearch_url: str, index: str
) -> None:
    for level in ("error", "info"):
        elastic.index(index=index, document={"level": level}, refresh=True)
    code = programs("reading.md")[1].replace("https://es1:9200", elasticsearch_url)
    assert read(spark, code.replace("logs-*", f"{index}*"), "logs") == [("error",)]


def test_hashes_are_read(
    spark: SparkSession, keys: redis.Redis, redis_url: str, unique: str
) -> None:
    keys.hset(f"{unique}:7", mapping={"name": "y"})
    code = programs("reading.md")[2].replace("redis://cache:6379/0", redis_url)
    assert read(spark, code.replace("user:{id}", f"{unique}:{{id}}"), "users") == [(7, "y")]


def test_a_stream_of_redis_is_followed(
    spark: SparkSession, keys: redis.Redis, redis_url: str, unique: str, tmp_path: Path
) -> None:
    entry = str(keys.xadd(unique, {"user": "7", "page": "a"}))
    code = programs("following.md")[1].replace("redis://cache:6379/0", redis_url)
    found = followed(spark, code.replace('"clicks")', f'"{unique}")'), "clicks", tmp_path)
    assert found == [(entry, 7, "a")]


def test_several_tables_are_followed(spark: SparkSession, tmp_path: Path) -> None:
    with or_skip(lambda: logging_server("mysql")) as server:
        with connect_mysql(server.url) as client, client.cursor() as cursor:
            cursor.execute("SET GLOBAL binlog_row_metadata = FULL")
            cursor.execute("CREATE DATABASE shop")
            cursor.execute("CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, status TEXT)")
            cursor.execute("INSERT INTO shop.orders VALUES (5, 'new')")
            cursor.execute("CREATE DATABASE copy")
            cursor.execute("CREATE TABLE copy.orders LIKE shop.orders")
        code = programs("following.md")[2].replace("mysql://follower@db:3306/shop", server.url)
        found = followed(spark, code, "orders", tmp_path)
        # The copy is on the same server.
        code += programs("following.md")[3].replace("{_table}", "copy.{name}")
        code = code.replace("mysql://app@copy:3306/shop", server.url)
        code = code.replace("/data/", f"{tmp_path}/")
        renamed = "database.selectExpr('*', \"substring_index(_table, '.', -1) name\").writeStream"
        exec(code.replace("database.writeStream", renamed), {"spark": spark})
        (query,) = spark.streams.active
        query.processAllAvailable()
        query.stop()
        with connect_mysql(server.url) as client, client.cursor() as cursor:
            copied = rows(cursor, "copy", "orders")
    assert [one[:3] for one in found] == [(5, "new", "r")]
    assert copied == [(5, "new")]


def test_an_index_is_followed(
    spark: SparkSession,
    elastic: Elasticsearch,
    elasticsearch_url: str,
    index: str,
    tmp_path: Path,
) -> None:
    elastic.index(index=index, id="a", document={"status": "new", "total": 2.5})
    code = programs("following.md")[4].replace("https://search:9200", elasticsearch_url)
    found = followed(
        spark, code.replace('"index", "orders"', f'"index", "{index}"'), "orders", tmp_path
    )
    assert found == [("a", "new", 2.5)]


def followed(spark: SparkSession, code: str, named: str, folder: Path) -> list[tuple[Any, ...]]:
    """The rows of a stream that a program makes, as a file sink stores them."""
    names: dict[str, Any] = {"spark": spark}
    exec(code, names)
    frame: DataFrame = names[named]
    place = {"path": str(folder / "rows"), "checkpointLocation": str(folder / "checkpoint")}
    writer = frame.writeStream.format("parquet").options(**place)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [*map(tuple, spark.read.parquet(place["path"]).select(*frame.columns).collect())]


def read(spark: SparkSession, code: str, named: str) -> list[tuple[Any, ...]]:
    """The rows of a frame that a program makes."""
    names: dict[str, Any] = {"spark": spark}
    exec(code, names)
    return [*map(tuple, names[named].collect())]


def test_streams_by_foreach_batch_into_two_stores(
    run: Run, mysql: Cursor, shop: str, keys: redis.Redis, redis_url: str, unique: str
) -> None:
    code = programs("batch.md")[1]
    run(code, "id name", {"user:{id}": f"{unique}:{{id}}"}, REDIS=redis_url, MYSQL=shop)
    assert keys.hget(f"{unique}:1", "name") == "x"
    assert rows(mysql, unique, "users") == [(1, "x")]


@pytest.mark.parametrize(
    ("page", "nth"), [("elasticsearch.md", 0), *slow_rows(("migration.md", 4))]
)
def test_streams_into_elasticsearch(
    run: Run, elastic: Elasticsearch, elasticsearch_url: str, index: str, page: str, nth: int
) -> None:
    numbers = {name: {"type": "long"} for name in ("order_id", "line_no")}
    elastic.indices.create(index=index, mappings={"properties": numbers})
    changed = {"https://es1.example:9200,https://es2.example:9200": elasticsearch_url}
    changed |= {"https://es1:9200": elasticsearch_url, '"orders"': f'"{index}"'}
    changed['    .option("apiKey", api_key)\n'] = ""
    run(programs(page)[nth], "order_id line_no", changed)
    elastic.indices.refresh(index=index)
    (hit,) = elastic.search(index=index)["hits"]["hits"]
    assert hit["_source"]["order_id"] == 5


def stop_after_some_epochs(query: StreamingQuery) -> None:
    while query.lastProgress is None or query.lastProgress.batchId < 3:
        assert not query.exception()
    query.stop()


def rows_read(checkpoint: Path) -> Iterator[int]:
    """By the end of each epoch: the rate source notes the seconds that it has given rows for."""
    for epoch in checkpoint.glob("offsets/[0-9]*"):
        yield 1000 * json.loads(epoch.read_text().splitlines()[-1])


def test_example_in_readme_counts_each_row_once(
    spark: SparkSession,
    redis_url: str,
    unique: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spark is SparkSession.getActiveSession()
    monkeypatch.setattr(StreamingQuery, "awaitTermination", stop_after_some_epochs)
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    for here, there in {
        "redis://localhost:6379/0": redis_url,
        "user:{user}": f"{unique}:{{user}}",
        "/tmp/": f"{tmp_path}/",
    }.items():
        assert here in code
        code = code.replace(here, there)
    exec(code, {})
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        counted = sum(int(client.hget(f"{unique}:{user}", "clicks") or 0) for user in range(10))
    assert counted > 0
    assert counted in set(rows_read(tmp_path / "checkpoints" / "clicks"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "rules", "found"),
    [
        ("test_sqlite_streaming.py", "q01 or q02 or q03 or q08", ["4 passed"]),
        (
            "test_files.py",
            "f01 or f02 or f05 or f12",
            ["3 passed, 1 skipped", "it reports no latestOffset"],
        ),
    ],
    ids=["sink", "source"],
)
def test_the_connector_of_the_page_is_green(
    tmp_path: Path, tests: str, rules: str, found: list[str]
) -> None:
    for name in ("java", "home"):
        (tmp_path / name).mkdir()
    java = str(java_home(tmp_path / "java"))
    done = tutorial.run(tmp_path / "home", tests, "-k", rules, JAVA_HOME=java)
    assert done.returncode == 0, done.stdout[-5000:]
    assert all(said in done.stdout for said in found), done.stdout[-5000:]
