"""Record what the present release leaves in each store: `python -m integration.history`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from integration.history import on_elasticsearch, on_mysql, on_redis
from integration.history.story import HOME
from integration.servers.elasticsearch import ElasticsearchProcess, private_tree
from integration.servers.mysql import MySqlProcess, private_binary
from integration.servers.redis import RedisProcess

from sparkonce import __version__


def elasticsearch() -> ElasticsearchProcess:
    return ElasticsearchProcess(private_tree())


RECORDINGS: dict[str, tuple[Callable[[], Any], Callable[[str], str]]] = {
    "redis.json": (RedisProcess, on_redis.record),
    "mysql.sql": (lambda: MySqlProcess(private_binary("mysql")), on_mysql.record),
    **{
        f"elasticsearch-{mode}.json": (elasticsearch, partial(on_elasticsearch.record, mode=mode))
        for mode in on_elasticsearch.MODES
    },
}


def main() -> None:
    home = HOME / __version__
    home.mkdir(exist_ok=True)
    for name, (start, record) in RECORDINGS.items():
        path = home / name
        if path.exists():  # what a release left is never overwritten: raise the version first
            print(f"{path} is there")
            continue
        with start() as server:
            path.write_text(record(server.url))
        print(f"recorded {path}")


if __name__ == "__main__":
    main()
