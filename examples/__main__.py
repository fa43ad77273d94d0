"""Runs an example on its own servers, and then checks the contents of the stores."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer
from elasticsearch.helpers import scan
from integration.support.servers import spark as local_spark
from integration.support.servers.elasticsearch import ElasticsearchProcess, private_tree
from integration.support.servers.elasticsearch import connect as connect_elasticsearch
from integration.support.servers.finder import NoServerError
from integration.support.servers.kafka import KafkaProcess, source_jars
from integration.support.servers.mysql import MySqlProcess, private_binary
from integration.support.servers.mysql import connect as connect_mysql
from integration.support.servers.redis import RedisProcess
from integration.support.servers.redis import connect as connect_redis

from examples import rentals

FILMS = 2_000
ORDERS = 20_000
CHANGES = 20_000

Records = Iterator[tuple[str, Mapping[str, Any]]]


SERVERS: dict[str, Callable[[], Any]] = {
    "KAFKA": KafkaProcess,
    "REDIS": lambda: RedisProcess("appendonly yes"),
    "MYSQL": lambda: MySqlProcess(*_binary_and_log()),
    "ELASTICSEARCH": lambda: ElasticsearchProcess(private_tree()),
}


class World:
    """The servers of an example, and their data."""

    def __init__(self, stack: ExitStack, names: Sequence[str]) -> None:
        self.home = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        print(f"servers: {', '.join(names).lower()}", flush=True)
        self.servers = {name: stack.enter_context(SERVERS[name]()) for name in names}
        with connect_mysql(self.servers["MYSQL"].url) as client, client.cursor() as cursor:
            cursor.execute("CREATE DATABASE shop")

    @property
    def addresses(self) -> dict[str, str]:
        """The environment variables of the program."""
        urls = {name: one.url for name, one in self.servers.items() if name != "KAFKA"}
        kafka = {"KAFKA": self.servers["KAFKA"].address} if "KAFKA" in self.servers else {}
        return {**urls, **kafka, "MYSQL": self.shop, "CHECKPOINTS": str(self.home / "checkpoints")}

    @property
    def shop(self) -> str:
        return f"{self.servers['MYSQL'].url.rpartition('/')[0]}/shop"

    @property
    def elasticsearch(self) -> str:
        return str(self.servers["ELASTICSEARCH"].url)

    def produce(self, topic: str, records: Records) -> None:
        producer = Producer({"bootstrap.servers": self.servers["KAFKA"].address, "log_level": 3})
        for key, record in records:
            producer.produce(topic, json.dumps(record), key)
            producer.poll(0)
        producer.flush()

    def run(self, program: str, killed_after: Callable[[], bool] | None = None) -> None:
        """Run the program until it has read all, or kill it as soon as a condition holds."""
        jars = ",".join(map(str, source_jars() if "KAFKA" in self.servers else ()))
        options = f"--master local[2] --conf spark.ui.enabled=false --jars '{jars}'"
        spark = {
            **local_spark.environment(self.home),
            "PYSPARK_SUBMIT_ARGS": f"{options} pyspark-shell",
        }
        command = [sys.executable, str(Path(__file__).with_name(f"{program}.py"))]
        with (self.home / "log").open("ab") as log:
            done = subprocess.Popen(
                command,
                env={**os.environ, **spark, **self.addresses},
                stderr=log,
                start_new_session=True,
            )
            while done.poll() is None:
                time.sleep(0.1)
                if killed_after is not None and killed_after():
                    os.killpg(done.pid, signal.SIGKILL)  # Spark, too
                    done.wait()
                    return
        if done.returncode:
            sys.exit((self.home / "log").read_text(errors="replace")[-8000:])


def _binary_and_log() -> Any:
    """The server of MySQL, or of MariaDB if only that is installed, with a log for streams."""
    log = ("--log-bin=b", "--server-id=1", "--binlog-format=ROW", "--binlog-row-metadata=FULL")
    try:
        gtids = ("--gtid-mode=ON", "--enforce-gtid-consistency=ON")
        return private_binary("mysql"), *log, *gtids
    except NoServerError:
        return private_binary("mariadb"), *log


def kafka_to_stores(world: World) -> bool:
    """Two runs over one checkpoint; compares sums in the stores with those of the produced rows."""
    orders = [
        {"order_id": n, "customer": f"c{n % 7}", "cents": random.randrange(10_000)}
        for n in range(ORDERS)
    ]
    wanted = len(orders), sum(order["cents"] for order in orders)
    for part in (orders[: ORDERS // 2], orders[ORDERS // 2 :]):
        world.produce("orders", ((order["customer"], order) for order in part))
        print(f"{len(part):,} orders are in Kafka; the program runs", flush=True)
        world.run("kafka_to_stores")
    with connect_mysql(world.shop) as client, client.cursor() as cursor:
        cursor.execute("SELECT COUNT(*), SUM(cents) FROM orders")
        table = tuple(map(int, cursor.fetchone()))
    with connect_elasticsearch(world.elasticsearch) as client:
        client.indices.refresh(index="orders")
        total = client.search(
            index="orders",
            size=0,
            track_total_hits=True,
            aggs={"cents": {"sum": {"field": "cents"}}},
        )
        index = total["hits"]["total"]["value"], int(total["aggregations"]["cents"]["value"])
    with connect_redis(world.servers["REDIS"].url) as client:
        hashes = [client.hmget(f"customer:c{n}", "orders", "cents") for n in range(7)]
        counters = tuple(sum(int(one[part] or 0) for one in hashes) for part in range(2))
    found = {"Kafka": wanted, "MySQL": table, "Elasticsearch": index, "Redis": counters}
    for name, (count, cents) in found.items():
        print(f"  {name:<14}{count:>8,} orders {cents:>14,} cents")
    return len(set(found.values())) == 1


def change_data_capture(world: World) -> bool:
    """Compares the table and the index with the state after all changes."""
    state: dict[int, dict[str, Any]] = {}
    draw = random.Random(7)

    def changes() -> Records:
        for pos in range(CHANGES):
            key = draw.randrange(500)
            before = state.get(key)
            if before is not None and draw.random() < 0.2:
                after = None
                del state[key]
            else:
                after = {"id": key, "name": f"p{key}", "stock": draw.randrange(1000)}
                state[key] = after
            op = "d" if after is None else "c" if before is None else "u"
            record = {"op": op, "before": before, "after": after, "source": {"pos": pos}}
            yield str(key), record

    world.produce("products", changes())
    print(f"{CHANGES:,} changes are in Kafka; the program runs", flush=True)
    world.run("change_data_capture")
    wanted = {key: row["stock"] for key, row in state.items()}
    with connect_mysql(world.shop) as client, client.cursor() as cursor:
        cursor.execute("SELECT id, stock FROM products")
        table = dict(cursor.fetchall())
    with connect_elasticsearch(world.elasticsearch) as client:
        client.indices.refresh(index="products")
        hits = client.search(index="products", size=1000)["hits"]["hits"]
        index = {hit["_source"]["id"]: hit["_source"]["stock"] for hit in hits}
    for name, rows in {"changes": wanted, "MySQL": table, "Elasticsearch": index}.items():
        print(f"  {name:<14}{len(rows):>6,} products {sum(rows.values()):>10,} in stock")
    return table == wanted == index


def mysql_to_elasticsearch(world: World) -> bool:
    """Two runs over one checkpoint; compares the index with the table, document by document."""
    draw = random.Random(7)
    with connect_mysql(world.shop) as client, client.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE products (id INT PRIMARY KEY, name VARCHAR(40), stock INT NOT NULL)"
        )
        rows = [(one, f"p{one}", draw.randrange(1000)) for one in range(CHANGES)]
        cursor.executemany("INSERT INTO products VALUES (%s, %s, %s)", rows)
        print(f"{CHANGES:,} products are in the table; the program runs", flush=True)
        world.run("mysql_to_elasticsearch")
        for _ in range(CHANGES // 20):
            cursor.execute(*_change(draw))
        print("some were changed, others deleted or renumbered; the program runs", flush=True)
        world.run("mysql_to_elasticsearch")
        cursor.execute("SELECT id, stock FROM products")
        table = dict(cursor.fetchall())
    with connect_elasticsearch(world.elasticsearch) as client:
        client.indices.refresh(index="products")
        hits = scan(client, index="products", size=5000)
        index = {hit["_source"]["id"]: hit["_source"]["stock"] for hit in hits}
    for name, found in {"MySQL": table, "Elasticsearch": index}.items():
        print(f"  {name:<14}{len(found):>6,} products {sum(found.values()):>10,} in stock")
    return table == index


def _change(draw: random.Random) -> tuple[str, tuple[int, ...]]:
    one, other = draw.randrange(CHANGES), draw.randrange(2 * CHANGES)
    return draw.choice(
        [
            ("UPDATE products SET stock = stock + 1 WHERE id BETWEEN %s AND %s", (one, one + 9)),
            ("DELETE FROM products WHERE id = %s", (one,)),
            ("UPDATE IGNORE products SET id = %s WHERE id = %s", (other, one)),
        ]
    )


def database_to_elasticsearch(world: World) -> bool:
    """Kills the program twice; compares each table with its index, document by document."""
    draw = random.Random(7)
    with connect_mysql(world.shop) as client, client.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00'")

        def send(statements: Iterable[str]) -> None:
            for one in statements:
                cursor.execute(one)

        send(f"CREATE TABLE {name} ({form})" for name, form in rentals.TABLES.items())
        send(rentals.statements(draw, FILMS))
        print("eight tables have their rows; the program runs", flush=True)
        _run_and_kill(world, at_least=FILMS)
        send(rentals.changes(draw, FILMS, FILMS // 4))
        world.run("database_to_elasticsearch")
        send([*rentals.ALTERS, "TRUNCATE payment", rentals.JOINS])
        send(f"INSERT INTO review (film_id, stars) VALUES ({at}, {at / 8})" for at in range(99))
        send(["UPDATE film SET minutes = id", "UPDATE customer SET email = NULLIF(name, 'x')"])
        send(rentals.changes(draw, FILMS, FILMS))
        send(rentals.rentals(draw, FILMS, FILMS))
        print("two tables were altered, one emptied, and one joined; the program runs", flush=True)
        _run_and_kill(world, at_least=FILMS)
        world.run("database_to_elasticsearch")
        same = True
        for name in (*rentals.TABLES, "review"):
            table, index = _rows(cursor, name), _documents(world, f"shop.{name}")
            same &= table == index
            sign = "=" if table == index else "is NOT"
            print(f"  {name:<12}{len(table):>6,} rows {sign} {len(index):>6,} documents")
    return same


def _run_and_kill(world: World, at_least: int) -> None:
    """Kill the program after it has written this many documents."""
    with connect_elasticsearch(world.elasticsearch) as client:

        def written() -> int:
            total = client.indices.stats(index="shop.*", metric="indexing")["_all"]
            return int(total.get("total", {}).get("indexing", {}).get("index_total", 0))

        before = written()
        world.run("database_to_elasticsearch", lambda: written() - before >= at_least)
    print("the program was killed", flush=True)


def _rows(cursor: Any, table: str) -> list[str]:
    """The rows of a table, each as text."""
    cursor.execute(f"SELECT * FROM {table}")
    names = [one[0] for one in cursor.description]
    return sorted(_text(dict(zip(names, row, strict=True))) for row in cursor.fetchall())


def _documents(world: World, index: str) -> list[str]:
    """The documents of an index, each as text; a multiset."""
    with connect_elasticsearch(world.elasticsearch) as client:
        client.indices.refresh(index=index)
        return sorted(_text(hit["_source"]) for hit in scan(client, index=index, size=5000))


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps({name: _value(one) for name, one in row.items()}, sort_keys=True)


def _value(one: Any) -> Any:
    """A value as documents have it."""
    if isinstance(one, bytes):
        return base64.b64encode(one).decode()
    if isinstance(one, Decimal):
        return float(one)
    if isinstance(one, datetime):
        return f"{one.isoformat(timespec='microseconds')}"
    if isinstance(one, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", one):
        return datetime.fromisoformat(one.removesuffix("Z")).isoformat(timespec="microseconds")
    return str(one) if isinstance(one, date) else one


Example = Callable[[World], bool]
EXAMPLES: dict[str, tuple[Example, Sequence[str]]] = {
    "kafka_to_stores": (kafka_to_stores, tuple(SERVERS)),
    "change_data_capture": (change_data_capture, ("KAFKA", "MYSQL", "ELASTICSEARCH")),
    "mysql_to_elasticsearch": (mysql_to_elasticsearch, ("MYSQL", "ELASTICSEARCH")),
    "database_to_elasticsearch": (database_to_elasticsearch, ("MYSQL", "ELASTICSEARCH")),
}


def main(name: str) -> int:
    example, servers = EXAMPLES[name]
    with ExitStack() as stack:
        exact = example(World(stack, servers))
    print("exactly once" if exact else "NOT exactly once")
    return 0 if exact else 1


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in EXAMPLES:
        sys.exit(main(sys.argv[1]))
    sys.exit(f"python -m examples {'|'.join(EXAMPLES)}")
