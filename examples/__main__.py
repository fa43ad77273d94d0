"""Runs an example on servers that it brings, and checks what is in the stores then."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka import Producer
from integration.servers import spark as local_spark
from integration.servers.elasticsearch import ElasticsearchProcess, private_tree
from integration.servers.elasticsearch import connect as connect_elasticsearch
from integration.servers.kafka import KafkaProcess, source_jars
from integration.servers.mysql import MySqlProcess, private_binary
from integration.servers.mysql import connect as connect_mysql
from integration.servers.redis import RedisProcess
from integration.servers.redis import connect as connect_redis

ORDERS = 20_000
CHANGES = 20_000

Records = Iterator[tuple[str, Mapping[str, Any]]]


class World:
    """Servers of the example's own, and what it put into Kafka."""

    def __init__(self, stack: ExitStack) -> None:
        self.home = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        print("servers: Kafka, Redis, MySQL or MariaDB, Elasticsearch", flush=True)
        self.kafka = stack.enter_context(KafkaProcess())
        self.redis = stack.enter_context(RedisProcess("appendonly yes"))
        self.mysql = stack.enter_context(MySqlProcess(_binary()))
        self.elasticsearch = stack.enter_context(ElasticsearchProcess(private_tree()))
        with connect_mysql(self.mysql.url) as client, client.cursor() as cursor:
            cursor.execute("CREATE DATABASE shop")

    @property
    def shop(self) -> str:
        return f"{self.mysql.url.rpartition('/')[0]}/shop"

    def produce(self, topic: str, records: Records) -> None:
        producer = Producer({"bootstrap.servers": self.kafka.address, "log_level": 3})
        for key, record in records:
            producer.produce(topic, json.dumps(record), key)
            producer.poll(0)
        producer.flush()

    def run(self, program: str) -> None:
        """Run the program until it has read all."""
        jars = ",".join(map(str, source_jars()))
        submit = f"--master local[2] --jars {jars} --conf spark.ui.enabled=false pyspark-shell"
        addresses = {
            "KAFKA": self.kafka.address,
            "REDIS": self.redis.url,
            "MYSQL": self.shop,
            "ELASTICSEARCH": self.elasticsearch.url,
            "CHECKPOINTS": str(self.home / "checkpoints"),
        }
        spark = {**local_spark.environment(self.home), "PYSPARK_SUBMIT_ARGS": submit}
        command = [sys.executable, str(Path(__file__).with_name(f"{program}.py"))]
        with (self.home / "log").open("ab") as log:
            done = subprocess.run(
                command, env={**os.environ, **spark, **addresses}, stderr=log, check=False
            )
        if done.returncode:
            sys.exit((self.home / "log").read_text(errors="replace")[-8000:])


def _binary() -> Any:
    """MySQL's server, or MariaDB's where only that is there."""
    from integration.servers.finder import UnavailableError

    try:
        return private_binary("mysql")
    except UnavailableError:
        return private_binary("mariadb")


def kafka_to_stores(world: World) -> bool:
    """Two runs over one checkpoint; sums of the stores against those of what was produced."""
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
    with connect_elasticsearch(world.elasticsearch.url) as client:
        client.indices.refresh(index="orders")
        total = client.search(
            index="orders",
            size=0,
            track_total_hits=True,
            aggs={"cents": {"sum": {"field": "cents"}}},
        )
        index = total["hits"]["total"]["value"], int(total["aggregations"]["cents"]["value"])
    with connect_redis(world.redis.url) as client:
        hashes = [client.hmget(f"customer:c{n}", "orders", "cents") for n in range(7)]
        counters = tuple(sum(int(one[part] or 0) for one in hashes) for part in range(2))
    found = {"Kafka": wanted, "MySQL": table, "Elasticsearch": index, "Redis": counters}
    for name, (count, cents) in found.items():
        print(f"  {name:<14}{count:>8,} orders {cents:>14,} cents")
    return len(set(found.values())) == 1


def change_data_capture(world: World) -> bool:
    """The table and the index against the state that the changes lead to."""
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
    with connect_elasticsearch(world.elasticsearch.url) as client:
        client.indices.refresh(index="products")
        hits = client.search(index="products", size=1000)["hits"]["hits"]
        index = {hit["_source"]["id"]: hit["_source"]["stock"] for hit in hits}
    for name, rows in {"changes": wanted, "MySQL": table, "Elasticsearch": index}.items():
        print(f"  {name:<14}{len(rows):>6,} products {sum(rows.values()):>10,} in stock")
    return table == wanted == index


EXAMPLES: dict[str, Callable[[World], bool]] = {
    "kafka_to_stores": kafka_to_stores,
    "change_data_capture": change_data_capture,
}


def main(name: str) -> int:
    with ExitStack() as stack:
        exact = EXAMPLES[name](World(stack))
    print("exactly once" if exact else "NOT exactly once")
    return 0 if exact else 1


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in EXAMPLES:
        sys.exit(main(sys.argv[1]))
    sys.exit(f"python -m examples {'|'.join(EXAMPLES)}")
